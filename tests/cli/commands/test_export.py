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
