import csv

import numpy as np
import pytest

from ebql.analysis.statistics import over_seeds
from ebql.studies.definition import read_study
from ebql.studies.plan import plan
from ebql.studies.sweep import summarise
from ebql.studies.tables.runs import MEASURES, learn_tables, read_seed_curves
from ebql.studies.tasks import progress
from ebql.tabular import EBQL, Schedule, inverse_visits, learn

STUDY = """
floor = "tabular"
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
    monkeypatch.setattr("ebql.studies.tables.runs._BATCH_NUMBERS", 1)  # one seed a batch
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


def test_the_summary_has_means_with_intervals(run_of, tmp_path):
    run_of()
    study = read_study(tmp_path / "study.toml")
    out = tmp_path / "out"
    learn_tables(study.runs[0], plan(study, out)[0].folder, 2)
    summarise(plan(study, out), out)
    with (out / "summary.csv").open() as file:
        rows = {(row["metric"], row["average"]): row for row in csv.DictReader(file)}
    assert len(rows) == 2 * len(MEASURES)
    values = read_seed_curves(plan(study, out)[0].folder).metrics["bias"]
    mean, half = over_seeds(values.mean(1))
    row = rows["bias", "whole run"]
    assert (row["environment"], row["agent"], row["seeds"]) == ("ebql/MetaChain-v0", "ebql", "5")
    assert float(row["mean"]) == pytest.approx(mean, rel=1e-8)
    assert float(row["high"]) == pytest.approx(mean + half, rel=1e-8)
    mean, half = over_seeds(values[:, -1])
    assert float(rows["bias", "end"]["low"]) == pytest.approx(mean - half, rel=1e-8)
    with (out / "curves.csv").open() as file:
        curve = [row for row in csv.DictReader(file) if row["metric"] == "correct"]
    assert [row["episode"] for row in curve] == ["25", "50", "60"]
