import json
import subprocess
import sys

import pytest

from ebql.runs import RunFolder, files, folder, read_metrics

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


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"format": "another"}', "[" * 100_000, *ODD])
def test_a_folder_that_is_not_a_run_is_one_clear_line(tmp_path, content):
    with pytest.raises(ValueError, match="There is no run folder"):
        RunFolder.open(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"not a run folder: it has no config\.json"):
        RunFolder.open(tmp_path)
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(ValueError, match=r"not a run folder: its config\.json"):
        RunFolder.open(tmp_path)


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_run_that_could_not_be_opened_again_is_not_begun(tmp_path):
    with pytest.raises(ValueError, match=f"The new run says steps {2**70}"):
        RunFolder.create(tmp_path / "run", {**ABOUT, "steps": 2**70})
    assert not (tmp_path / "run").exists()


def test_a_changed_config_is_refused_unless_accepted(tmp_path):
    RunFolder.create(tmp_path, ABOUT)
    text = (tmp_path / "config.json").read_text()
    (tmp_path / "config.json").write_text(json.dumps(json.loads(text)))  # another layout is no change
    assert RunFolder.open(tmp_path).sealed
    edit(tmp_path / "config.json", options={"ensemble_size": 6})
    with pytest.raises(ValueError, match=r"config.json' was changed after it was written.*--accept-changes"):
        RunFolder.open(tmp_path)
    folder = RunFolder.open(tmp_path, accept_changes=True)
    assert folder.changed
    assert folder.config["options"] == {"ensemble_size": 6}
    folder.updated(steps=7)  # what was accepted is not asked about again, but stays visible
    reopened = RunFolder.open(tmp_path)
    assert (reopened.config["steps"], reopened.accepted, reopened.changed) == (7, ["config.json"], False)


def test_a_config_of_version_0_1_has_no_seal(tmp_path):
    RunFolder.create(tmp_path, ABOUT)
    config = json.loads((tmp_path / "config.json").read_text())
    assert len(config.pop("seal")) == 32
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert not RunFolder.open(tmp_path).sealed


def test_changed_metrics_are_refused_unless_accepted_and_the_run_records_it(tmp_path):
    run = RunFolder.create(tmp_path, ABOUT)
    with run.metrics(0) as log:
        log.append({"step": 1, "return": 5})
        position = log.position()
    run.metrics_path.write_bytes(run.metrics_path.read_bytes().replace(b"5", b"9"))
    with pytest.raises(ValueError, match="was changed after it was written"):
        run.metrics(position)
    run.metrics(position, accept_changes=True).close()
    assert RunFolder.open(tmp_path).accepted == ["metrics.jsonl"]
    RunFolder.open(tmp_path).metrics(position).close()


@pytest.mark.parametrize(
    "name", ["config.json", "metrics.jsonl", "checkpoints", "events", ".lock", "seeds.npz"]
)
def test_a_link_in_a_run_folder_is_refused(tmp_path, name):
    outside = tmp_path / "outside"
    outside.mkdir()
    RunFolder.create(tmp_path / "run", ABOUT)
    (tmp_path / "run" / name).unlink(missing_ok=True)
    (tmp_path / "run" / name).symlink_to(outside)
    with pytest.raises(ValueError, match=f"{name}' is a symbolic link"):
        RunFolder.open(tmp_path / "run")
    with pytest.raises(ValueError, match=f"{name}' is a symbolic link"):
        RunFolder.create(tmp_path / "run", ABOUT)
    assert not list(outside.iterdir())


def test_of_two_that_begin_at_once_one_is_refused(tmp_path):
    """The second begins while the first has the lock, and before it has written its config."""
    refused = []

    def begin_again():
        with pytest.raises(ValueError, match="Another process is working on the run") as refusal:
            RunFolder.create(tmp_path, {**ABOUT, "seed": 4})
        refused.append(refusal)

    write = folder.write_json
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder, "write_json", lambda *content: (begin_again(), write(*content)))
        run = RunFolder.create(tmp_path, ABOUT)
    assert refused
    assert run.config["seed"] == RunFolder.open(tmp_path).config["seed"] == 3


def test_what_a_killed_process_left_is_deleted_under_the_lock(tmp_path):
    run = RunFolder.create(tmp_path, ABOUT)
    run.checkpoints.save(1, {}, {}, {})
    (tmp_path / ".config.json.0f.partial").touch()
    for name in (".000000000002.0f.partial", ".1.0f.old"):
        (tmp_path / "checkpoints" / name).mkdir()
        (tmp_path / "checkpoints" / name / "file").touch()
    with run.locked():
        pass
    names = sorted(path.name for path in tmp_path.rglob("*") if path.name != "config.json")
    assert names == [
        ".lock",
        "000000000001",
        "checkpoints",
        "manifest.json",
        "state.json",
        "tensors.safetensors",
    ]


def test_what_was_left_before_the_first_config_is_deleted_too(tmp_path):
    (tmp_path / ".config.json.0f.partial").touch()
    (tmp_path / ".somebody.partial").touch()
    RunFolder.create(tmp_path, ABOUT)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", ".somebody.partial", "config.json"]


def test_every_folder_that_a_run_needs_is_flushed_to_disk(tmp_path, monkeypatch):
    flushed = []
    monkeypatch.setattr(files, "sync_folder", flushed.append)
    RunFolder.create(tmp_path / "runs" / "x", ABOUT)
    assert {tmp_path, tmp_path / "runs", tmp_path / "runs" / "x"} <= set(flushed)


def test_only_one_process_works_on_a_run(tmp_path):
    run = RunFolder.create(tmp_path, ABOUT)
    script = f"from ebql.runs import RunFolder\nwith RunFolder.open({str(tmp_path)!r}).locked(): pass"
    with run.locked():
        other = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
        assert "Another process is working on the run" in other.stderr
    subprocess.run([sys.executable, "-c", script], check=True)
