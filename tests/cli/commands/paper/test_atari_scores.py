"""`ebql reproduce table1` and `fig6`, called as a person would."""

import csv
import json

import pytest

from ebql.cli import main
from ebql.paper.atari.published import GAMES
from ebql.terminal.wording import short

PONG = "ALE/Pong-v5"

pytestmark = pytest.mark.usefixtures("paper_preset")


@pytest.fixture(autouse=True)
def wide(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")


def rows_of(path):
    with path.open() as file:
        return list(csv.DictReader(file))


def test_without_runs_the_paper_is_printed_and_how_to_make_ours(tmp_path, capsys):
    assert main(["reproduce", "table1", "fig6", "--out", str(tmp_path / "out")]) == 0
    told = capsys.readouterr().out
    assert "361205.1" in told
    assert "33 of 33 cells are missing" in told
    assert "ebql train ALE/Asterix-v5 --agent ebql --preset atari-paper --steps 50000000" in told
    assert "No runs: this is the paper alone" in told
    assert all(len(line) <= 100 for line in told.splitlines() if "→" not in line)
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"table1.csv", "fig6.csv", "fig6.png"}
    assert len(rows_of(tmp_path / "out" / "table1.csv")) == 55


def test_runs_stand_beside_the_paper_with_seeds_steps_and_frames(write_run, tmp_path, capsys):
    for seed, last in enumerate((10.0, 14.0)):
        write_run(f"runs/e{seed}", [0, last], environment=PONG, agent="ebql", ensemble_size=5, seed=seed,
                  period=500_000)  # fmt: skip
    write_run("runs/d", [-3.25], environment=PONG, period=250_000, learning_rate=1e-3)
    out = tmp_path / "out"
    assert main(["reproduce", "table1", "fig6", "--runs", str(tmp_path / "runs"), "--out", str(out)]) == 0
    told = capsys.readouterr().out
    assert "±" not in told.replace("± 95%", "")
    assert "12.0" in told
    assert "10.0 to 14.0" in told
    assert "2 seeds, 1M" in told
    assert "4M frames" in told
    assert "-3.2†" in told
    assert "† DQN on Pong: preset none, which differs from atari-paper in learning_rate." in told
    assert "31 of 33 cells are missing" in told
    assert all(len(line) <= 100 for line in told.splitlines() if "→" not in line)
    own = [row for row in rows_of(out / "table1.csv") if row["source"] == "ours"]
    assert [(row["agent"], row["score"], row["most_frames"]) for row in own] == [
        ("DQN", "-3.25", "1000000"),
        ("EBQL K=5", "12", "4000000"),
    ]
    assert (out / "fig6.png").read_bytes().startswith(b"\x89PNG")


def test_five_seeds_have_an_interval(write_run, tmp_path, capsys):
    for seed in range(5):
        write_run(f"runs/e{seed}", [float(seed)], environment=PONG, agent="ebql", ensemble_size=5, seed=seed)
    assert main(["reproduce", "table1", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "2.0 ±2.0" in told  # 2.776 × √(2.5 / 5)
    assert "0.0 to 4.0" not in told


def test_a_narrow_terminal_cuts_nothing_off(write_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    write_run("runs/e", [18.4], biases=[0.5], environment=PONG, agent="ebql", ensemble_size=5)
    assert main(["reproduce", "table1", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    assert "…" not in told
    assert told.count("VideoPinball") == 2
    assert told.count("18.4") == 1


def test_other_agents_and_variants_have_a_table_of_their_own(write_run, tmp_path, capsys):
    write_run("runs/a", [1], environment=PONG, envs=1)
    write_run("runs/b", [2], environment=PONG, envs=8, seed=1)
    write_run("runs/c", [9.3], environment="breakout", agent="ebql", ensemble_size=10)
    assert main(["reproduce", "table1", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path / "o")]) == 0
    told = capsys.readouterr().out
    assert "see below" in told
    assert "DQN, envs=8" in told
    assert "EBQL K=10" in told


def test_short_runs_stand_beside_published_ones_and_get_a_verdict(write_run, tmp_path, capsys):
    for name, score in {"dqn": 1.0, "double-dqn": 3.0, "ebql": 2.0}.items():
        members = {"ensemble_size": 5} if name == "ebql" else {}
        for game in GAMES:
            where = f"runs/{name}-{game}"
            options = {"learning_rate": 1e-4, **members}
            write_run(where, [score], environment=f"ALE/{game}-v5", agent=name, period=100_000, **options)
    assert main(["reproduce", "table1", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "Published scores after 100k agent steps, and ours" in told
    assert "DrQ(ε): Agarwal et al., NeurIPS 2021; means of 100 runs, from the data kept with IRIS." in told
    assert "figure 6, EBQL is ahead early in training: mixed" in told
    assert "share of games in which EBQL K=5 scores higher than DQN: 1.00 [0.63, 1.00]" in told
    assert "† All of ours: preset none, which differs from atari-paper in learning_rate." in told
    (claim,) = json.loads((tmp_path / "atari_ledger.json").read_text())["claims"]
    assert [found["verdict"] for found in claim["evidence"]] == ["holds", "fails"]
    rows = rows_of(tmp_path / "table1.csv")
    (pong,) = [row for row in rows if (row["game"], row["agent"]) == ("Pong", "SPR")]
    assert (pong["score"], pong["most_frames"]) == ("-5.9", "400000")


def test_the_bias_is_shown_where_it_was_measured(write_run, edit_log, tmp_path, capsys):
    write_run("runs/e", [10.0], environment=PONG, agent="ebql", ensemble_size=5)
    folder = write_run("runs/d", [10.0], environment="ALE/Qbert-v5", agent="ebql", ensemble_size=5)
    edit_log(folder / "metrics.jsonl", "bias/mean", "bias/other")
    assert main(["reproduce", "table1", "--runs", str(tmp_path / "runs"), "--out", str(tmp_path)]) == 0
    told = capsys.readouterr().out
    _, _, after = told.partition("Bias of our agents in the rewards that they learn from")
    biases, _, _ = after.partition("cells are missing")
    assert "+10.00" in biases
    assert "Qbert" not in biases
    own = {row["game"]: row["bias"] for row in rows_of(tmp_path / "table1.csv") if row["source"] == "ours"}
    assert own == {"Pong": "10", "Qbert": ""}


def test_table1_is_no_figure_of_the_chains(tmp_path):
    assert main(["reproduce", "fig4", "table1", "--out", str(tmp_path)]) == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"fig4.png", "ledger.json", "report.html", "table1.csv"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("reproduce table2", "Did you mean 'table1'"),
        ("reproduce table1 --runs nothing", "no run folder 'nothing'"),
        ("reproduce fig6 --runs elsewhere", "None of these runs is on a game of table 1; they are on W-v0."),
        ("reproduce fig6 --runs fresh", "None of these 1 Atari runs has been evaluated yet"),
        ("reproduce --runs elsewhere", "--runs is for table1 and fig6"),
        ("reproduce fig4 --runs elsewhere", "--runs is for table1 and fig6"),
        ("reproduce table1 --out /dev/null/x", "Cannot write to the folder"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(words, told, write_run, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write_run("elsewhere/a", [1])
    write_run("fresh/a", [], environment=PONG)
    assert told in refused(words.split())
    assert {path.name for path in tmp_path.iterdir()} == {"elsewhere", "fresh"}


def test_steps_in_few_letters():
    assert [short(n) for n in (32, 250_000, 1_250_000, 50_000_000, 200_000_000)] == [
        "32",
        "250k",
        "1.25M",
        "50M",
        "200M",
    ]
