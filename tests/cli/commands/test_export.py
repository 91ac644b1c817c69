"""`ebql export`, called as a person would."""

import sys

import onnxruntime

from ebql.cli import main
from ebql.deep.agents import EBQL


def test_a_run_becomes_a_file(tmp_path, monkeypatch, refused, capsys):
    monkeypatch.chdir(tmp_path)
    EBQL("CartPole-v1", ensemble_size=2, hidden=(4,), evaluation_period=0).learn(20, out="run")
    assert main(["export", "run"]) == 0
    assert "run.onnx" in capsys.readouterr().err
    session = onnxruntime.InferenceSession("run.onnx", providers=["CPUExecutionProvider"])
    assert [given.name for given in session.get_inputs()] == ["observation"]
    assert main(["export", "run", "--out", "here/mine.onnx", "--action-masks"]) == 0
    session = onnxruntime.InferenceSession("here/mine.onnx", providers=["CPUExecutionProvider"])
    assert [given.name for given in session.get_inputs()] == ["observation", "action_mask"]
    assert "There is no" in refused(["export", "nowhere"])
    monkeypatch.setitem(sys.modules, "onnx", None)
    assert 'Exporting needs onnx: pip install "ebql[onnx]"' in refused(["export", "run", "--out", "new.onnx"])
    assert not (tmp_path / "new.onnx").exists()


def test_an_agent_of_your_own_and_a_name_with_dots(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "registering.py").write_text("import sys; sys.imported_for_export = True\n")
    EBQL("CartPole-v1", ensemble_size=2, hidden=(4,), evaluation_period=0).learn(20, out="lr0.01")
    assert main(["export", "lr0.01", "--import", "registering"]) == 0
    assert sys.imported_for_export
    assert (tmp_path / "lr0.01.onnx").exists()
    config = tmp_path / "lr0.01" / "config.json"
    config.write_text(config.read_text().replace('"seed": 0', '"seed": 1'))
    assert "--accept-changes" in refused(["export", "lr0.01"])
    assert main(["export", "lr0.01", "--accept-changes"]) == 0
