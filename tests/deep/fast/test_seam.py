"""The fast path and the plain one compute the same; which one is used is decided in one place."""

import pytest
import torch

from ebql.deep import fast
from ebql.deep.agents import DQN, EBQL
from ebql.deep.building import build_learner, build_network
from ebql.deep.config.agents import CONFIGS
from ebql.deep.fast import dense
from ebql.deep.fast import optimisers as fused
from ebql.deep.learner import Learner
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.optimisers import make_optimiser, norm_divisor

from ..test_learner import batch, tensors

SPEC = ObservationSpec((3,), "float32")


def masks_of(config):
    return config.ensemble().size if config.ensemble().data == "masked" else 0


@pytest.mark.parametrize("optimiser", ["adam", "rmsprop", "centred-rmsprop", "momentum-rmsprop"])
def test_plain_optimisers_take_the_fused_steps(optimiser, monkeypatch):
    config = CONFIGS["dqn"]().override(optimiser=optimiser, learning_rate=0.01, optimiser_eps=1e-3)

    def moved():
        generator = torch.Generator().manual_seed(0)
        moving = [torch.randn(shape, generator=generator) for shape in ((3, 4), (5,), (2, 3, 2))]
        one = make_optimiser(config, moving)
        for step in range(5):
            chosen = (0, 1, 2) if step % 2 else (1, 2)
            gradients = [torch.randn(moving[i].shape, generator=generator) for i in chosen]
            one.step(chosen, gradients, norm_divisor(gradients, 0.5))
        return type(one), moving, one.state()

    fast_kind, fast_tensors, fast_state = moved()
    monkeypatch.setenv("EBQL_PLAIN", "1")
    plain_kind, plain_tensors, plain_state = moved()
    assert fast_kind.__module__ == fused.__name__ != plain_kind.__module__
    assert fast_state.keys() == plain_state.keys()  # a run may change paths between two checkpoints
    for a, b in zip(
        (*fast_tensors, *fast_state.values()), (*plain_tensors, *plain_state.values()), strict=True
    ):
        torch.testing.assert_close(a, b)


@pytest.mark.parametrize("name", CONFIGS)
def test_every_agent_learns_alike_on_both_paths(name, monkeypatch):
    """All layers count as large, so that the fast path uses everything it has."""
    monkeypatch.setattr(dense, "LARGE", 1)
    monkeypatch.setattr(dense, "WIDE", 1)
    config = CONFIGS[name]().override(hidden=(16, 16), v_min=-4.0, v_max=4.0, n_step=1)

    def trained():
        learner = build_learner(config, SPEC, n_actions=2)
        for update in range(6):
            learner.update(batch(learner.rows, n_masks=masks_of(config), seed=update))
        learner.synchronise()
        return learner

    quick = trained()
    monkeypatch.setenv("EBQL_PLAIN", "1")
    plain = trained()
    for a, b in zip(quick.online.parameters(), plain.online.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=2e-3, atol=2e-5)
    observations = batch(8).observations
    torch.testing.assert_close(quick.values(observations), plain.values(observations), rtol=2e-3, atol=2e-4)


def test_the_plain_path_acts_as_the_numpy_policy_does(small, monkeypatch):
    actions = []
    for plain in ("", "1"):
        monkeypatch.setenv("EBQL_PLAIN", plain)
        agent = DQN("CartPole-v1", **{**small, "epsilon_start": 0.0, "epsilon_end": 0.01})
        training = agent._prepare()
        assert (training._numpy_values is None) == bool(plain)
        actions.append([training._greedy().tolist() for _ in range(20) if training.advance() is None])
    assert actions[0] == actions[1]


def test_a_missing_private_call_warns_once_and_falls_back(monkeypatch, small):
    monkeypatch.setitem(fast._PRIVATE_CALLS, "torch._fused_adam_", lambda: False)
    fast.missing_calls.cache_clear()
    try:
        with pytest.warns(UserWarning, match=r"has no torch\._fused_adam_: agents use the plain") as told:
            agent = EBQL("CartPole-v1", **small).learn(60)
        assert len(told) == 1
        assert type(agent._learner._optimiser).__module__ == "ebql.deep.optimisers"
    finally:
        monkeypatch.undo()
        fast.missing_calls.cache_clear()


# Averaged-DQN's snapshots point parameters to memory on another device, which meta tensors cannot.
@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "averaged-dqn"])
def test_an_update_creates_no_tensor_on_another_device(name):
    """On the meta device, an operation with a tensor left on the CPU raises."""
    config = CONFIGS[name]().override(hidden=(16, 16), batch_size=8)
    with torch.device("meta"):
        network = build_network(config, SPEC, n_actions=2)
    learner = Learner(config, network)  # whatever it makes itself, it makes without the context
    plan = learner._plans[0]
    rows = type(batch())(*(column.to("meta") for column in tensors(batch(learner.rows, masks_of(config)))))
    samples = learner._samples(plan, learner.rows)
    computed = learner._compute(plan, rows, samples)
    assert {gradient.device.type for gradient in computed.gradients} == {"meta"}
    assert computed.loss.device.type == computed.errors.device.type == "meta"
