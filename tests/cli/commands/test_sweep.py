"""`ebql sweep`, called as a person would."""

import csv
import shlex
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from ebql.cli import main
from ebql.cli.study_tables import duration
from ebql.runs import exclusive
from ebql.studies.costs import Speed, speeds
from ebql.studies.definition import read_study
from ebql.studies.plan import plan

TABLES = """
kind = "tabular"
agents = ["q-learning", "double-q-learning"]
environments = ["ebql/MetaChain-v0"]
seeds = 20
episodes = 50
"""
DEEP = """
agents = ["dqn", "ebql"]
environments = ["ebql/ProbeOneStep-v0"]
seeds = [0, 1]
steps = 100
preset = "plain"
hidden = [8]
learning_starts = 20
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tables.toml").write_text(TABLES)
    (tmp_path / "deep.toml").write_text(DEEP)
    return tmp_path


def test_a_study_of_tables_from_its_cost_to_its_summary(folder, capsys):
    assert main(["sweep", "tables.toml", "--dry-run"]) == 0
    told, progress = capsys.readouterr()
    assert "measuring the speed of q-learning on ebql/MetaChain-v0 (1 of 2)\n" in progress
    assert "measuring the speed of double-q-learning on ebql/MetaChain-v0 (2 of 2)\n" in progress
    assert "2 runs: 0 finished, 0 to resume, 2 new" in told
    assert "40 seeds in 2 runs" in told
    assert {path.name for path in folder.iterdir()} == {"tables.toml", "deep.toml"}

    assert main(["sweep", "tables.toml", "--out", "out"]) == 0
    told = capsys.readouterr()
    assert "ebql-MetaChain-v0_q-learning_all-seeds done" in told.err
    assert "95% intervals" in told.out
    assert "double-q-learning" in told.out
    assert (folder / "out" / "curves.csv").exists()

    assert main(["sweep", "--status", "out"]) == 0
    assert "2 done" in capsys.readouterr().out
    assert main(["sweep", "tables.toml", "--out", "out"]) == 0
    assert "running" not in capsys.readouterr().err
    assert main(["sweep", "tables.toml", "--out", "out", "--dry-run"]) == 0
    told, progress = capsys.readouterr()
    assert "2 runs: 2 finished, 0 to resume, 0 new" in told
    assert progress == ""

    (folder / "tables.toml").write_text(TABLES.replace("seeds = 20", "seeds = 8"))
    assert main(["sweep", "tables.toml", "--out", "out"]) == 0
    assert {line.split(",")[4] for line in Path("out/summary.csv").read_text().splitlines()[1:]} == {"8"}

    (folder / "tables.toml").write_text(TABLES + "epsilon = 0.5\n")
    assert main(["sweep", "tables.toml", "--out", "out"]) == 2
    assert "has epsilon 0.1, the study 0.5" in capsys.readouterr().err


def test_a_sweep_ends_with_the_next_command(folder, capsys):
    for _ in range(2):  # the second time, all is done already
        assert main(["sweep", "tables.toml", "--out", "my out"]) == 0
        told = capsys.readouterr().err.splitlines()
        assert told[-2:] == ["done: 2 runs  → my out", "→ next: ebql report 'my out'"]
    assert main(shlex.split(told[-1].removeprefix("→ next: ebql "))) == 0


def test_a_sweep_whose_runs_failed_ends_with_the_command_that_tries_again(folder, capsys):
    (folder / "deep.toml").write_text(DEEP.replace("[0, 1]", "[0]") + "learning_rate = 1e30\n")
    assert main(["sweep", "deep.toml", "--out", "my out", "--workers", "2"]) == 1
    told = capsys.readouterr().err
    assert "2 of 2 runs failed. ebql-ProbeOneStep-v0_dqn_0: " in told
    assert told.endswith(" → to try again: ebql sweep deep.toml --out 'my out' --workers 2\n")
    assert "next:" not in told


def test_a_sweep_that_was_stopped_ends_with_the_command_that_continues(folder, capsys, monkeypatch):
    def stopped(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("ebql.studies.sweep.sweep", stopped)
    assert main(["sweep", "deep.toml", "--out", "[my] out"]) == 130
    assert capsys.readouterr().err == "Stopped. → to continue: ebql sweep deep.toml --out '[my] out'\n"


def test_a_sweep_with_runs_that_another_stopped_says_how_to_continue(folder, capsys, monkeypatch):
    monkeypatch.setattr("ebql.studies.sweep.sweep", lambda *_, **__: None)
    assert main(["sweep", "deep.toml", "--out", "out"]) == 1
    assert capsys.readouterr().err.endswith(
        "4 of 4 runs are unfinished. → to continue: ebql sweep deep.toml --out out\n"
    )


def test_the_old_name_of_a_key_is_one_note_and_the_study_runs(folder, capsys):
    (folder / "tables.toml").write_text(TABLES.replace("kind =", "floor ="))
    assert main(["sweep", "tables.toml", "--out", "out"]) == 0
    notes = [line for line in capsys.readouterr().err.splitlines() if "floor" in line]
    assert notes == ['note: The key floor is now called kind: write kind = "tabular" in the study.']
    assert main(["sweep", "--status", "out"]) == 0
    assert "floor" not in capsys.readouterr().err


def test_kept_runs_are_left_out_on_a_fresh_machine(folder, capsys):
    first = DEEP.replace("[0, 1]", "[0]")
    (folder / "deep.toml").write_text(first)
    assert main(["sweep", "deep.toml", "--out", "old"]) == 0
    assert main(["keep", "old", "--out", "results/probe"]) == 0
    told = capsys.readouterr().err
    assert (
        "2 new runs kept, 0 kept before; 2 in all  → results/probe\n→ next: ebql report results/probe" in told
    )

    again = ["sweep", "deep.toml", "--out", "new", "--kept", "results/probe"]
    assert main(again) == 0
    assert capsys.readouterr().err == "2 of 2 runs are kept in results/probe\n"
    assert not (folder / "new").exists()

    (folder / "deep.toml").write_text(DEEP)
    assert main([*again, "--dry-run"]) == 0
    assert "2 runs: 0 finished, 0 to resume, 2 new" in capsys.readouterr().out
    assert main(again) == 0
    told = capsys.readouterr().err
    assert told.startswith("2 of 4 runs are kept in results/probe\n2 runs: 0 finished, 0 to resume, 2 new\n")
    assert sorted(path.name for path in Path("new/runs").iterdir()) == [
        "ebql-ProbeOneStep-v0_dqn_1",
        "ebql-ProbeOneStep-v0_ebql_1",
    ]
    assert main(["sweep", "--status", "new", "--kept", "results/probe"]) == 0
    assert "2 done" in capsys.readouterr().out
    assert main(["keep", "new", "--out", "results/probe"]) == 0
    assert "2 new runs kept, 0 kept before; 4 in all" in capsys.readouterr().err
    assert main(["report", "results/probe"]) == 0
    assert (folder / "results/probe/report/report.html").exists()


def test_a_planned_study_has_no_kept_runs_yet(folder, capsys):
    (folder / "planned").mkdir()
    (folder / "deep.toml").rename(folder / "planned" / "study.toml")
    command = ["sweep", "planned/study.toml", "--out", "new", "--kept", "planned", "--dry-run"]
    assert main(command) == 0
    assert "0 of 4 runs are kept in planned\n" in capsys.readouterr().err


def test_runs_kept_with_other_options_or_fewer_steps_are_run(folder, capsys):
    (folder / "deep.toml").write_text(DEEP.replace("[0, 1]", "[0]"))
    assert main(["sweep", "deep.toml", "--out", "old"]) == 0
    assert main(["keep", "old", "--out", "kept"]) == 0
    for change in ("steps = 120", "steps = 100\ndiscount = 0.5", "steps = 100\nthreads = 2"):
        (folder / "deep.toml").write_text(DEEP.replace("steps = 100", change))
        capsys.readouterr()
        assert main(["sweep", "deep.toml", "--out", "new", "--kept", "kept", "--dry-run"]) == 0
        kept = 2 if "threads" in change else 0  # which changes nothing that is learnt
        assert f"{kept} of 4 runs are kept in kept\n" in capsys.readouterr().err


def test_a_sweep_that_may_not_begin_says_one_line(folder, refused):
    (folder / "out").mkdir()
    with exclusive(folder / "out" / ".lock", "held"):
        assert "Another sweep is running in 'out'" in refused(["sweep", "tables.toml", "--out", "out"])


def test_a_tracker_that_is_missing_or_has_nothing_to_track_is_one_line(folder, refused, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    assert "wandb is not installed: pip install wandb" in refused(["sweep", "deep.toml", "--track", "wandb"])
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace())
    assert "--track is for deep agents" in refused(["sweep", "tables.toml", "--track", "wandb"])
    assert {path.name for path in folder.iterdir()} == {"tables.toml", "deep.toml"}


def test_damaged_seeds_are_one_line(folder, refused, capsys):
    assert main(["sweep", "tables.toml", "--out", "out"]) == 0
    (folder / "out/runs/ebql-MetaChain-v0_q-learning_all-seeds/seeds.npz").write_bytes(b"PK\3\4 no archive")
    assert "seeds.npz' is damaged" in refused(["report", "out"])
    capsys.readouterr()
    assert main(["sweep", "tables.toml", "--out", "out"]) == 1  # the other runs would go on
    assert "seeds.npz' is damaged" in "".join(" ".join(capsys.readouterr()).split("\n"))
    assert main(["sweep", "--status", "out"]) == 0
    assert "failed" in capsys.readouterr().out


def test_few_seeds_tell_no_interval(folder, capsys):
    (folder / "tables.toml").write_text(TABLES.replace("seeds = 20", "seeds = 4"))
    assert main(["sweep", "tables.toml", "--out", "out"]) == 0
    told = capsys.readouterr().out
    assert "an interval needs 5 seeds or more" in told
    assert "inf" not in told
    assert "±" not in told
    for name in ("curves.csv", "summary.csv"):
        with (folder / "out" / name).open() as file:
            rows = list(csv.DictReader(file))
        assert {(row["seeds"], row["low"], row["high"]) for row in rows} == {("4", "", "")}

    (folder / "tables.toml").write_text(TABLES.replace("seeds = 20", "seeds = 5"))
    assert main(["sweep", "tables.toml", "--out", "out"]) == 0
    told = capsys.readouterr().out
    assert "seeds, with 95% intervals" in told
    assert told.count("±") == 2 * 4


def test_only_what_has_no_evidence_is_measured(folder, monkeypatch):
    """Of two families of environments, one agent has a finished run in one of them."""
    monkeypatch.setattr("ebql.studies.costs._trial", lambda run: Speed(1.0, "tried"))
    deep = DEEP.replace('v0"]', 'v0", "ebql/ProbeDiscount-v0", "CartPole-v1"]')
    (folder / "deep.toml").write_text(deep)
    run = folder / "out/runs/ebql-ProbeOneStep-v0_dqn_0"
    run.mkdir(parents=True)
    (run / "timing.jsonl").write_text('{"step": 60, "seconds": 2.0}\n')
    told = []
    speeds(
        plan(read_study("deep.toml"), "out"),
        lambda run, *count: told.append((run.label, run.environment, *count)),
    )
    assert told == [
        ("ebql", "ebql/ProbeOneStep-v0", 1, 3),
        ("dqn", "CartPole-v1", 2, 3),
        ("ebql", "CartPole-v1", 3, 3),
    ]


def test_a_dry_run_says_how_long_the_study_takes(folder, capsys):
    options = shlex.split("--preset plain --hidden 8 --learning-starts 20 --seed 0 --steps 60")
    run = "out/runs/ebql-ProbeOneStep-v0_dqn_0"
    assert main(["train", "ebql/ProbeOneStep-v0", "--agent", "dqn", *options, "--out", run]) == 0
    (folder / run / "timing.jsonl").write_text('{"step": 60, "seconds": 2.0}\n')
    deep = DEEP.replace('v0"]', 'v0", "ebql/ProbeDiscount-v0"]')
    (folder / "deep.toml").write_text(deep.replace('"ebql"]', '"double-dqn"]'))
    capsys.readouterr()
    assert main(["sweep", "deep.toml", "--out", "out", "--dry-run", "--workers", "3"]) == 0
    told = capsys.readouterr().out
    assert "8 runs: 0 finished, 1 to resume, 7 new" in told
    assert "740 steps in 8 runs" in told
    assert "with 3 at a time" in told
    assert "runs of this study; runs of this study in similar environments" in " ".join(told.split())


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("sweep", "Which study?"),
        ("sweep nothing.toml", "Cannot read the study 'nothing.toml': No such file or directory."),
        ("sweep deep.toml --address 1.2.3.4:6379", "add --on ray"),
        ("sweep deep.toml --workers 0", "workers must be at least 1"),
        ("sweep deep.toml --on ray --address head", "HOST:PORT"),
        ("sweep deep.toml --on ray --address ray://head:10001", "HOST:PORT"),
        ("sweep deep.toml --on ray --address 127.0.0.1:1", "No Ray cluster can be reached at 127.0.0.1:1"),
        ("sweep deep.toml --on ray --address 127.0.0.1:1 --workers 3", "workers is for this machine"),
        ("sweep --status nothing", "There is no study in 'nothing'"),
        ("sweep deep.toml --status out", "--status takes no other arguments"),
        ("sweep deep.toml --kept nothing", "There are no kept results in 'nothing'"),
        ("sweep tables.toml --kept nothing", "--kept is for deep agents"),
        ("keep nothing --out kept", "nothing"),
    ],
)
def test_bad_input_is_one_clear_line_and_nothing_is_started(words, told, folder, refused):
    assert told in refused(words.split())
    assert {path.name for path in folder.iterdir()} == {"tables.toml", "deep.toml"}


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (None, ""),
        (40.4, "40 s"),
        (180, "3 min"),
        (7_800, "2 h 10 min"),
        (86_400 * 3 + 3_600 * 4, "3 days 4 h"),
        (86_400 * 1_500, "1,500 days 0 h"),
    ],
)
def test_times_as_people_say_them(seconds, told):
    assert duration(seconds) == told
