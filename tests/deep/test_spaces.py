"""Whole agents with structured observations and joint actions: learn, save, load, resume and predict."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple
from gymnasium.vector import AutoresetMode, SyncVectorEnv

from ebql.deep.agent import Agent
from ebql.deep.agents import DQN, EBQL
from ebql.deep.networks.encoders import Combined, Flatten, encode
from ebql.deep.networks.observations import ObservationSpec
from ebql.errors import InputError, RunError

SPACE = Dict(
    {
        "number": Box(-1, 1, (1,), np.float32),
        "picture": Box(0, 255, (6, 5), np.uint8),
        "inner": Tuple([Discrete(3, start=4), MultiBinary(2)]),
    }
)


class Rooms(gymnasium.Env):
    """The best action tells the grey of the picture and the category, each a reward of 1; five steps."""

    observation_space, action_space = SPACE, MultiDiscrete([2, 3], start=[0, 1])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 5
        return self._observe(), {}

    def step(self, action):
        assert self.action_space.contains(action), action
        reward = float(action[0] == self.grey) + float(action[1] - 1 == self.kind)
        self.left -= 1
        return self._observe(), reward, self.left == 0, False, {}

    def _observe(self):
        self.grey, self.kind = (int(self.np_random.integers(n)) for n in (2, 3))
        return {
            "number": np.array([0.5], np.float32),
            "picture": np.full((6, 5), 255 * self.grey, np.uint8),
            "inner": (4 + self.kind, np.array([1, 0], np.int8)),
        }


def test_a_structured_observation_is_encoded_images_first_then_the_rest():
    spec = ObservationSpec.of(SPACE)
    env = Rooms()
    observation, _ = env.reset(seed=1)
    rows, single = spec.rows(observation)
    assert single
    kind = np.eye(3)[env.kind].tolist()
    expected = [float(env.grey)] * 30 + [*kind, 1.0, 0.0, 0.5]
    assert encode(spec, torch.from_numpy(rows)).tolist() == [expected]
    assert spec.n_inputs == 36
    assert ObservationSpec.from_json(spec.to_json()) == spec


@pytest.mark.parametrize(
    "options", [{}, {"share_torso": False}, {"data": "independent", "share_torso": False}]
)
def test_images_go_through_convolutions(options, small):
    agent = EBQL(Rooms, **small, **options, ensemble_size=3).learn(100)
    encoder = agent._learner.online.stages[0]
    assert isinstance(encoder, Combined)
    assert encoder.n_features == 4 * 3 * 16 + 6
    assert isinstance(EBQL(Rooms, torso="mlp", **small)._learner.online.stages[0], Flatten)


def test_a_plane_of_bytes_gets_a_channel():
    spec = ObservationSpec.of(Box(0, 255, (6, 5), np.uint8))
    assert spec.image_shape == (6, 5, 1)
    assert encode(spec, torch.full((2, 6, 5), 255, dtype=torch.uint8)).shape == (2, 6, 5, 1)
    assert not ObservationSpec.of(Box(0, 1, (6, 5), np.float32)).is_image
    # As in files of version 0.1, which flattened it.
    assert not ObservationSpec.from_json({"shape": [6, 5], "dtype": "uint8"}).is_image


def test_agents_learn_what_each_part_says(tmp_path, small):
    options = {**small, "learning_rate": 3e-3, "discount": 0.0, "replay_size": 3000, "n_step": 1}
    agent = DQN(Rooms, **options, envs=2).learn(2500)
    assert agent.evaluate(20).mean > 9
    agent.save(tmp_path / "agent")
    loaded = Agent.load(tmp_path / "agent")
    env = Rooms()
    observation, _ = env.reset(seed=3)
    action, _ = loaded.predict(observation, deterministic=True)
    assert env.action_space.contains(action)
    assert action.tolist() == [env.grey, env.kind + 1]
    stacked = gymnasium.vector.utils.concatenate(
        SPACE, [observation] * 4, gymnasium.vector.utils.create_empty_array(SPACE, 4)
    )
    assert loaded.predict(stacked)[0].tolist() == [action.tolist()] * 4
    np.testing.assert_array_equal(loaded.q_values(observation), agent.q_values(observation))


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
def test_vector_environments_may_be_structured(mode, small):
    vector = SyncVectorEnv([Rooms] * 2, autoreset_mode=mode)
    agent = DQN(vector, evaluation_environment=Rooms, **small).learn(200)
    assert agent.evaluate(2).lengths == (5, 5)


def test_a_resumed_run_has_the_same_bits(tmp_path, small):
    whole = EBQL(Rooms, **small, n_step=2).learn(300, out=tmp_path / "whole")
    EBQL(Rooms, **small, n_step=2).learn(153, out=tmp_path / "cut")
    resumed = EBQL.resume(tmp_path / "cut", steps=300, environment=Rooms)
    states = [agent._training.state() for agent in (whole, resumed)]
    for one, other in zip(states[0][::2], states[1][::2], strict=True):
        for name in one:
            np.testing.assert_array_equal(one[name], other[name], err_msg=name)


def test_masks_of_joint_actions_are_those_of_their_parts(small):
    class Masked(Rooms):
        def action_masks(self):
            return [True, False, True, False, True]

        def step(self, action):
            assert action.tolist() in ([0, 1], [0, 3])
            return super().step(action)

    agent = DQN(Masked, **small).learn(150)
    assert agent.evaluate(3).lengths == (5, 5, 5)
    observation, _ = Rooms().reset()
    for mask, action in (([1, 0, 0, 1, 0], [0, 2]), ([0, 1, 1, 0, 0], [1, 1])):
        assert sum(agent.joint_actions.sizes) == len(mask)
        taken, _ = agent.predict(observation, deterministic=True, action_masks=mask)
        assert taken.tolist() == action


@pytest.mark.parametrize("mask", [[1, 0, 0, 1], [0, 1, 1, 0]])
def test_masks_of_joint_actions_are_by_part_even_with_as_many_combinations(small, mask):
    class Pairs(Rooms):
        action_space = MultiDiscrete([2, 2])

    agent, (observation, _) = DQN(Pairs, **small), Pairs().reset()
    taken, _ = agent.predict(observation, deterministic=True, action_masks=mask)
    assert taken.tolist() == [mask.index(1), mask.index(1, 2) - 2]
    with pytest.raises(InputError, match=r"must have shape \(1, 4\), not \(1, 2\)"):
        agent.predict(observation, action_masks=[1, 0])


def test_other_observations_and_actions_are_one_clear_line(tmp_path, small):
    agent = DQN(Rooms, **small)
    with pytest.raises(ValueError, match="expects observations"):
        agent.evaluate(1, environment="CartPole-v1")
    with pytest.raises(ValueError, match=r"observation\['picture'\] has shape \(5, 6\)"):
        agent.predict({**Rooms().reset()[0], "picture": np.zeros((5, 6))})

    class NotANumber(Rooms):
        def _observe(self):
            return {**super()._observe(), "number": np.array([np.nan])}

    with pytest.raises(RunError, match=r"The environment's observation\['number'\] has the value nan"):
        DQN(NotANumber, **small).learn(5)

    class Huge(Rooms):
        action_space = MultiBinary(10)

    with pytest.raises(TypeError, match="1,024 joint actions"):
        DQN(Huge, **small)
