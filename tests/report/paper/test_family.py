import json

import pytest

from ebql.paper.chains.curves import META_CHAIN, REGIMES
from ebql.paper.family.adaptive import ADAPTIVE, FIXED, SplitCell
from ebql.report.paper.family import FamilyStudy, all_worlds_in_words, count_steps, splits_in_words


def test_everything_is_written_and_every_step_is_told(tmp_path):
    heard = []
    sentences = FamilyStudy(tmp_path, seeds=5, episodes=10).make(heard.append)
    assert len(heard) == count_steps()
    names = {path.name for path in tmp_path.iterdir()}
    pictures = {
        f"{name}.png"
        for name in ("arms", "bias", "estimators", "exploration", "line", "regimes", "splits", "standings")
    }
    data = {f"{name}.csv" for name in ("arms", "estimators", "exploration", "regimes", "splits", "standings")}
    assert names == pictures | data | {"made_by.json", "estimators.json", "parts"}
    made_by = json.loads((tmp_path / "made_by.json").read_text())
    assert made_by["seeds"] == 5
    mapped = json.loads((tmp_path / "estimators.json").read_text())
    assert mapped["replications"] == 100
    assert mapped["found"] + made_by["found"] == sentences
    assert made_by["made_by"]["versions"]["numba"]
    assert FamilyStudy(tmp_path, seeds=5, episodes=10).core_minutes() == 0  # every part is kept


def test_the_map_of_estimators_can_be_made_alone(tmp_path):
    heard = []
    FamilyStudy(tmp_path, seeds=5, episodes=10, part="estimators").make(heard.append)
    assert len(heard) == count_steps("estimators") < count_steps("all") - count_steps("tables") + 1
    names = {"estimators.csv", "estimators.json", "estimators.png", "line.png"}
    assert {path.name for path in tmp_path.iterdir()} == names


@pytest.mark.parametrize("words", ["--seeds 4", "--episodes 0"])
def test_bad_settings_are_refused_in_one_line_before_anything_runs(words, tmp_path, refused):
    assert "at least" in refused(["family", *words.split(), "--out", str(tmp_path / "new")])
    assert not (tmp_path / "new").exists()


def test_the_words_about_splits_count_what_the_cells_say():
    def cell(regime, agent, rate, error, rate_margin, error_margin):
        return SplitCell(regime, META_CHAIN, agent, rate, error, rate_margin, 0.01, error_margin, 0.01, 1.0)

    cells = [
        cell(REGIMES[0], ADAPTIVE, 0.80, 0.20, 0.0, 0.0),
        cell(REGIMES[0], FIXED[0], 0.75, 0.22, 0.05, 0.02),
        cell(REGIMES[0], FIXED[1], 0.90, 0.10, -0.10, -0.10),
        cell(REGIMES[1], ADAPTIVE, 0.80, 0.20, 0.0, 0.0),
        cell(REGIMES[1], FIXED[0], 0.795, 0.205, 0.005, 0.005),
        cell(REGIMES[1], FIXED[1], 0.70, 0.30, 0.10, 0.10),
    ]
    words = splits_in_words(cells, META_CHAIN)
    assert "against one selecting member ahead in 1 and behind in 0 (mean gain +0.0275)" in words
    assert "best fixed split ahead in 0 and behind in 1 (mean gain -0.0475). Squared" in words
    assert "one selecting member ahead in 1 and behind in 0 (mean gain +0.0125)" in words
    assert "best fixed split ahead in 0 and behind in 1 (mean gain -0.0475)." in words
    every = [cell(REGIMES[0], agent, 0.5, 0.25, 0.0, 0.0) for agent in (ADAPTIVE, *FIXED)]
    assert all_worlds_in_words(every).count("0.5000 / 0.2500") == 1 + len(FIXED)
