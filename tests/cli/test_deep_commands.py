"""The deep floor's commands, called as a person would."""

import shlex
import subprocess
import sys

import pytest

from ebql.cli import main
from ebql.runs import RunFolder, read_metrics

QUICK = shlex.split(
    "--preset plain --steps 120 --hidden 8 8 --learning-starts 20 --replay-size 100 --log-period 40 "
    "--evaluation-period 60 --evaluation-episodes 2 --checkpoint-period 50"
)


def test_train_evaluate_and_resume(tmp_path, capsys):
    run = str(tmp_path / "run")
    assert main(["train", "CartPole-v1", "--agent", "double-dqn", "--seed", "3", *QUICK, "--out", run]) == 0
    assert "done: double-dqn on CartPole-v1" in capsys.readouterr().err
    config = RunFolder.open(run).config
    assert (config["agent"], config["environment"], config["steps"]) == ("double-dqn", "CartPole-v1", 120)
    assert config["options"]["seed"] == 3
    assert config["options"]["hidden"] == [8, 8]
    records = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [r["step"] for r in records if "loss" in r] == [40, 80, 120]
    assert [r["step"] for r in records if "bias/mean" in r] == [60, 120]
    assert list((tmp_path / "run" / "events").iterdir())

    assert main(["evaluate", run, "--episodes", "2"]) == 0
    assert "bias/mean" in capsys.readouterr().out
    assert main(["resume", run, "--steps", "150"]) == 0
    assert RunFolder.open(run).checkpoints.steps()[-1] == 150


def test_the_default_folder_names_the_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "ebql/ProbeOneStep-v0", "--ensemble-size", "2", *QUICK]) == 0
    assert (tmp_path / "runs" / "ebql-ProbeOneStep-v0-ebql-0" / "config.json").exists()


def test_lists(capsys):
    assert main(["agents"]) == 0
    assert main(["environments"]) == 0
    told = capsys.readouterr().out
    for name in ("dqn", "double-dqn", "ebql", "CartPole-v1", "MinAtar/Breakout-v1"):
        assert name in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("train CartPole-v1 --agent eqbl", "Did you mean 'ebql'"),
        ("train CartPole-v1 --ensemble-size 1", "ensemble-size ≥ 2"),
        ("train CartPole-v1 --steps 0", "steps must be positive"),
        ("train CartPole-v1 --preset minatari", "Did you mean 'minatar'"),
        ("train CartPole-v7", "Did you mean 'CartPole-v1'"),
        ("train Pendulum-v1", "continuous"),
        ("train CartPole-v1 --device abacus", "Unknown device"),
        ("train CartPole-v1 --torso minatar", "needs images"),
        ("resume nothing", "no run folder"),
        ("evaluate nothing", "no saved agent"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(words, told, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(words.split()) == 2
    error = capsys.readouterr().err
    assert told in error
    assert error.count("\n") == 1
    assert not any(tmp_path.iterdir())


def test_help_shows_the_options_of_the_agent_with_the_defaults_of_the_preset(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--help", "--agent", "ebql", "--preset", "minatar"])
    told = capsys.readouterr().out
    assert "--ensemble-size" in told
    assert "(default: 100000)" in told
    with pytest.raises(SystemExit):
        main(["train", "--help", "--agent", "dqn"])
    assert "--ensemble-size" not in capsys.readouterr().out


def test_help_answers_without_torch():
    code = "import sys, ebql.cli; sys.exit('torch' in sys.modules or 'gymnasium' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
