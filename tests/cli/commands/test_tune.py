"""`ebql tune`, called as a person would."""

import csv

from ebql.cli import main

SPACE = "learning_rate = { low = 1e-4, high = 1e-2, log = true }\nhidden = [[4], [8, 8]]\n"


def test_a_search_ends_with_a_table_a_picture_and_a_study(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.toml").write_text(SPACE)
    command = ["tune", "ebql/ProbeOneStep-v0", "--agent", "dqn", "--trials", "2", "--steps", "1100"]
    assert main([*command, "--space", "space.toml", "--out", "found"]) == 0
    told = capsys.readouterr().err
    assert "dqn on ebql/ProbeOneStep-v0: 2 trials over learning_rate, hidden → found" in told
    assert "→ next: ebql sweep found/best.toml" in told
    rows = list(csv.DictReader((tmp_path / "found" / "trials.csv").read_text().splitlines()))
    assert [row["outcome"] for row in rows] == ["complete", "complete"]
    assert (tmp_path / "found" / "trials.png").read_bytes().startswith(b"\x89PNG")
    assert main(["sweep", "found/best.toml", "--dry-run"]) == 0


def test_what_cannot_be_searched_is_refused_before_anything_is_written(tmp_path, monkeypatch, refused):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "space.toml").write_text("learning_rat = [1]\n")
    assert "Did you mean 'learning_rate'" in refused(["tune", "CartPole-v1", "--space", "space.toml"])
    assert "trials must be at least 1, not 0" in refused(["tune", "CartPole-v1", "--trials", "0"])
    assert "Unknown agent" in refused(["tune", "CartPole-v1", "--agent", "dqm"])
    assert {path.name for path in tmp_path.iterdir()} == {"space.toml"}
