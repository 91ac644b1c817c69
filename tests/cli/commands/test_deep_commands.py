"""The deep floor's commands, called as a person would."""

import json
import shlex
import subprocess
import sys

import numpy as np
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
    told = capsys.readouterr().err.splitlines()
    assert told[0] == f"double-dqn on CartPole-v1: 120 steps → {run}"
    assert told[-1].startswith("done: double-dqn on CartPole-v1, 120 steps")
    config = RunFolder.open(run).config
    assert (config["agent"], config["environment"], config["steps"]) == ("double-dqn", "CartPole-v1", 120)
    assert config["preset"] == "plain"
    assert config["options"]["seed"] == 3
    assert config["options"]["hidden"] == [8, 8]
    records = read_metrics(tmp_path / "run" / "metrics.jsonl")
    assert [r["step"] for r in records if "loss" in r] == [40, 80, 120]
    assert [r["step"] for r in records if "bias/mean" in r] == [60, 120]
    assert list((tmp_path / "run" / "events").iterdir())

    assert main(["evaluate", run, "--episodes", "2"]) == 0
    assert "bias/mean" in capsys.readouterr().out
    assert main(["resume", run, "--steps", "150"]) == 0
    assert capsys.readouterr().err.startswith(f"double-dqn on CartPole-v1: steps 120 to 150 → {run}\n")
    assert RunFolder.open(run).checkpoints.steps()[-1] == 150


def test_the_first_line_says_how_many_members_learn(tmp_path, capsys):
    run = str(tmp_path / "run")
    assert main(["train", "ebql/ProbeOneStep-v0", "--ensemble-size", "3", *QUICK, "--out", run]) == 0
    assert capsys.readouterr().err.startswith(f"ebql on ebql/ProbeOneStep-v0: 120 steps, 3 members → {run}\n")


def test_a_folder_that_is_taken_is_one_line(tmp_path, refused):
    words = ["train", "ebql/ProbeOneStep-v0", *QUICK, "--out", str(tmp_path / "run")]
    assert main(words) == 0
    assert "holds another run" in refused(words)


def test_rainbow_and_its_parts_are_words_of_the_command_line(tmp_path, capsys):
    run = str(tmp_path / "run")
    words = ["--agent", "rainbow", "--no-noisy", "--epsilon-start", "1", "--atoms", "11", *QUICK]
    assert main(["train", "CartPole-v1", *words, "--out", run]) == 0
    options = RunFolder.open(run).config["options"]
    assert (options["prioritized"], options["noisy"], options["atoms"]) == (True, False, 11)
    assert main(["resume", run, "--steps", "150"]) == 0
    assert main(["evaluate", run, "--episodes", "1"]) == 0
    run = str(tmp_path / "adaptive")
    assert (
        main(["train", "CartPole-v1", "--split", "adaptive", "--exploration", "ucb", *QUICK, "--out", run])
        == 0
    )
    assert all(
        1 <= r["split"] <= 4 for r in read_metrics(tmp_path / "adaptive" / "metrics.jsonl") if r.get("loss")
    )


def test_blocks_of_updates_are_an_option_of_the_command_line(tmp_path):
    words = ["--agent", "dqn", "--update-period", "16", "--updates-per-period", "8", *QUICK]
    assert main(["train", "CartPole-v1", *words, "--out", str(tmp_path / "run")]) == 0
    options = RunFolder.open(tmp_path / "run").config["options"]
    starts, steps = options["learning_starts"], 120
    assert (options["update_period"], options["updates_per_period"]) == (16, 8)
    records = [r for r in read_metrics(tmp_path / "run" / "metrics.jsonl") if "updates" in r]
    assert records[-1]["updates"] == 8 * sum(step >= starts for step in range(16, steps + 1, 16)) > 0


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
        (
            "train CartPole-v1 --agent rainbow --data masked",
            "data masked needs an ensemble-size of at least 2",
        ),
        (
            "train CartPole-v1 --ensemble-size 2 --split adaptive",
            "adaptive needs an ensemble-size of at least 3",
        ),
        ("train CartPole-v1 --atoms 51 --v-min 1 --v-max 0", "v-min (1.0) must be below v-max (0.0)"),
        ("train CartPole-v1 --preset minatari", "Did you mean 'minatar'"),
        ("train CartPole-v7", "Did you mean 'CartPole-v1'"),
        ("train Pendulum-v1", "continuous"),
        ("train CartPole-v1 --device abacus", "Unknown device"),
        ("train CartPole-v1 --torso minatar", "needs images"),
        ("train MinAtar/Breakout-v1 --torso nature", "nature needs images"),
        ("train CartPole-v1 --learning-rate inf", "learning-rate must be a finite number"),
        ("train CartPole-v1 --agent dqn --data masked", "dqn has no --data; ebql, rainbow"),
        ("train CartPole-v1 --agent dqn --ensemble_size=5", "dqn has no --ensemble_size; ebql, rainbow"),
        ("train CartPole-v1 --agent ebql --subset-size 2", "ebql has no --subset-size; redq and adaeq do."),
        ("train CartPole-v1 --agent double-dqn --no-share-torso", "double-dqn has no --no-share-torso;"),
        ("resume nothing", "no run folder"),
        ("evaluate nothing", "no saved agent"),
    ],
)
def test_bad_input_is_one_clear_line_and_exit_code_2(words, told, refused, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert told in refused(words.split())
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


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda c: c["options"].update(ensemble_size=4), "do not fit the options"),
        (lambda c: c["options"].update(optimiser="rmsprop"), "do not fit the options"),
        (lambda c: c["options"].update(n_step=1.5), "n-step must be a whole number"),
        (lambda c: c.update(agent="eqbl"), "Did you mean 'ebql'"),
        (lambda c: c.pop("agent"), "lacks agent"),
        (lambda c: c.pop("options"), "lacks options"),
        (lambda c: c.pop("steps"), "lacks steps"),
        (lambda c: c["observation"].pop("shape"), "does not describe an observation"),
    ],
    ids=["members", "optimiser", "kind", "agent", "no agent", "no options", "no steps", "observation"],
)
def test_a_changed_config_is_refused_in_one_line(change, told, refused, tmp_path):
    run = tmp_path / "run"
    assert main(["train", "ebql/ProbeOneStep-v0", "--ensemble-size", "3", *QUICK, "--out", str(run)]) == 0
    config = json.loads((run / "config.json").read_text())
    change(config)
    (run / "config.json").write_text(json.dumps(config))
    for words in (["resume", str(run), "--steps", "150"], ["evaluate", str(run)], ["watch", str(run)]):
        assert "config.json' was changed after it was written" in refused(words)
        assert told in refused([*words, "--accept-changes"])


def test_a_film_that_is_refused_leaves_no_folder(refused, tmp_path):
    run, film = tmp_path / "run", tmp_path / "films" / "a.gif"
    assert main(["train", "CartPole-v1", *QUICK, "--out", str(run)]) == 0
    for words, told in ((["--seed", "-1"], "seed must not be negative"), (["--episodes", "0"], "at least 1")):
        assert told in refused(["watch", str(run), *words, "--out", str(film)])
    assert not film.parent.exists()


@pytest.mark.parametrize(
    ("words", "preset"),
    [
        ("{probe} --out CartPoleRuns", "plain"),
        ("--out CartPoleRuns {probe}", "plain"),
        ("--no-share-torso {cart} --out x", "cartpole"),
        ("--out=CartPoleRuns {probe}", "plain"),
        ("--hidden 8 8 --seed 1 {cart} --out MinAtar/x", "cartpole"),
    ],
)
def test_only_the_environment_settles_the_preset(words, preset, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = words.format(probe="ebql/ProbeOneStep-v0", cart="CartPole-v1")
    quick = "--steps 20 --replay-size 100 --learning-starts 50 --evaluation-period 0"
    assert main(["train", *words.split(), *quick.split()]) == 0
    (config,) = tmp_path.glob("**/config.json")
    assert json.loads(config.read_text())["preset"] == preset


def test_an_agent_learns_from_a_runs_replay(tmp_path, capsys):
    data, out = tmp_path / "data", tmp_path / "offline"
    assert main(["train", "CartPole-v1", "--agent", "dqn", *QUICK, "--out", str(data)]) == 0
    assert main(["train", "--from", str(data), "--agent", "dqn", *QUICK, "--out", str(out)]) == 0
    told = capsys.readouterr().err
    assert f"dqn on CartPole-v1 from {data}: 120 updates → {out}" in told
    assert main(["resume", str(out), "--steps", "150"]) == 0
    assert "updates 120 to 150" in capsys.readouterr().err
    records = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    assert records[-1]["step"] == 150
    assert main(["curves", str(out), "--out", str(tmp_path / "curves")]) == 0


def test_data_without_an_environment_needs_one(tmp_path, capsys):
    assert main(["train", "--steps", "10"]) == 2
    assert capsys.readouterr().err == "error: Which environment? For example: ebql train CartPole-v1\n"
    path = tmp_path / "data.npz"
    np.savez(path, actions=np.zeros(3, int))
    assert main(["train", "--from", str(path)]) == 2
    assert f"{path} does not name its environment: ebql train ENV --from {path}" in capsys.readouterr().err
    assert main(["train", "CartPole-v1", "--from", str(path), "--out", str(tmp_path / "run")]) == 2
    assert "The data lacks observations, rewards, next_observations" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
