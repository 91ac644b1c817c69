"""What learners do beyond their rules: distributions, quantiles, snapshots, priors, weights, noise."""

from itertools import pairwise

import numpy as np
import pytest
import torch

from ebql.deep.agents import (
    Rainbow,
)
from ebql.deep.building import build_learner
from ebql.deep.config.agents import (
    CONFIGS,
    AveragedDQNConfig,
    BootstrappedDQNConfig,
    CrossDQNConfig,
    EBQLConfig,
    RainbowConfig,
    RainbowEBQLConfig,
    SunriseConfig,
)
from ebql.deep.learner import errors_by_row
from ebql.deep.replay.ring import ALL_ALIKE
from ebql.errors import InputError, RunError

from .test_learner import SPEC, batch, tensors

QUIET_RAINBOW = {"noisy": False, "n_step": 1, "v_min": -4.0, "v_max": 4.0, "atoms": 9}


def learner(config, seed=0):
    return build_learner(config.override(hidden=(16, 16), seed=seed), SPEC, n_actions=2)


def weights(one):
    return torch.cat([parameter.detach().flatten() for parameter in one.online.parameters()])


def masks_of(config):
    ensemble = config.ensemble()
    return ensemble.size if ensemble.data == "masked" else 0


@pytest.mark.parametrize("name", CONFIGS)
def test_one_batch_is_learnt_by_heart(name):
    config = CONFIGS[name]().override(learning_rate=5e-3, v_min=-4.0, v_max=4.0)
    one = learner(config)
    rows = batch(one.rows, n_masks=masks_of(config))
    losses = [one.update(rows).loss for _ in range(200)]
    assert losses[-1] < 0.2 * losses[0]


def test_a_members_target_is_the_others_mean_distribution_at_its_own_action():
    one, rows = learner(RainbowEBQLConfig(ensemble_size=3, **QUIET_RAINBOW)), batch()
    one.target.load_state_dict(learner(one.config, seed=9).online.state_dict())
    support = torch.linspace(-4, 4, 9)
    with torch.no_grad():
        logits, after = (one.online(torch.from_numpy(x)) for x in (rows.observations, rows.next_observations))
        predictions = one.target(torch.from_numpy(rows.next_observations)).softmax(-1)
    total = 0.0
    for row in range(32):
        for k in range(3):
            action = int((after[row, k].softmax(-1) @ support).argmax())
            mixture = sum(predictions[row, j, action] for j in range(3) if j != k) / 2
            onto = np.zeros(9)
            for mass, atom in zip(mixture.tolist(), support.tolist(), strict=True):
                place = np.clip(rows.rewards[row] + rows.discounts[row] * atom, -4, 4)
                onto += mass * np.clip(1 - np.abs(place - support.numpy()), 0, None)
            said = logits[row, k, rows.actions[row]].log_softmax(-1).numpy()
            total += sum(m * (np.log(m) - p) for m, p in zip(onto, said, strict=True) if m > 0)
    assert one.update(rows).loss == pytest.approx(total / 32 / 3, rel=1e-4)


def test_a_loss_that_is_not_a_number_stops_before_the_weights_are_touched():
    one = learner(RainbowConfig())
    before = weights(one)
    with pytest.raises(RunError, match="loss became nan"):
        one.update(batch()._replace(rewards=np.full(32, np.nan, np.float32)))
    assert torch.equal(weights(one), before)


def test_a_single_rainbow_selects_online_and_evaluates_with_the_target():
    one, rows = learner(RainbowConfig(**QUIET_RAINBOW)), batch()
    one.target.load_state_dict(learner(one.config, seed=9).online.state_dict())
    turn = one._plans[0]
    _, after = one._outputs_and_next(turn, tensors(rows))
    picked = one.rule.bootstrap(after)
    online = one.online(torch.from_numpy(rows.next_observations))
    actions = (online[:, 0].softmax(-1) @ torch.linspace(-4, 4, 9)).argmax(-1)
    for row, action in enumerate(actions.tolist()):
        torch.testing.assert_close(picked[row, 0], after.predictions[row, 0, action])


def test_weights_scale_what_each_row_moves(monkeypatch):
    one, rows = learner(EBQLConfig(ensemble_size=3, max_grad_norm=None, prioritized=True)), batch()
    taken = []
    monkeypatch.setattr(one._optimiser, "step", lambda _, gradients, __: taken.append(gradients))
    halves = [np.float32(np.arange(32) < 16), np.float32(np.arange(32) >= 16)]
    everything, *parts = [one.update(rows._replace(weights=weight)) for weight in (ALL_ALIKE, *halves)]
    assert everything.loss == pytest.approx(sum(part.loss for part in parts), rel=1e-5)
    for whole, first, second in zip(*taken, strict=True):
        torch.testing.assert_close(whole, first + second, rtol=1e-4, atol=1e-6)
    # Errors are told as they are, whatever the weights.
    for part in parts:
        torch.testing.assert_close(part.errors, everything.errors)


def test_errors_are_the_members_td_errors():
    one, rows = learner(EBQLConfig(ensemble_size=3, prioritized=True)), batch()
    rows = rows._replace(discounts=np.zeros(32, np.float32))
    with torch.no_grad():
        q = one.online(torch.from_numpy(rows.observations))
    q = q[torch.arange(32), :, torch.from_numpy(rows.actions)]
    by_member = (q - torch.from_numpy(rows.rewards)[:, None]).abs()
    torch.testing.assert_close(one.update(rows).errors, by_member.mean(1))
    # Decoys: the mean of signed errors, and the greatest.
    assert not torch.allclose(by_member.mean(1), (q - torch.from_numpy(rows.rewards)[:, None]).mean(1).abs())
    assert not torch.allclose(by_member.mean(1), by_member.amax(1))


@pytest.mark.parametrize(
    ("members", "masks", "expected"),
    [
        ([0, 1, 2], [1, 0, 1], (1.0 + 4.0) / 2),  # those who may learn
        ([0, 1, 2], [0, 0, 0], 0.0),  # nobody ever may
        ([1], [1, 1, 0], 2.0),  # in a cycle, the one whose turn it is
        ([1], [1, 0, 0], 2.0),  # or its guess for the others
        ([1], [0, 0, 0], 0.0),
    ],
)
def test_a_rows_error_is_that_of_members_who_may_learn_from_it(members, masks, expected):
    """And so an update tells it, of all members at once and of one whose turn it is."""
    turns = "all" if len(members) == 3 else "cycle"
    config = EBQLConfig(ensemble_size=3, members=turns, data="masked", prioritized=True)
    one, rows = learner(config), batch(n_masks=3)
    rows = rows._replace(discounts=np.zeros(32, np.float32), masks=np.tile(np.array(masks, bool), (32, 1)))
    one.updates = members[0]  # whose turn it is
    with torch.no_grad():
        q = one.online(torch.from_numpy(rows.observations))
    q = q[torch.arange(32), :, torch.from_numpy(rows.actions)]
    by_member = (q - torch.from_numpy(rows.rewards)[:, None]).abs()
    who = [k for k in members if masks[k]] or members
    told = by_member[:, who].mean(1) if any(masks) else torch.zeros(32)
    torch.testing.assert_close(one.update(rows).errors, told)

    errors = torch.tensor([[-1.0, 2.0, 4.0]])[:, members]
    found = errors_by_row(errors, torch.tensor([masks], dtype=torch.bool), torch.tensor([members]))
    assert found.tolist() == [expected]


def test_snapshots_are_the_networks_last_copies():
    one = learner(AveragedDQNConfig(snapshots=3))
    observations = torch.from_numpy(batch().observations)
    said = [one.online(observations).detach()] * 3
    for update in range(5):
        torch.testing.assert_close(one.target(observations), torch.cat(said[-3:], 1)[:, _slots(update)])
        one.update(batch(seed=update))
        one.synchronise()
        said.append(one.online(observations).detach())


def _slots(n_synchronised):
    """Where the ring of three holds the last three copies, the oldest first."""
    return [(slot - n_synchronised) % 3 for slot in range(3)]


def test_a_prior_is_added_to_all_members_and_never_moves():
    config = BootstrappedDQNConfig(ensemble_size=3, prior_scale=2.0)
    one, plain = learner(config), learner(config.override(prior_scale=0.0))
    observations = torch.from_numpy(batch().observations)
    prior = one.online.prior(observations)
    assert prior.shape == (32, 3, 2)
    for network, bare in ((one.online, plain.online), (one.target, plain.target)):
        torch.testing.assert_close(network(observations), bare(observations) + 2 * prior)
    for update in range(3):
        one.update(batch(n_masks=3, seed=update))
        one.synchronise()
    assert torch.equal(one.online.prior(observations), prior)
    assert torch.equal(one.online(observations), one.target(observations))
    in_turn = learner(config.override(members="cycle"))
    alone = in_turn._plans[1].online(observations)
    torch.testing.assert_close(alone, in_turn.online(observations)[:, 1:2])


def test_noise_is_drawn_at_every_update_and_left_out_of_values():
    one = learner(RainbowConfig())
    observations = batch().observations
    with torch.no_grad():
        acting, quiet = one.acting_values(observations), one.values(observations)
        assert not torch.allclose(acting, quiet)
        assert torch.equal(one.acting_values(observations), acting)
        one.resample()
        assert not torch.allclose(one.acting_values(observations), acting)
        torch.testing.assert_close(one.values(observations), quiet)
        held = one.acting_values(observations)
        predictions = one.target(torch.from_numpy(observations))
    one.update(batch())
    with torch.no_grad():
        assert not torch.allclose(one.acting_values(observations), held)
        assert not torch.allclose(one.target(torch.from_numpy(observations)), predictions)


def test_noise_explores_before_anything_is_learnt(small):
    agent = Rainbow("CartPole-v1", **{**small, "learning_starts": 100, "update_period": 4, "n_step": 1})
    observation = np.zeros((1, 4), np.float32)
    values = []
    for _ in range(10):
        agent.learn(2)
        values.append(agent._training.learner.acting_values(observation).detach())
    anew = [not torch.equal(before, after) for before, after in pairwise(values)]
    assert agent._training.learner.updates == 0
    assert anew == [True, False] * 4 + [True]  # at the steps 4, 8, 12, 16 and 20


def test_acting_noise_follows_the_weights():
    """The held weights must be those of after the update, not of before."""
    one = learner(RainbowConfig(learning_rate=0.1))
    one.update(batch())
    observations = torch.from_numpy(batch().observations)
    with torch.no_grad():
        held = one.online(observations)
        for mlp in one.online._noisy:
            mlp._held = None
        torch.testing.assert_close(one.online(observations), held)  # computed anew


@pytest.mark.parametrize(
    "config",
    [
        RainbowConfig(),
        RainbowEBQLConfig(ensemble_size=3, members="cycle"),
        AveragedDQNConfig(snapshots=3),
        CrossDQNConfig(),
        BootstrappedDQNConfig(ensemble_size=3, prior_scale=1.0),
        EBQLConfig(noisy=True, dueling=True),
    ],
    ids=lambda config: config.name,
)
def test_a_restored_learner_goes_on_to_the_same_bits(config):
    first, second = learner(config), learner(config, seed=5)
    for update in range(4):
        first.update(batch(first.rows, n_masks=masks_of(config), seed=update))
        if update % 2:
            first.synchronise()
    second.restore({name: array.copy() for name, array in first.state().items()})
    second.updates = first.updates
    observations = batch().observations
    with torch.no_grad():
        assert torch.equal(first.acting_values(observations), second.acting_values(observations))
    for update in range(4):
        for one in (first, second):
            one.update(batch(one.rows, n_masks=masks_of(config), seed=update))
            one.synchronise()
    assert torch.equal(weights(first), weights(second))


def test_sunrise_counts_less_where_members_disagree():
    plain, weighted = (learner(SunriseConfig(temperature=t, data="shared")) for t in (0.0, 1e6))
    rows = batch()
    assert weighted.update(rows).loss == pytest.approx(plain.update(rows).loss / 2, rel=1e-5)


@pytest.mark.parametrize("members", ["all", "cycle"])
@pytest.mark.parametrize("data", ["shared", "independent"])
def test_the_chosen_split_is_told(members, data):
    config = EBQLConfig(ensemble_size=10, split="adaptive", members=members, data=data)
    one = learner(config)
    one.target.heads.layers[-1].bias[..., 0] += 0.15  # a gap about as large as the members' spread
    found = [one.update(batch(one.rows, seed=update)).logged for update in range(3)]
    assert all(1 < logged < 9 for logged in found)
    assert len(set(found)) > 1
    assert learner(config.override(split=2)).update(batch(one.rows)).logged == 2


HEADS = [{"quantiles": 5}, {"implicit_quantiles": 5, "target_fractions": 4, "policy_fractions": 3}]


@pytest.mark.parametrize("head", HEADS, ids=["quantiles", "implicit"])
@pytest.mark.parametrize("name", CONFIGS)
def test_every_rule_learns_quantiles(name, head):
    usual = {"quantiles": None, "implicit_quantiles": None, "atoms": None}
    priors = {"prior_scale": 0.0} if hasattr(CONFIGS[name], "prior_scale") else {}
    if name == "randomised-priors":
        with pytest.raises(InputError, match="prior-scale does not work with"):
            CONFIGS[name]().override(**head)
        return
    # Noisy layers draw new noise at every update, and their loss falls by a fifth only in as many updates.
    config = CONFIGS[name]().override(**{**usual, **head, **priors}, learning_rate=5e-3, noisy=False)
    one = learner(config)
    rows = batch(one.rows, n_masks=masks_of(config))
    losses = [one.update(rows).loss for _ in range(60)]
    assert losses[-1] < 0.7 * losses[0]


@pytest.mark.parametrize("data", ["shared", "independent", "masked"])
@pytest.mark.parametrize("members", ["all", "cycle"])
@pytest.mark.parametrize("share_torso", [True, False])
@pytest.mark.parametrize("head", HEADS, ids=["quantiles", "implicit"])
def test_quantiles_combine_with_all_parts_and_resume_to_the_same_bits(head, share_torso, members, data):
    config = EBQLConfig(
        **head,
        ensemble_size=3,
        data=data,
        members=members,
        share_torso=share_torso,
        split=2,
        dueling=True,
        noisy=True,
        prioritized=True,
    )
    test_a_restored_learner_goes_on_to_the_same_bits(config)


def test_implicit_quantiles_select_and_evaluate_at_fractions_of_their_own():
    """A member's action is best over τ̃; the others' quantiles at τ′ evaluate it; its own at τ learn."""
    config = EBQLConfig(ensemble_size=3, prioritized=True, **HEADS[1])
    one, rows = learner(config), batch()
    one.target.load_state_dict(learner(config, seed=9).online.state_dict())
    again = torch.Generator()
    again.set_state(one._generator.get_state())
    tau, tau_target, tau_policy = torch.rand(32, 5 + 4 + 3, generator=again).split([5, 4, 3], 1)
    with torch.no_grad():
        now, after = (torch.from_numpy(x) for x in (rows.observations, rows.next_observations))
        learnt = one.online.outputs(now, fractions=tau)
        selecting = one.online.outputs(after, fractions=tau_policy)
        evaluating = one.target.outputs(after, fractions=tau_target)
    total = 0.0
    for row in range(32):
        for k in range(3):
            action = int(selecting[row, k].mean(-1).argmax())
            others = sum(evaluating[row, j, action] for j in range(3) if j != k) / 2
            target = rows.rewards[row] + rows.discounts[row] * others
            for i in range(5):
                u = target - learnt[row, k, rows.actions[row], i]
                huber = torch.where(u.abs() <= 1, u**2 / 2, u.abs() - 0.5)
                total += float(((tau[row, i] - (u < 0).float()).abs() * huber).mean())
    assert one.update(rows).loss == pytest.approx(total / 32 / 3, rel=1e-4)
