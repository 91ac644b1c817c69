"""The fast learner against the algorithms as one would write them on a whiteboard."""

import numpy as np
import pytest
import torch

from ebql.deep import reference
from ebql.deep.building import build_learner
from ebql.deep.config.agents import DoubleDQNConfig, DQNConfig, EBQLConfig
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.reference import Batch, EnsembleNetwork, ReferenceLearner, double_dqn, dqn, ebql
from ebql.deep.replay.ring import Transitions

N_INPUTS, HIDDEN, N_ACTIONS = 5, 16, 3
AGENTS = [
    pytest.param(DQNConfig(), dqn, id="dqn"),
    pytest.param(DoubleDQNConfig(), double_dqn, id="double-dqn"),
    pytest.param(EBQLConfig(ensemble_size=4), ebql, id="ebql"),
    pytest.param(EBQLConfig(ensemble_size=4, share_torso=False), ebql, id="ebql-own-torsos"),
]


def transitions(seed, rows=16):
    rng = np.random.default_rng(seed)
    return Transitions(
        observations=rng.normal(size=(rows, N_INPUTS)).astype(np.float32),
        actions=rng.integers(0, N_ACTIONS, rows),
        rewards=3 * rng.normal(size=rows).astype(np.float32),
        discounts=np.where(rng.random(rows) < 0.3, 0, 0.9).astype(np.float32),
        next_observations=rng.normal(size=(rows, N_INPUTS)).astype(np.float32),
        masks=np.ones((rows, 0), bool),
    )


def as_batch(rows):
    return Batch(*(torch.from_numpy(column) for column in rows[:5]))


def copied(learner, config):
    """Return the reference network with the weights of the fast learner's online members."""
    n_members, share_torso = config.ensemble().size, config.ensemble().share_torso
    network = EnsembleNetwork(N_INPUTS, HIDDEN, N_ACTIONS, n_members, share_torso=share_torso)
    for own, layer in zip(linear_layers(network), fast_layers(learner), strict=True):
        own.weight.data, own.bias.data = layer
    return network


def linear_layers(network):
    """Every layer of the reference: torsos, then each member's hidden and output layer."""
    return [*network.torsos, *(layer for i in (0, 2) for layer in (head[i] for head in network.heads))]


def fast_layers(learner):
    """The same layers of the fast learner, which keeps (M, in, out) for all members in one tensor."""
    _, dense, heads = learner.online.stages
    for layer in (*dense.layers, *heads.layers):
        for member in range(len(layer.weight)):
            yield layer.weight[member].detach().t().clone(), layer.bias[member, 0].detach().clone()


def both(config, rule):
    config = config.override(
        hidden=(HIDDEN, HIDDEN), batch_size=16, learning_rate=0.01, max_grad_norm=1.0, seed=3
    )
    learner = build_learner(config, ObservationSpec((N_INPUTS,), "float32"), N_ACTIONS)
    slow = ReferenceLearner(copied(learner, config), rule, learning_rate=0.01, max_grad_norm=1.0)
    return learner, slow


@pytest.mark.parametrize("path", ["fast", "plain"])
@pytest.mark.parametrize(("config", "rule"), AGENTS)
def test_the_learner_takes_the_references_steps(config, rule, path, monkeypatch):
    if path == "plain":
        monkeypatch.setenv("EBQL_PLAIN", "1")
    learner, slow = both(config, rule)
    for update in range(12):
        rows = transitions(update)
        loss = slow.update(as_batch(rows))
        assert learner.update(rows).loss * config.ensemble().size == pytest.approx(loss, rel=1e-4)
        if update == 6:
            slow.synchronise()
            learner.synchronise()
    for own, (weight, bias) in zip(linear_layers(slow.online), fast_layers(learner), strict=True):
        torch.testing.assert_close(own.weight.data, weight, rtol=1e-3, atol=1e-5)
        torch.testing.assert_close(own.bias.data, bias, rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(("config", "rule"), AGENTS)
def test_the_gradients_are_those_of_the_reference(config, rule, monkeypatch):
    learner, slow = both(config, rule)
    learner.update(transitions(0))  # so that online and target members differ
    slow.update(as_batch(transitions(0)))
    taken = []
    monkeypatch.setattr(learner._optimiser, "step", lambda *arguments: taken.append(arguments))
    learner.update(transitions(1))
    slow.optimiser.zero_grad()
    slow.loss(as_batch(transitions(1))).backward()
    gradients = {id(p): g for p, g in zip(learner.online.parameters(), taken[0][1], strict=True)}
    _, dense, heads = learner.online.stages
    fast = [
        (gradients[id(layer.weight)][m].t(), gradients[id(layer.bias)][m, 0])
        for layer in (*dense.layers, *heads.layers)
        for m in range(len(layer.weight))
    ]
    for own, (weight, bias) in zip(linear_layers(slow.online), fast, strict=True):
        torch.testing.assert_close(own.weight.grad, weight, rtol=1e-3, atol=1e-6)
        torch.testing.assert_close(own.bias.grad, bias, rtol=1e-3, atol=1e-6)


def test_the_three_targets_by_hand():
    """Two members, two actions; 90 and more are decoys that a wrong selector or evaluator would pick."""
    online = torch.tensor([[[0.0, 1.0], [1.0, 0.0]]])
    target = torch.tensor([[[90.0, 5.0], [7.0, 91.0]]])
    assert dqn(online, target).tolist() == [[90.0, 91.0]]
    assert double_dqn(online, target).tolist() == [[5.0, 7.0]]
    assert ebql(online, target).tolist() == [[91.0, 90.0]]
    three = torch.tensor([[[99.0, 1.0], [2.0, 98.0], [4.0, 97.0]]])
    picks = torch.tensor([[[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]])
    assert ebql(picks, three).tolist() == [[3.0, 49.0, 50.5]]


def test_the_reference_acts_on_the_members_mean():
    network = EnsembleNetwork(2, 4, 3, 2)
    learner = ReferenceLearner(network, ebql)
    values = network(torch.tensor([[0.5, -1.0]]))
    assert learner.act([0.5, -1.0]) == int(values.mean(1).argmax())


def test_the_reference_can_be_read_in_one_sitting():
    source = reference.__file__
    with open(source, encoding="utf-8") as file:
        assert len(file.readlines()) <= 200
