"""Agents and rules of the user's own."""

import sys
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

import ebql
from ebql.cli import main
from ebql.deep.agent import EBQL, Agent
from ebql.deep.agents import AGENTS
from ebql.deep.config.agents import CONFIGS
from ebql.deep.config.base import EnsembleConfig
from ebql.deep.targets import RULES, Rule, best
from ebql.errors import InputError, InputTypeError

MODULE = """
from dataclasses import dataclass
from typing import ClassVar

import ebql
from ebql.deep import Agent
from ebql.deep.config import EnsembleConfig
from ebql.deep.targets import Rule, best

@dataclass(frozen=True, kw_only=True)
class LuckyConfig(EnsembleConfig):
    name: ClassVar[str] = "lucky"
    rule: ClassVar[str] = "lucky"
    luck: float = 0.5

def lucky(after, luck):
    return luck * after.target.amax(1).gather(1, best(after, after.online))

@ebql.register
class Lucky(Agent):
    config_type = LuckyConfig
    rule = Rule(lucky, selects_online=True, arguments=lambda config, _after, _samples: (config.luck,))
"""


@dataclass(frozen=True, kw_only=True)
class TopConfig(EnsembleConfig):
    """The largest member evaluates."""

    name: ClassVar[str] = "top"
    rule: ClassVar[str] = "top"

    bonus: float = 0.0
    """Added to every value."""


def top(after, bonus):
    return after.target.amax(1).gather(1, best(after, after.online)) + bonus


class Top(Agent):
    config_type = TopConfig
    rule = Rule(top, selects_online=True, arguments=lambda config, _after, _samples: (config.bonus,))


@pytest.fixture(autouse=True)
def nothing_stays_registered():
    before = [(table, dict(table)) for table in (AGENTS, CONFIGS, RULES)]
    yield
    for table, content in before:
        table.clear()
        table.update(content)


def test_an_agent_of_ones_own_trains_saves_loads_and_resumes(small, tmp_path):
    assert ebql.register(Top) is Top
    agent = Top("CartPole-v1", ensemble_size=3, bonus=0.5, **small).learn(120, out=tmp_path / "run")
    loaded = Agent.load(agent.save(tmp_path / "top"))
    assert type(loaded) is Top
    assert loaded.config.bonus == 0.5
    observations = np.ones((3, 4))
    np.testing.assert_array_equal(loaded.q_values(observations), agent.q_values(observations))
    resumed = Agent.resume(tmp_path / "run", steps=160)
    whole = Top("CartPole-v1", ensemble_size=3, bonus=0.5, **small).learn(160)
    for name, tensor in whole._learner.state().items():
        np.testing.assert_array_equal(resumed._learner.state()[name], tensor, err_msg=name)


def test_its_rule_is_what_it_learns_by(small):
    ebql.register(Top)
    low, high = (
        Top("CartPole-v1", ensemble_size=3, bonus=bonus, learning_rate=0.02, loss="mse", **small).learn(300)
        for bonus in (0.0, 50.0)
    )
    rows = np.zeros((1, 4))
    assert high.q_values(rows).mean() > low.q_values(rows).mean() + 1


@pytest.mark.parametrize(
    ("wrong", "returned"),
    [
        (lambda after: after.target.amax(2)[:, :1], r"a tensor \(8, 1\)"),
        (lambda after: after.target.amax((1, 2)), r"a tensor \(8,\)"),
        (lambda after: None, "None"),
    ],
)
def test_a_rule_that_returns_another_shape_is_refused(wrong, returned, small):
    class Wrong(Agent):
        config_type = TopConfig
        rule = Rule(wrong, selects_online=False)

    ebql.register(Wrong)
    agent = Wrong("CartPole-v1", ensemble_size=3, **{**small, "batch_size": 8})
    with pytest.raises(InputError, match=rf"must return a tensor \(8, 3\).*not {returned}"):
        agent.learn(120)


def test_what_is_not_registered_is_told(small, tmp_path):
    with pytest.raises(InputError, match="Unknown rule 'top': register its agent first"):
        Top("CartPole-v1", **small)
    ebql.register(Top)
    path = Top("CartPole-v1", **small).save(tmp_path / "top")
    del AGENTS["top"], CONFIGS["top"]
    with pytest.raises(InputError, match="Unknown agent 'top'.*ebql.register\\(MyAgent\\), or --import"):
        Agent.load(path)


def test_registering_again_replaces_ones_own_and_never_ours():
    ebql.register(Top)

    class Newer(Top):
        pass

    ebql.register(Newer)
    assert AGENTS["top"] is Newer

    class Mine(EBQL):
        pass

    with pytest.raises(
        InputError, match="There is an agent 'ebql' already: give EBQLConfig a name of its own"
    ):
        ebql.register(Mine)
    assert AGENTS["ebql"] is EBQL


def with_config(**words):
    annotated = {"__annotations__": dict.fromkeys(words, ClassVar[str]), **words}
    return dataclass(frozen=True, kw_only=True)(type("BadConfig", (EnsembleConfig,), annotated))


@pytest.mark.parametrize(
    ("words", "rule", "told"),
    [
        ({"name": "bad"}, None, "Unknown rule of BadConfig 'None'"),
        ({"name": "bad", "rule": "nonsense"}, None, "Unknown rule of BadConfig 'nonsense'"),
        ({"name": "bad", "rule": "double-q"}, Top.rule, "must give it a new name, not 'double-q'"),
        ({"name": "bad"}, Top.rule, "must give it a new name, not None"),
        (
            {"name": "Bad Name", "rule": "double-q"},
            None,
            "lower-case letters, digits and dashes, not 'Bad Name'",
        ),
        ({}, None, "needs a config with a name"),
    ],
)
def test_bad_agents_are_refused_in_one_line_and_leave_nothing(words, rule, told):
    before = dict(AGENTS), dict(RULES)
    agent = type("Bad", (Agent,), {"config_type": with_config(**words), "rule": rule})
    with pytest.raises(InputError, match=told):
        ebql.register(agent)
    assert (dict(AGENTS), dict(RULES)) == before


@pytest.mark.parametrize("given", [Agent, 3, TopConfig, Top.__new__(Top)])
def test_only_agents_can_be_registered(given):
    with pytest.raises((InputError, InputTypeError)):
        ebql.register(given)


def test_the_command_line_trains_resumes_and_sweeps_it(tmp_path, monkeypatch, refused):
    (tmp_path / "lucky_agents.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    short = ["--learning-starts", "50", "--evaluation-period", "0", "--hidden", "8", "--ensemble-size", "2"]
    train = ["train", "CartPole-v1", "--agent", "lucky", "--steps", "100", "--luck", "0.25", "--out", "run"]
    assert "Unknown agent 'lucky'" in refused([*train, *short])
    assert main([*train, *short, "--import", "lucky_agents"]) == 0
    assert main(["resume", "run", "--steps", "120", "--import", "lucky_agents"]) == 0
    assert Agent.load("run").config.luck == 0.25
    (tmp_path / "study.toml").write_text(
        'agents = ["lucky", "dqn"]\nenvironments = ["CartPole-v1"]\nseeds = 1\nsteps = 80\nhidden = [8]\n'
        "learning_starts = 50\nevaluation = { period = 80, episodes = 1 }\n"
    )
    assert main(["sweep", "study.toml", "--out", "swept", "--import", "lucky_agents"]) == 0
    assert main(["sweep", "--status", "swept", "--import", "lucky_agents"]) == 0
    assert main(["report", "swept"]) == 0
    (page,) = (tmp_path / "swept").rglob("report.html")
    assert "Lucky K=5" in page.read_text()
