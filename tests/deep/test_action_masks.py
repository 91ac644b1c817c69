"""Whole agents in an environment that refuses illegal actions, from the first step to a resumed run."""

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ebql.deep.agent import Agent
from ebql.deep.agents import DQN, EBQL, MaxminDQN
from ebql.errors import RunError


class Gates(gymnasium.Env):
    """Six gates in a row; one or two of four doors of each gate are open, and a closed door ends the test.

    The reward of a door is its number. The lowest door that is open is never the one of the next gate.
    """

    observation_space, action_space = Box(0, 6, (1,), np.float32), Discrete(4, start=1)
    convention = "info"

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.gate = 0
        return self._observe(), self._info()

    def open_doors(self):
        return np.isin(np.arange(4), [self.gate % 4, (self.gate + 1) % 3])

    def step(self, action):
        if not self.open_doors()[action - 1]:
            raise AssertionError(f"door {action} of gate {self.gate} is closed")
        self.gate += 1
        return self._observe(), float(action), self.gate == 6, False, self._info()

    def _observe(self):
        return np.array([self.gate], np.float32)

    def _info(self):
        # After the end no door is open, which is no concern of the agent's.
        return {"action_mask": self.open_doors() & (self.gate < 6)} if self.convention == "info" else {}


class WithMethod(Gates):
    convention = "method"

    def action_masks(self):
        return self.open_doors()


KINDS = {
    "DQN": (DQN, {}),
    "EBQL, UCB": (EBQL, {"exploration": "ucb"}),
    "EBQL, Thompson": (EBQL, {"exploration": "thompson"}),
    "EBQL, three steps, prioritised": (EBQL, {"n_step": 3, "prioritized": True}),
    "EBQL, adaptive split, own data": (EBQL, {"split": "adaptive", "data": "independent"}),
    "Maxmin": (MaxminDQN, {}),
    "noisy atoms": (EBQL, {"noisy": True, "atoms": 11}),
}


@pytest.mark.parametrize("world", [Gates, WithMethod])
@pytest.mark.parametrize("kind", KINDS)
def test_agents_never_take_an_illegal_action(kind, world, small):
    kind, options = KINDS[kind]
    agent = kind(world, **small, **options, evaluation_epsilon=0.3).learn(200)
    assert agent.evaluate(5).bias.states > 0
    agent = kind(world, **small, **options, epsilon_start=0.01, epsilon_end=0.01, envs=3).learn(200)
    assert agent.evaluate(5).lengths == (6,) * 5


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_vector_environments_give_masks_too(mode, small):
    vector = SyncVectorEnv([Gates] * 2, autoreset_mode=mode)
    agent = DQN(vector, evaluation_environment=Gates, **small).learn(200)
    assert agent.evaluate(3).lengths == (6,) * 3
    assert agent._training.replay._legal[:100].sum(1).max() > 2  # all four after the end


def test_without_masks_the_agent_runs_into_a_closed_door(small):
    with pytest.raises(RunError, match="is closed"):
        DQN(Gates, action_masks=False, **small).learn(200)


def test_the_replay_holds_the_masks_of_next_states_and_none_where_there_are_none(small):
    agent = DQN(Gates, **small, n_step=2).learn(300)
    batch = agent._training.replay.gather(np.arange(200))
    world = Gates()
    for gate, discount, legal in zip(
        batch.next_observations[:, 0], batch.discounts, batch.legal, strict=True
    ):
        world.gate = gate
        assert legal.tolist() == (world.open_doors() if discount else np.ones(4, bool)).tolist()
    plain = DQN("CartPole-v1", **small).learn(60)
    assert plain._training.replay._legal is None
    assert "legal" not in plain._training.replay.state()


def test_values_are_those_of_the_best_open_doors():
    """With the closed doors in the maximum, values would rise above the best return."""
    options = {"hidden": (64,), "discount": 1.0, "learning_rate": 3e-3, "epsilon_end": 1.0, "envs": 4}
    agent = DQN(Gates, seed=1, **options, learning_starts=100, target_period=100, evaluation_period=0)
    agent.learn(6_000)
    world = Gates()
    best = 0.0
    for world.gate in reversed(range(6)):
        best += 1 + np.flatnonzero(world.open_doors()).max()
    world.gate = 0
    values = agent.q_values(np.zeros(1, np.float32))[0][world.open_doors()]
    assert values.max() == pytest.approx(best, abs=1.0)


@pytest.mark.parametrize("world", [Gates, WithMethod])
def test_a_resumed_run_has_the_same_bits(world, tmp_path, small):
    whole = EBQL(world, **small, envs=2).learn(400, out=tmp_path / "whole")
    EBQL(world, **small, envs=2).learn(203, out=tmp_path / "cut")
    resumed = EBQL.resume(tmp_path / "cut", steps=400, environment=world)
    states = [agent._training.state() for agent in (whole, resumed)]
    for one, other in zip(states[0][::2], states[1][::2], strict=True):
        assert one.keys() == other.keys()
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_predict_takes_masks_as_sb3_contribs_does(tmp_path, small):
    agent = DQN(Gates, **small).learn(100)
    agent.save(tmp_path / "agent")
    agent = Agent.load(tmp_path / "agent")
    gates = np.arange(4, dtype=np.float32)[:, None]
    for door in range(4):
        only = np.eye(4)[[door]].repeat(4, 0)
        assert agent.predict(gates, action_masks=only)[0].tolist() == [door + 1] * 4
        assert agent.predict(gates[0], action_masks=only[0])[0] == door + 1
    with pytest.raises(ValueError, match="row 2 leaves no action"):
        agent.predict(gates, action_masks=[[1, 1, 1, 1], [1, 0, 0, 0], [0, 0, 0, 0], [1, 0, 0, 0]])
    with pytest.raises(ValueError, match=r"must have shape \(4, 4\), not \(1, 4\)"):
        agent.predict(gates, action_masks=[1, 1, 1, 1])


def test_a_mask_that_leaves_no_action_is_one_clear_line(small):
    class Dead(Gates):
        def open_doors(self):
            return super().open_doors() & (self.gate < 3)

    with pytest.raises(RunError, match="leaves no action"):
        DQN(Dead, **small).learn(100)


def test_masks_in_a_runs_data_are_ignored_on_demand(tmp_path, small):
    EBQL(Gates, **small).learn(100, out=tmp_path / "run")
    for action_masks in (True, False):
        agent = EBQL(Gates, **small, action_masks=action_masks).learn_offline(tmp_path / "run", 5)
        assert ("legal" in agent._training.replay.state()) == action_masks
