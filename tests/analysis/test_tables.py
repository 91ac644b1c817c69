import json
import shutil

import numpy as np
import pytest

from ebql.analysis.findings import findings
from ebql.analysis.scores import read_scores
from ebql.errors import InputError
from ebql.runs.metric_names import BIAS_MEAN, BIAS_NORMALISED, EVALUATION_RETURN
from ebql.studies.definition import Run
from ebql.studies.tables.runs import learn_tables, read_seed_curves

WORLD = "ebql/MetaChain-v0"


def learnt(path, agent, seeds, label=None, **own):
    options = {
        "episodes": 40,
        "record_every": 10,
        "epsilon": 0.5,
        "learning_rate": {"power": 0.8},
        "discount": 0.9,
        "max_steps": 100,
        **own,
    }
    run = Run("tabular", WORLD, agent, label or agent, None, options, tuple(range(seeds)), seeds, "seeds")
    learn_tables(run, path, threads=1)
    return path


@pytest.fixture
def folder(tmp_path):
    learnt(tmp_path / "a", "q-learning", 5)
    learnt(tmp_path / "b", "ebql", 3, ensemble_size=3)
    learnt(tmp_path / "c", "ebql", 3, label="the large one", ensemble_size=7)
    return tmp_path


def test_a_study_of_tables_is_scored_like_any_other(folder):
    study = read_scores(folder)
    assert study.agents == ["QL", "EBQL 3", "the large one"]
    assert study.horizons == {WORLD: 40}
    assert (study.unit, study.work_unit, study.unfinished) == ("episodes", "seeds", 0)
    curves = read_seed_curves(folder / "a")
    runs = study.scored_runs(WORLD, "QL")
    # Records at 10, 20, 30 and 40 episodes: the last tenth holds one.
    assert [run.seed for run in runs] == [0, 1, 2, 3, 4]
    assert [run.score for run in runs] == curves.metrics["value"][:, -1].tolist()
    assert [run.bias for run in runs] == curves.metrics["bias"][:, -1].tolist()
    found = findings(study)
    assert set(found.ranking) == set(study.agents)
    assert found.aggregates["QL"]["mean"].known


def test_agents_that_differ_are_not_pooled(tmp_path):
    for name, epsilon in (("a", 0.1), ("b", 1.0)):
        learnt(tmp_path / name, "q-learning", 5, epsilon=epsilon)
    study = read_scores(tmp_path)
    assert study.agents == ["QL, epsilon=0.1", "QL, epsilon=1.0"]
    assert study.compared_seeds == (5, 5)
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    with pytest.raises(InputError, match="Two runs of QL, epsilon=0.1 on ebql/MetaChain-v0 have the seed 0"):
        read_scores(tmp_path)


def test_the_scale_is_exact(folder):
    # Risky pays 0.9 times the mean of the chain drawn: 0 in all, and the optimal policy takes three of six.
    scale = read_scores(folder).references[WORLD]
    assert scale.zero == pytest.approx(0, abs=1e-12)
    assert scale.one == pytest.approx(0.9 * (0.2 + 0.4 + 0.6) / 6)


def test_curves_are_values_and_biases_over_episodes(folder):
    (group, *_) = read_scores(folder).groups
    curves = read_seed_curves(folder / "a")
    assert group.curve(EVALUATION_RETURN).steps.tolist() == [10, 20, 30, 40]
    np.testing.assert_array_equal(group.curve(BIAS_MEAN).values, curves.metrics["bias"])
    np.testing.assert_allclose(group.curve(BIAS_NORMALISED).values, curves.metrics["bias"] / 0.18)
    assert group.curve("loss").values.shape == (5, 0)


def test_tabular_runs_of_an_earlier_version_are_known_by_their_floor(folder):
    for path in folder.glob("*/config.json"):
        config = json.loads(path.read_text())
        config["floor"] = config.pop("kind")
        del config["seal"]
        path.write_text(json.dumps(config))
    study = read_scores(folder)
    assert study.agents == ["QL", "EBQL 3", "the large one"]
    assert study.has_tables
