import numpy as np
import pytest

from ebql.runs import RunFolder
from ebql.studies.definition import read_study
from ebql.studies.tables import runs as table_runs
from ebql.studies.tables.runs import MEASURES, learn_tables, read_seed_curves
from ebql.studies.tasks import progress
from ebql.tabular import EBQL, Schedule, inverse_visits, learn

STUDY = """
kind = "tabular"
environments = ["ebql/MetaChain-v0"]
seeds = 5
episodes = 60
record_every = 25
epsilon = 0.3
[[agent]]
name = "ebql"
ensemble_size = 3
"""


@pytest.fixture
def run_of(tmp_path):
    def read(text=STUDY):
        (tmp_path / "study.toml").write_text(text)
        return read_study(tmp_path / "study.toml").runs[0]

    return read


def test_seeds_are_measured_once_and_more_of_them_only_added(run_of, tmp_path, monkeypatch):
    few, many = run_of(STUDY.replace("seeds = 5", "seeds = [3, 0]")), run_of()
    folder = tmp_path / "run"
    learn_tables(few, folder, 1)
    assert progress(few, folder) == 2
    assert progress(many, folder) == 2
    before = read_seed_curves(folder)
    learn_tables(many, folder, 1)
    after = read_seed_curves(folder)
    assert after.seeds.tolist() == [3, 0, 1, 2, 4]
    assert progress(many, folder) == 5
    for name in MEASURES:
        assert after.metrics[name][:2].tobytes() == before.metrics[name].tobytes()
    learn_tables(many, tmp_path / "at once", 1)
    order = np.argsort(after.seeds)
    for name, values in read_seed_curves(tmp_path / "at once").metrics.items():
        assert values.tobytes() == after.metrics[name][order].tobytes()


def test_a_broken_run_goes_on_after_its_last_batch(run_of, tmp_path, monkeypatch):
    monkeypatch.setattr("ebql.studies.tables.runs._VALUES_PER_BATCH", 1)  # one seed a batch
    run, folder = run_of(), tmp_path / "run"
    learnt = []

    def break_at_the_third(*arguments, **options):
        learnt.append(options["seeds"])
        if len(learnt) == 3:
            raise KeyboardInterrupt
        return learn(*arguments, **options)

    monkeypatch.setattr("ebql.studies.tables.runs.learn", break_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        learn_tables(run, folder, 1)
    assert progress(run, folder) == 2
    learn_tables(run, folder, 1)
    assert [seeds[0] for seeds in learnt] == [0, 1, 2, 2, 3, 4]
    assert progress(run, folder) == 5


def test_returns_are_averaged_between_records(run_of, tmp_path):
    run = run_of()
    learn_tables(run, tmp_path / "run", 1)
    curves = read_seed_curves(tmp_path / "run")
    assert curves.episodes.tolist() == [25, 50, 60]
    history = learn(
        _world(),
        EBQL(3),
        episodes=60,
        seeds=5,
        epsilon=Schedule(0.3),
        learning_rate=inverse_visits(0.8),
    )
    expected = [history.returns[:, part].mean(1) for part in (slice(0, 25), slice(25, 50), slice(50, 60))]
    np.testing.assert_allclose(curves.metrics["return"], np.stack(expected, 1), atol=1e-12)


def _world():
    from ebql.environments import meta_chain

    return meta_chain()


def test_a_tabular_run_describes_itself(run_of, tmp_path):
    learn_tables(run_of(), tmp_path / "run", 1)
    config = RunFolder.open(tmp_path / "run").config
    assert (config["kind"], config["label"], config["agent"]) == ("tabular", "ebql", "ebql")
    assert "floor" not in config


@pytest.mark.parametrize("lost", ["write_csv", "_write"])
def test_a_batch_that_was_cut_off_leaves_no_stale_file(lost, run_of, tmp_path, monkeypatch):
    run = run_of()
    learn_tables(run, tmp_path / "whole", 1)
    with monkeypatch.context() as patch:
        patch.setattr(f"ebql.studies.tables.runs.{lost}", _interrupt)
        with pytest.raises(KeyboardInterrupt):
            learn_tables(run, tmp_path / "cut", 1)
    assert progress(run, tmp_path / "cut") == 0
    learn_tables(run, tmp_path / "cut", 1)
    for name in ("metrics.jsonl", "curves.csv", "seeds.npz"):
        assert (tmp_path / "cut" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def _interrupt(*_):
    raise KeyboardInterrupt


@pytest.mark.parametrize("written", ["metrics.jsonl", "curves.csv", "seeds.npz"])
def test_a_kill_after_any_file_leaves_none_of_them_stale(run_of, tmp_path, monkeypatch, written):
    monkeypatch.setattr("ebql.studies.tables.runs._VALUES_PER_BATCH", 1)  # one seed a batch
    run = run_of()
    learn_tables(run, tmp_path / "whole", 1)
    kill = {"metrics.jsonl": "write_csv", "curves.csv": "_write"}.get(written, "learn_seeds")
    calls, original = [], getattr(table_runs, kill)

    def killed(*arguments):
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(table_runs, kill, killed)
        with pytest.raises(KeyboardInterrupt):
            learn_tables(run, tmp_path / "killed", 1)
    learn_tables(run, tmp_path / "killed", 1)
    for name in ("metrics.jsonl", "curves.csv"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def test_changed_measurements_are_refused_unless_accepted(run_of, tmp_path):
    run = run_of()
    learn_tables(run, tmp_path / "run", 1)
    path = tmp_path / "run" / "seeds.npz"
    with np.load(path) as arrays:
        content = dict(arrays)
    content["value"] = content["value"] + 1
    np.savez(path, **content)
    with pytest.raises(ValueError, match=r"seeds.npz' was changed after it was written.*--accept-changes"):
        read_seed_curves(tmp_path / "run")
    assert read_seed_curves(tmp_path / "run", accept_changes=True) is not None


@pytest.mark.parametrize("left", [b"", None])
def test_lost_metrics_are_refused_unless_accepted(left, run_of, tmp_path):
    learn_tables(run_of(STUDY.replace("seeds = 5", "seeds = 2")), tmp_path / "run", 1)
    path = tmp_path / "run" / "metrics.jsonl"
    path.unlink()
    if left is not None:
        path.write_bytes(left)
    with pytest.raises(ValueError, match=r"metrics.jsonl' lacks the record of step 2: it was lost.*--accept"):
        learn_tables(run_of(STUDY.replace("seeds = 5", "seeds = 3")), tmp_path / "run", 1)
    learn_tables(run_of(STUDY.replace("seeds = 5", "seeds = 3")), tmp_path / "run", 1, accept_changes=True)
    assert RunFolder.open(tmp_path / "run").accepted == ["metrics.jsonl"]
    learn_tables(run_of(STUDY.replace("seeds = 5", "seeds = 4")), tmp_path / "run", 1)  # it is known now
