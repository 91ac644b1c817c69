import csv
from dataclasses import replace

import pytest

from ebql.errors import InputError
from ebql.kept.files import (
    DETAILS,
    EVALUATIONS,
    METRICS,
    PROVENANCE,
    KeptRun,
    holds_kept,
    read_kept,
    write_kept,
)


def run(**changes):
    evaluations = [
        {"step": 10, "evaluation/return": 1.5, "bias/mean": None, "bias/method": "complete"},
        {"step": 20, "evaluation/return": 1 / 3, "bias/mean": -0.25, "evaluation/wins": 3},
    ]
    given = KeptRun(
        "W-v0",
        "DQN",
        0,
        20,
        "dqn",
        "plain",
        "hidden=[8]",
        {"hidden": [8], "discount": 0.9},
        0.5,
        None,
        {"python": "3.11.7"},
        "2026-01-01",
        "ebql sweep a.toml",
        evaluations,
    )
    return replace(given, **changes)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_runs_come_back_as_they_were_kept(tmp_path):
    write_kept(tmp_path, [run(), run(seed=1, random_return=None, commit="abc", preset=None)])
    first, second = read_kept(tmp_path)
    assert first.evaluations[0]["evaluation/return"] == 1.5
    assert first.evaluations[0]["bias/mean"] is None
    assert first.evaluations[0]["bias/method"] == "complete"
    assert first.evaluations[1]["evaluation/return"] == 0.333333333  # nine digits
    assert first.evaluations[1]["evaluation/wins"] == 3
    assert replace(first, evaluations=()) == run(evaluations=())
    assert (second.seed, second.random_return, second.commit, second.preset) == (1, None, "abc", None)
    assert second.config["options"] == {"seed": 1, "hidden": [8], "discount": 0.9}


def test_the_same_runs_give_the_same_bytes_in_any_order(tmp_path):
    runs = [run(), run(seed=1), run(environment="A-v0"), run(agent="EBQL", options={"hidden": [4]})]
    write_kept(tmp_path / "a", runs)
    write_kept(tmp_path / "b", reversed(runs))
    write_kept(tmp_path / "c", read_kept(tmp_path / "a"))
    assert contents(tmp_path / "a") == contents(tmp_path / "b") == contents(tmp_path / "c")


def test_evaluations_are_tidy(tmp_path):
    write_kept(tmp_path, [run(agent="=1+1")])
    with (tmp_path / EVALUATIONS).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == ["10", "20"]
    assert list(rows[0])[:9] == [
        "environment",
        "agent",
        "seed",
        "step",
        "return",
        "return_std",
        "length",
        "episodes",
        "bias",
    ]
    assert list(rows[0])[-1] == "evaluation/wins"
    assert rows[0]["agent"] == "'=1+1"  # no formula for a spreadsheet
    assert read_kept(tmp_path)[0].agent == "=1+1"


def test_every_metric_of_the_bias_has_a_column():
    from dataclasses import fields

    from ebql.deep.evaluation.bias import Bias

    assert {f"bias/{field.name}" for field in fields(Bias)} <= set(METRICS.values())


def test_rows_that_a_crash_left_before_the_provenance_are_ignored(tmp_path):
    write_kept(tmp_path / "a", [run()])
    write_kept(tmp_path / "b", [run(), run(seed=1)])
    for name in (EVALUATIONS, DETAILS):
        (tmp_path / "a" / name).write_bytes((tmp_path / "b" / name).read_bytes())
    assert [kept.seed for kept in read_kept(tmp_path / "a")] == [0]


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        (EVALUATIONS, "1.5", "much", "line 2: could not convert string to float: 'much'"),
        (EVALUATIONS, "return,", "gain,", "no metric has the name 'gain'"),
        (EVALUATIONS, ",20,", ",20,7,", "too few or too many cells"),
        (EVALUATIONS, "W-v0", "V-v0", "has no evaluation of this run"),
        (PROVENANCE, "seed", "sead", "'seed' is missing"),
        (PROVENANCE, "plain", '"plain', "not CSV"),
        (DETAILS, '"options"', '"option"', "must hold options and versions"),
        (DETAILS, "{", "[", "must hold options and versions"),
    ],
)
def test_damaged_files_are_refused_in_one_line(tmp_path, file, old, new, told):
    write_kept(tmp_path, [run()])
    path = tmp_path / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError) as refusal:
        read_kept(tmp_path)
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_folder_without_kept_results_is_refused(tmp_path):
    assert not holds_kept(tmp_path)
    with pytest.raises(InputError, match=f"it has no {PROVENANCE}"):
        read_kept(tmp_path)
