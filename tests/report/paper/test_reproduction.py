import csv
import json

import pytest

from ebql.paper.ledger import Verdict
from ebql.report.paper.reproduction import FIGURES, Reproduction, check_names, count_steps


def test_everything_is_written_and_every_step_is_told(tmp_path):
    heard = []
    tables = [name for name in FIGURES if name != "deep"]
    claims = Reproduction(tmp_path, seeds=5, episodes=50).make(tables, heard.append)
    assert len(heard) == count_steps(tables)
    names = {path.name for path in tmp_path.iterdir()}
    assert {f"fig{n}.png" for n in (1, 2, 3, 4, 5)} <= names
    assert {"fig1.csv", "fig2.csv", "fig3.csv", "fig5.csv", "regimes.csv", "courses.csv"} <= names
    assert len([name for name in names if name.startswith("fig3-")]) == 12
    assert not [name for name in names if name.endswith(".partial")]

    ledger = json.loads((tmp_path / "ledger.json").read_text())
    assert len(ledger["claims"]) == len(claims) >= 12
    assert {claim["verdict"] for claim in ledger["claims"]} <= set(Verdict)
    assert ledger["seeds"] == 5
    assert ledger["made_by"]["versions"]["numpy"]

    with (tmp_path / "fig3.csv").open() as file:
        header = next(csv.reader(file))
    assert header == ["regime", "chain", "agent", "ensemble_size", "episode", "value", "interval"]
    report = (tmp_path / "report.html").read_text()
    # What matters comes first: how many claims hold, each verdict, and the contents.
    places = [
        report.index(part) for part in ('class="verdicts"', 'class="map"', 'class="contents"', "<h2 id=")
    ]
    assert places == sorted(places)
    assert all(f"Figure {n}" in report for n in range(1, 6))
    assert "http" not in report


def test_one_figure_alone_needs_no_chains(tmp_path):
    heard = []
    Reproduction(tmp_path, seeds=5, episodes=50).make(["fig4"], heard.append)
    assert len(heard) == count_steps(["fig4"]) == 2
    assert {path.name for path in tmp_path.iterdir()} == {"fig4.png", "ledger.json", "report.html"}


def test_names_are_checked_and_ordered():
    assert check_names([]) == list(FIGURES)
    assert check_names(["regimes", "fig2", "fig2"]) == ["fig2", "regimes"]
    with pytest.raises(ValueError, match="Unknown figure 'fig33'. Did you mean 'fig3'.*Known: deep, fig1"):
        check_names(["fig33"])


def test_bad_settings_are_refused_before_anything_runs(tmp_path):
    bad = ({"seeds": 4, "episodes": 5}, {"seeds": 5, "episodes": 0})
    for settings in (*bad, {"seeds": 5, "episodes": 5, "deep_steps": 0}):
        with pytest.raises(ValueError, match="at least"):
            Reproduction(tmp_path, **settings)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Cannot write"):
        Reproduction(tmp_path / "file", seeds=5, episodes=5)
