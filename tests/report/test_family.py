import json

import pytest

from ebql.cli import main
from ebql.report.family import FamilyStudy, count_steps


def test_everything_is_written_and_every_step_is_told(tmp_path):
    heard = []
    told = FamilyStudy(tmp_path, seeds=2, episodes=10).make(heard.append)
    assert len(heard) == count_steps()
    names = {path.name for path in tmp_path.iterdir()}
    pictures = {f"{name}.png" for name in ("arms", "bias", "exploration", "regimes", "splits")}
    data = {f"{name}.csv" for name in ("arms", "exploration", "regimes", "splits", "standings")}
    assert names == pictures | data | {"made_by.json"}
    made_by = json.loads((tmp_path / "made_by.json").read_text())
    assert made_by["seeds"] == 2
    assert made_by["found"] == told
    assert made_by["made_by"]["versions"]["numba"]


@pytest.mark.parametrize("words", ["--seeds 1", "--episodes 0"])
def test_bad_settings_are_refused_in_one_line_before_anything_runs(words, tmp_path, capsys):
    assert main(["family", *words.split(), "--out", str(tmp_path / "new")]) == 2
    error = capsys.readouterr().err
    assert "at least" in error
    assert error.count("\n") == 1
    assert not (tmp_path / "new").exists()
