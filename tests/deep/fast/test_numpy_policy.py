from itertools import pairwise

import numpy as np
import pytest
import torch
from gymnasium.spaces import Box, Discrete

from ebql.deep.building import build_learner
from ebql.deep.config.agents import DQNConfig, EBQLConfig
from ebql.deep.fast import dense
from ebql.deep.fast.numpy_policy import numpy_values
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.policy import greedy_actions
from ebql.deep.replay.ring import Replay, Transitions

SPACES = [
    Box(-np.inf, np.inf, (4,), np.float32),
    Box(-np.inf, np.inf, (2, 3), np.float64),
    Box(0, 255, (6,), np.uint8),
    Box(0, 1, (5,), np.int8),
    Discrete(7, start=3),
]
CONFIGS = [
    DQNConfig(),
    DQNConfig(hidden=()),
    EBQLConfig(ensemble_size=3),
    EBQLConfig(ensemble_size=3, own_layers=0),
    EBQLConfig(ensemble_size=2, share_torso=False),
]


def some(space, rows):
    space.seed(0)
    return np.stack([np.asarray(space.sample()) for _ in range(rows)])


def require_same(values_of, learner, observations):
    with torch.inference_mode():
        slow = learner.values(observations)
    fast = values_of(observations)
    assert fast.dtype == np.float32
    np.testing.assert_allclose(fast, slow.mean(1).numpy(), rtol=1e-5, atol=1e-6)
    first, second = slow.mean(1).topk(2).values.T.numpy()
    clear = first - second > 1e-5  # where two are worth the same up to rounding, either may win
    assert np.array_equal(fast.argmax(-1)[clear], greedy_actions(slow, pessimistic=False).numpy()[clear])
    return fast


@pytest.mark.parametrize("space", SPACES, ids=str)
@pytest.mark.parametrize("config", CONFIGS, ids=range(len(CONFIGS)))
def test_values_are_those_of_the_network(space, config):
    learner = build_learner(config.override(hidden=config.hidden and (16, 8)), ObservationSpec.of(space), 4)
    require_same(numpy_values(learner.online, rows=32, pessimistic=False), learner, some(space, 32))


def test_values_follow_updates_and_restored_weights():
    spec, observations = ObservationSpec.of(SPACES[0]), some(SPACES[0], 32)
    config = EBQLConfig(ensemble_size=3, hidden=(16, 8))
    learner, other = build_learner(config, spec, 4), build_learner(config.override(seed=1), spec, 4)
    values_of = numpy_values(learner.online, rows=32, pessimistic=False)
    seen = [require_same(values_of, learner, observations)]
    learner.restore({name: array.copy() for name, array in other.state().items()})
    seen.append(require_same(values_of, learner, observations))
    rows = Replay(64, spec)
    zeros = np.zeros(32, np.float32)
    rows.add(
        Transitions(observations, zeros.astype(int), zeros + 1, zeros, observations, np.ones((32, 0), bool))
    )
    learner.update(rows.gather(np.arange(learner.rows)))
    seen.append(require_same(values_of, learner, observations))
    learner.synchronise()
    assert np.array_equal(require_same(values_of, learner, observations), seen[-1])
    assert not any(np.allclose(a, b, atol=1e-6) for a, b in pairwise(seen))


def test_weights_that_diverge_give_no_warnings():
    learner = build_learner(EBQLConfig(hidden=(16, 8)), ObservationSpec.of(SPACES[0]), 4)
    with torch.no_grad():
        for parameter in learner.online.parameters():
            parameter.mul_(1e38)
    assert not np.isfinite(numpy_values(learner.online, rows=8, pessimistic=False)(some(SPACES[0], 8))).all()


@pytest.mark.parametrize(
    "config", [DQNConfig(), EBQLConfig(), EBQLConfig(share_torso=False)], ids=["one", "shared", "own torsos"]
)
@pytest.mark.parametrize("by_output", [False, True])
def test_one_binary_image_is_valued_without_pytorch(config, by_output, monkeypatch):
    if by_output:
        monkeypatch.setattr(dense, "LARGE", 2**10)
    space = Box(0, 1, (10, 10, 4), np.bool_)
    learner = build_learner(config.override(torso="minatar", hidden=(32,)), ObservationSpec.of(space), 4)
    values_of = numpy_values(learner.online, rows=1, pessimistic=False)
    for observation in some(space, 20):
        require_same(values_of, learner, observation[None])


@pytest.mark.parametrize("n_inputs", [1, 4, 7])  # products are summed in fours
@pytest.mark.parametrize("by_output", [False, True])
def test_one_row_times_large_layers_is_computed_in_compiled_code(n_inputs, by_output, monkeypatch):
    if by_output:
        monkeypatch.setattr(dense, "LARGE", 1)
    space = Box(-1, 1, (n_inputs,), np.float32)
    for config in (DQNConfig(hidden=(200, 100)), EBQLConfig(ensemble_size=3, hidden=(200, 100))):
        learner = build_learner(config, ObservationSpec.of(space), 3)
        values_of = numpy_values(learner.online, rows=1, pessimistic=False)
        for observation in some(space, 20):
            require_same(values_of, learner, observation[None])


def test_torch_acts_for_other_images_and_for_several_rows_of_large_layers():
    vector = ObservationSpec((4,), "float32")
    binary, first = ObservationSpec((10, 10, 4), "bool"), ObservationSpec((4, 10, 10), "bool")
    grey = ObservationSpec((10, 10, 4), "uint8")
    for spec, torso in ((binary, "mlp"), (first, "minatar"), (grey, "minatar")):
        learner = build_learner(DQNConfig(torso=torso, hidden=(4,)), spec, 3)
        assert numpy_values(learner.online, rows=1, pessimistic=False) is None
    wide = build_learner(DQNConfig(hidden=(128, 128)), vector, 3)
    assert numpy_values(wide.online, rows=2, pessimistic=False) is None
    narrow = build_learner(DQNConfig(hidden=(64, 64)), vector, 3)
    assert numpy_values(narrow.online, rows=2, pessimistic=False) is not None
    assert numpy_values(narrow.online, rows=16, pessimistic=False) is None
