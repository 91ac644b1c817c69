"""Exported policies, run by onnxruntime, against `q_values` and `predict`."""

import gymnasium
import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from gymnasium.spaces import Box, Dict, Discrete, MultiBinary, MultiDiscrete, Tuple

from ebql import DQN, EBQL, MaxminDQN, RandomisedPriors
from ebql.errors import InputError

ROWS = 1_000


class Sampling(gymnasium.Env):
    """Observations of a space, drawn at random; nothing is to be learnt."""

    def __init__(self, observations, actions=None):
        self.observation_space, self.action_space = observations, actions or Discrete(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.observation_space.seed(seed)
        return self.observation_space.sample(), {}

    def step(self, action):
        return self.observation_space.sample(), 0.0, False, False, {}


def session_of(path):
    onnx.checker.check_model(onnx.load(path))
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def stacked(space, rows):
    empty = gymnasium.vector.utils.create_empty_array(space, rows)
    return gymnasium.vector.utils.concatenate(space, [space.sample() for _ in range(rows)], empty)


def randomised(agent):
    """Give every weight another value, so that no term of the graph is 0 or 1 by its initialisation."""
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in agent._learner.online.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator)
    agent._learner._prepare_weights()


def require_equal(agent, inputs, observations, path):
    """Compare an exported agent with itself."""
    session = session_of(agent.export(path))
    values, actions = session.run(["values", "action"], inputs)
    expected = agent.q_values(observations)
    assert values.shape == expected.shape
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-5 * max(np.abs(expected).max(), 1))
    assert expected.std(0).min() > 1e-3  # a constant would prove little
    by_agent, _ = agent.predict(observations, deterministic=True)
    assert actions.dtype == by_agent.dtype
    together = np.sort(agent.together(expected), -1)
    clear = together[:, -1] - together[:, -2] > 1e-4  # both are right where the best values are equal
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(actions[clear], by_agent[clear])


VECTOR = Box(-2, 2, (6,), np.float32)
KINDS = {
    "mlp": (EBQL, VECTOR, {}),
    "own torsos": (EBQL, VECTOR, {"share_torso": False, "own_layers": 2}),
    "one member": (DQN, VECTOR, {"hidden": (16,)}),
    "linear": (DQN, VECTOR, {"hidden": ()}),
    "minimum": (MaxminDQN, VECTOR, {}),
    "prior": (RandomisedPriors, VECTOR, {"prior_scale": 2.0}),
    "tanh": (EBQL, VECTOR, {"activation": "tanh", "layer_norm": True}),
    "elu": (EBQL, VECTOR, {"activation": "elu"}),
    "gelu": (EBQL, VECTOR, {"activation": "gelu", "layer_norm": True}),
    "silu": (EBQL, VECTOR, {"activation": "silu"}),
    "dueling": (EBQL, VECTOR, {"dueling": True}),
    "noisy": (EBQL, VECTOR, {"noisy": True}),
    "atoms": (EBQL, VECTOR, {"atoms": 11, "dueling": True, "noisy": True}),
    "quantiles": (EBQL, VECTOR, {"quantiles": 7}),
    "implicit quantiles": (EBQL, VECTOR, {"implicit_quantiles": 8}),
    "implicit, own torsos": (EBQL, VECTOR, {"implicit_quantiles": 8, "share_torso": False, "dueling": True}),
    "doubles": (EBQL, Box(-2, 2, (2, 3), np.float64), {}),
    "categories": (EBQL, Discrete(7, start=-2), {}),
    "channels last": (EBQL, Box(0, 255, (12, 11, 4), np.uint8), {"torso": "minatar", "own_layers": 0}),
    "channels first": (EBQL, Box(0, 1, (4, 12, 11), np.float32), {"torso": "minatar"}),
    "plane": (EBQL, Box(0, 255, (9, 8), np.uint8), {"torso": "minatar", "share_torso": False}),
    "nature": (EBQL, Box(0, 255, (40, 38, 2), np.uint8), {"torso": "nature", "hidden": (8,)}),
    "natures": (DQN, Box(0, 255, (36, 40, 1), np.uint8), {"torso": "nature", "hidden": (8,)}),
    "nature, own": (EBQL, Box(0, 255, (36, 36, 1), np.uint8), {"torso": "nature", "share_torso": False}),
    "small": (EBQL, Box(0, 255, (33, 28, 2), np.uint8), {"torso": "small", "share_torso": False}),
}


@pytest.mark.parametrize("kind", KINDS)
def test_onnxruntime_reproduces_predictions(kind, small, tmp_path):
    cls, space, options = KINDS[kind]
    agent = cls(Sampling(space), **{**small, "hidden": (16, 12), **options})
    randomised(agent)
    space.seed(3)
    observations = stacked(space, ROWS)
    require_equal(agent, {"observation": observations}, observations, tmp_path / "agent.onnx")


def test_observations_are_normalised_as_in_training(small, tmp_path):
    agent = DQN(Sampling(VECTOR), **small, normalise_observations=True).learn(60)
    observations = 50 * stacked(VECTOR, ROWS)  # so that some are clipped
    require_equal(agent, {"observation": observations}, observations, tmp_path / "agent.onnx")


@pytest.mark.parametrize("share_torso", [True, False])
def test_each_array_of_a_structured_observation_is_an_input(small, share_torso, tmp_path):
    space = Dict(
        {
            "camera": Box(0, 255, (12, 12, 3), np.uint8),
            "inner": Tuple([Box(-1, 1, (2, 2), np.float64), Discrete(3, start=-1)]),
            "many": MultiDiscrete([2, 4], start=[0, 5]),
            "flags": MultiBinary(3),
        }
    )
    space.seed(0)
    agent = EBQL(Sampling(space), **small, share_torso=share_torso)
    randomised(agent)
    observations = stacked(space, ROWS)
    inputs = {
        "camera": observations["camera"],
        "inner.0": observations["inner"][0],
        "inner.1": observations["inner"][1],
        "many": observations["many"],
        "flags": observations["flags"],
    }
    require_equal(agent, inputs, observations, tmp_path / "agent.onnx")


def test_masks_are_an_input(small, tmp_path):
    agent = EBQL(Sampling(VECTOR, Discrete(4, start=10)), **small)
    observations, rng = stacked(VECTOR, ROWS), np.random.default_rng(0)
    masks = rng.random((ROWS, 4)) < 0.4
    masks[np.arange(ROWS), rng.integers(0, 4, ROWS)] = True
    session = session_of(agent.export(tmp_path / "agent.onnx", action_masks=True))
    _, actions = session.run(None, {"observation": observations, "action_mask": masks})
    expected, _ = agent.predict(observations, deterministic=True, action_masks=masks)
    assert (actions == expected).mean() > 0.99
    assert masks[np.arange(ROWS), actions - 10].all()


def test_joint_actions_are_written_as_the_environment_does(small, tmp_path):
    agent = EBQL(Sampling(VECTOR, MultiDiscrete([2, 3], start=[0, 5])), **small)
    randomised(agent)
    observations = stacked(VECTOR, ROWS)
    require_equal(agent, {"observation": observations}, observations, tmp_path / "agent.onnx")


def test_the_file_says_what_it_is(small, tmp_path):
    agent = EBQL("CartPole-v1", **small).learn(60)
    session = session_of(agent.export(tmp_path / "new" / "agent.onnx"))
    assert session.get_modelmeta().custom_metadata_map == {"agent": "ebql", "trained_steps": "60"}
    (given,) = session.get_inputs()
    assert (given.name, given.shape, given.type) == ("observation", ["rows", 4], "tensor(float)")
    assert [output.shape for output in session.get_outputs()] == [["rows", 5, 2], ["rows"]]


def test_what_cannot_be_exported_is_told_and_nothing_is_written(small, tmp_path):
    class Encoder(torch.nn.Module):
        def __init__(self, space):
            super().__init__()
            self.layer = torch.nn.Linear(space.shape[0], 8)

        def forward(self, observations):
            return self.layer(observations)

    agent = EBQL("CartPole-v1", **small, encoder=Encoder)
    with pytest.raises(InputError, match="an encoder or a network of your own cannot be exported"):
        agent.export(tmp_path / "agent.onnx")
    assert not list(tmp_path.iterdir())
