"""A stranger's run, agent or study imports none of its modules unless the user names them."""

import sys

import gymnasium
import pytest

from ebql import DQN
from ebql.cli import main

MODULE = """
from pathlib import Path
import gymnasium
from ebql.environments.exact.probes import ProbeEnv
Path("imported").touch()
gymnasium.register("Lure-v0", lambda **_: ProbeEnv("OneStep"))
"""
STUDY = """
agents = ["dqn"]
environments = ["lure:Lure-v0"]
seeds = 1
steps = 60
preset = "plain"
evaluation_period = 0
"""

OPTIONS = {"preset": "plain", "evaluation_period": 0, "hidden": (8, 8)}


def forget(folder):
    sys.modules.pop("lure", None)
    gymnasium.registry.pop("Lure-v0", None)
    (folder / "imported").unlink(missing_ok=True)


@pytest.fixture
def strangers(tmp_path, monkeypatch):
    """Return a folder with a stranger's module, run, agent and study; nothing of it has been imported."""
    (tmp_path / "lure.py").write_text(MODULE)
    (tmp_path / "study.toml").write_text(STUDY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    DQN("lure:Lure-v0", **OPTIONS).learn(60, out="run").save("agent")  # typed: the user's own word
    assert (tmp_path / "imported").exists()
    forget(tmp_path)
    yield tmp_path
    forget(tmp_path)


def test_an_id_on_the_command_line_is_the_users_own_word(strangers):
    assert (
        main(
            ["train", "lure:Lure-v0", "--agent", "dqn", "--steps", "9", "--preset", "plain", "--out", "typed"]
        )
        == 0
    )


COMMANDS = [
    "resume run --steps 80",
    "evaluate run --episodes 1",
    "evaluate agent.safetensors --episodes 1",
    "sweep study.toml",
]


@pytest.mark.parametrize("command", [*COMMANDS, "watch run", "watch agent.safetensors"])
def test_a_file_imports_no_module(strangers, refused, command):
    told = refused(command.split())
    assert "'lure'" in told
    assert "--import lure" in told
    assert not (strangers / "imported").exists()


@pytest.mark.parametrize("command", COMMANDS)
def test_the_user_may_import_it(strangers, command):
    word, *rest = command.split()
    assert main([word, "--import", "lure", *rest]) == 0
    assert (strangers / "imported").exists()


def test_an_agent_predicts_without_its_module(strangers):
    agent = DQN.load("agent")
    agent.predict([0.0], deterministic=True)
    assert not (strangers / "imported").exists()
    with pytest.raises(ValueError, match="--import lure"):
        agent.learn(1)
    assert DQN.load("agent", environment="lure:Lure-v0").evaluate(1).lengths == (1,)


def test_a_module_in_the_current_folder_takes_no_others_place(strangers):
    """Python searches the current folder first for `python -m`, which starts the workers of a sweep."""
    (strangers / "gymnasium.py").write_text("open('imported', 'w'); raise SystemExit(9)")
    (strangers / "study.toml").write_text(STUDY.replace("lure:Lure-v0", "CartPole-v1"))
    assert main(["sweep", "study.toml", "--out", "study"]) == 0
    assert not (strangers / "imported").exists()
