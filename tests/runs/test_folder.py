import json
import subprocess
import sys

import pytest

from ebql.runs import RunFolder, read_metrics

ABOUT = {"agent": "ebql", "environment": "CartPole-v1", "seed": 3, "options": {"ensemble_size": 5}}


def test_a_run_knows_what_it_is(tmp_path):
    RunFolder.create(tmp_path / "runs" / "x", ABOUT, command=["ebql", "train"])
    run = RunFolder.open(tmp_path / "runs" / "x")
    assert ABOUT.items() <= run.config.items()
    assert run.config["command"] == "ebql train"
    assert run.config["date"].endswith("+00:00")
    assert {"python", "ebql", "numpy", "gymnasium"} <= run.config["versions"].keys()
    assert "commit" in run.config
    with run.metrics(0) as log:
        log.append({"step": 1})
    assert read_metrics(run.metrics_path) == [{"step": 1}]
    run.checkpoints.save(1, {}, {"a": 1}, {})
    assert run.checkpoints.steps() == [1]


def test_a_folder_that_holds_another_run_is_refused(tmp_path):
    run = RunFolder.create(tmp_path, ABOUT)
    with pytest.raises(ValueError, match=r"holds another run: resume it \(ebql resume"):
        RunFolder.create(tmp_path, ABOUT)
    with run.metrics(0) as log:
        log.append({"step": 1})
    (tmp_path / "config.json").unlink()
    with pytest.raises(ValueError, match="holds another run"):
        RunFolder.create(tmp_path, ABOUT)
    (tmp_path / "metrics.jsonl").rename(tmp_path / "checkpoints")
    with pytest.raises(ValueError, match="holds another run"):
        RunFolder.create(tmp_path, ABOUT)


ODD = [
    json.dumps({"format": "ebql run 1", **odd})
    for odd in (
        {"kind": 3},
        {"label": 5},
        {"agent": 7},
        {"environment": []},
        {"options": 3},
        {"steps": "many"},
    )
]


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"format": "another"}', *ODD])
def test_a_folder_that_is_not_a_run_is_one_clear_line(tmp_path, content):
    with pytest.raises(ValueError, match="There is no run folder"):
        RunFolder.open(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"not a run folder: it has no config\.json"):
        RunFolder.open(tmp_path)
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=r"not a run folder: its config\.json"):
        RunFolder.open(tmp_path)


def test_only_one_process_works_on_a_run(tmp_path):
    run = RunFolder.create(tmp_path, ABOUT)
    script = f"from ebql.runs import RunFolder\nwith RunFolder.open({str(tmp_path)!r}).locked(): pass"
    with run.locked():
        other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert "Another process is working on the run" in other.stderr
    subprocess.run([sys.executable, "-c", script], check=True)
