"""Agents as a whole: their parts together, what runs report, and agents made from a config alone."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch

from ebql.deep.agents import (
    EBQL,
    REDQ,
    AveragedDQN,
    BootstrappedDQN,
    CrossDQN,
    MaxminDQN,
    Rainbow,
    RainbowEBQL,
    Sunrise,
    agent_type,
)
from ebql.deep.config.agents import (
    CONFIGS,
    DQNConfig,
    EBQLConfig,
    registered,
)

from .test_learner_parts import learner, weights


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (EBQL, {"prioritized": True, "n_step": 3}),
        (EBQL, {"dueling": True, "noisy": True, "members": "cycle"}),
        (EBQL, {"atoms": 11, "data": "independent", "share_torso": False}),
        (EBQL, {"split": "adaptive", "exploration": "ucb"}),
        (EBQL, {"split": 2, "exploration": "thompson", "prior_scale": 1.0}),
        (Rainbow, {"ensemble_size": 3}),
        (Rainbow, {"envs": 3, "own_layers": 0}),
        (RainbowEBQL, {"data": "masked", "members": "cycle"}),
        (RainbowEBQL, {"data": "independent", "split": "adaptive"}),
        (AveragedDQN, {"prioritized": True, "dueling": True, "noisy": True, "atoms": 11}),
        (MaxminDQN, {"data": "independent", "members": "cycle"}),
        (REDQ, {"atoms": 11, "exploration": "ucb"}),
        (CrossDQN, {"data": "independent"}),
        (BootstrappedDQN, {"prior_scale": 3.0, "prioritized": True}),
        (Sunrise, {"noisy": True, "atoms": 11, "members": "cycle"}),
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_parts_go_together_and_a_run_goes_on_to_the_same_bits(kind, options, small, tmp_path):
    options = {"share_torso": True, **options} if kind is not AveragedDQN else options
    if kind not in (Rainbow, AveragedDQN):
        options = {"ensemble_size": 3, **options}
    options = {**small, "priority_beta_steps": 150, **options}
    whole = kind("CartPole-v1", **options).learn(160, out=tmp_path / "whole")

    def stop(record):
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        kind("CartPole-v1", **{**options, "log_period": 130}).learn(160, out=tmp_path / "cut", callback=stop)
    resumed = kind.resume(tmp_path / "cut")
    assert torch.isfinite(weights(whole._learner)).all()
    assert torch.equal(weights(resumed._learner), weights(whole._learner))
    ours, theirs = (agent._training.state()[2] for agent in (resumed, whole))
    assert ours.keys() == theirs.keys()
    for name, array in ours.items():
        np.testing.assert_array_equal(array, theirs[name], err_msg=name)


def test_a_run_tells_its_splits(small):
    records = []
    EBQL("CartPole-v1", ensemble_size=4, split="adaptive", **small).learn(200, callback=records.append)
    assert records[-1]["split"] >= 1
    EBQL("CartPole-v1", ensemble_size=4, **small).learn(100, callback=records.append)
    assert "split" not in records[-1]


@pytest.mark.parametrize("data", ["shared", "independent"])
def test_an_update_weighs_rows_by_their_odds_and_sets_their_priorities(small, data, monkeypatch):
    agent = EBQL("CartPole-v1", prioritized=True, data=data, priority_beta_steps=300, **small).learn(196)
    training, given = agent._training, []
    update, gather = training.learner.update, training.replay.gather
    monkeypatch.setattr(training.replay, "gather", lambda rows: given.append(rows) or gather(rows))
    told = []

    def listen(sampled):
        given.append(sampled)
        told.append(update(sampled))
        return told[-1]

    monkeypatch.setattr(training.learner, "update", listen)
    before = training.state()[2]["sampler.priorities"]
    monkeypatch.setattr(training._sampler, "update", lambda *learnt: given.append(learnt))
    for _ in range(4):
        training.advance()
    (rows, sampled, (learnt_rows, errors)) = given
    weights = sampled.weights
    # Four steps were written since, each at the greatest priority so far.
    priorities = np.concatenate([before, np.full(4, max(1.0, before.max()))])
    beta = 0.4 + 0.6 * 200 / 300
    expected = (200 * priorities[rows] / priorities.sum()) ** -beta
    np.testing.assert_allclose(weights, expected / expected.max(), rtol=1e-5)
    assert weights.min() < 0.95
    np.testing.assert_array_equal(learnt_rows, rows)
    np.testing.assert_array_equal(errors, told[0].errors.numpy())


def test_priorities_are_the_last_errors(small, monkeypatch):
    agent = EBQL("CartPole-v1", prioritized=True, priority_alpha=0.7, **small).learn(60)
    training, told = agent._training, {}
    learnt = training._sampler.update

    def listen(rows, errors):
        told.update(zip(rows.tolist(), errors.tolist(), strict=True))
        learnt(rows, errors)

    monkeypatch.setattr(training._sampler, "update", listen)
    for _ in range(40):
        training.advance()
    found = training.state()[2]["sampler.priorities"]
    assert len(found) == training.replay.size == 100
    assert len(told) > 20
    for row, error in told.items():
        assert found[row] == pytest.approx((error + 1e-6) ** 0.7)


def test_plain_agents_keep_the_form_of_their_files(small):
    """Agents saved before there was a family must load."""
    state = learner(DQNConfig()).state()
    assert {name.split(".")[0] for name in state} == {"online", "target", "optimiser"}


def test_a_registered_config_is_all_that_a_new_agent_needs(monkeypatch):
    """A rule, its options, and the agent is there; the classes of the package keep their own names."""
    monkeypatch.setitem(CONFIGS, "least-of-two", None)  # removed again afterwards

    @registered
    @dataclass(frozen=True, kw_only=True)
    class LeastOfTwoConfig(EBQLConfig):
        """The minimum of two members."""

        name = "least-of-two"
        rule = "maxmin"

    kind = agent_type(CONFIGS["least-of-two"])
    assert (kind.__name__, kind.__doc__) == ("LeastOfTwo", "The minimum of two members.")
    assert agent_type(CONFIGS["rainbow"]) is Rainbow
    assert kind("CartPole-v1", ensemble_size=2).config.bootstrap_rule() == "maxmin"
