"""`ebql watch`, `ebql curves`, `ebql report` and `--track`, called as a person would."""

import shlex
import sys
from types import SimpleNamespace

import pytest
from PIL import Image

from ebql import EBQL
from ebql.cli import main
from ebql.deep import saving as files

QUICK = shlex.split(
    "--preset plain --steps 60 --hidden 8 --learning-starts 20 --replay-size 100 --log-period 30 "
    "--evaluation-period 30 --evaluation-episodes 1"
)


@pytest.fixture
def saved(tmp_path):
    return EBQL("MinAtar/Breakout-v1", preset="plain", hidden=(8,)).save(tmp_path / "agent")


def test_watch_writes_a_film(saved, tmp_path, capsys):
    film = tmp_path / "films" / "film.gif"
    assert main(["watch", str(saved), "--out", str(film), "--max-steps", "4", "--fps", "20"]) == 0
    assert str(film) in capsys.readouterr().err.replace("\n", "")
    with Image.open(film) as gif:
        assert gif.n_frames == 5


def test_watch_without_out_writes_beside_the_agent(saved):
    assert main(["watch", str(saved), "--max-steps", "1"]) == 0
    assert saved.with_suffix(".gif").exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("--out film.avi", "Known: .gif, .mp4"),
        ("--out film.gif --fps 0", "fps must be at least 1"),
        ("--episodes 0", "episodes must be at least 1"),
        ("--max-steps -1", "max-steps must be at least 1"),
        ("--seed -1", "seed must not be negative"),
    ],
)
def test_watch_refuses_with_one_line_and_writes_nothing(words, told, saved, tmp_path, refused, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told in refused(["watch", str(saved), *words.split()])
    assert [path.name for path in tmp_path.iterdir()] == [saved.name]


def test_watch_of_an_environment_without_a_picture_is_refused(tmp_path, refused):
    saved = EBQL("ebql/ProbeOneStep-v0", preset="plain", hidden=(8,)).save(tmp_path / "agent")
    assert "cannot be rendered" in refused(["watch", str(saved)])


def test_watch_of_an_environment_that_does_not_fit_the_agent_is_refused(saved, tmp_path, refused):
    about, tensors = files.load(saved)
    files.save(saved, {**about, "environment": "MinAtar/Asterix-v1"}, tensors)
    error = refused(["watch", str(saved)])
    assert "expects observations (10, 10, 4) bool and 3 actions" in error
    assert "this environment has (10, 10, 4) bool and 5 starting at 0" in error
    assert [path.name for path in tmp_path.iterdir()] == [saved.name]


def test_metrics_go_to_a_tracker_and_then_into_curves(tmp_path, monkeypatch, capsys):
    steps = []
    fake = SimpleNamespace(
        init=lambda **options: steps.append(options["name"]),
        log=lambda _, step: steps.append(step),
        finish=lambda: steps.append("finished"),
    )
    monkeypatch.setitem(sys.modules, "trackio", fake)
    run = tmp_path / "run"
    assert (
        main(["train", "CartPole-v1", "--agent", "dqn", *QUICK, "--out", str(run), "--track", "trackio"]) == 0
    )
    assert steps == ["run", 30, 30, 60, 60, "finished"]

    assert main(["curves", str(run), "--out", str(tmp_path / "curves")]) == 0
    assert "1 runs, 0 of them unfinished" in capsys.readouterr().err
    assert (tmp_path / "curves" / "curves.png").read_bytes().startswith(b"\x89PNG")
    lines = (tmp_path / "curves" / "curves.csv").read_text().splitlines()
    assert lines[0] == "environment,agent,metric,step,seeds,mean,low,high"
    assert lines[1].startswith("CartPole-v1,DQN,evaluation/return,30,1,")
    last = (tmp_path / "curves" / "runs.csv").read_text().splitlines()
    assert last[0] == "environment,agent,seed,step,return,bias"
    assert [line.split(",")[:4] for line in last[1:]] == [["CartPole-v1", "DQN", "0", "60"]]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("train CartPole-v1 --track wandb", "pip install wandb"),
        ("watch nothing", "no saved agent"),
        ("curves nothing --out x", "no run folder"),
        ("curves --out x", "Which runs?"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(words, told, refused, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    monkeypatch.chdir(tmp_path)
    assert told in refused(words.split())
    assert not any(tmp_path.iterdir())


def test_report_writes_into_the_study_and_says_its_headline(write_run, tmp_path, capsys):
    write_run("study/runs/a", [1, 2, 3])
    write_run("study/runs/b", [2, 3, 4], agent="double-dqn")
    assert main(["report", str(tmp_path / "study")]) == 0
    assert capsys.readouterr().out.startswith(
        "One seed per agent cannot rank these agents: run at least five"
    )
    assert "<title>Study study</title>" in (tmp_path / "study" / "report" / "report.html").read_text()
    # A second report must not take the first one for a run.
    assert main(["report", str(tmp_path / "study")]) == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("nothing", "There is no run folder"),
        ("empty", "contains none"),
        ("study/runs/new", "None of the 1 runs"),
        ("study --out study/runs/a/config.json", "Cannot write to the folder"),
    ],
)
def test_report_refuses_with_one_line(words, told, write_run, tmp_path, refused, monkeypatch):
    write_run("study/runs/a", [1])
    write_run("study/runs/new", [], seed=1)
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    assert told in refused(["report", *words.split()])
    assert not (tmp_path / "study" / "report").exists()
