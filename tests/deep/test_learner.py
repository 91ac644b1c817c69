import numpy as np
import pytest
import torch
from torch.nn.functional import huber_loss, mse_loss

import ebql
from ebql.deep.building import build_learner
from ebql.deep.config.agents import DoubleDQNConfig, DQNConfig, EBQLConfig
from ebql.deep.fast import dense
from ebql.deep.learner import Learner, outputs_taken
from ebql.deep.networks.ensemble import QNetwork
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.networks.outputs import loss_and_slope
from ebql.deep.policy import greedy_actions
from ebql.deep.replay.ring import Transitions
from ebql.deep.targets import Next, ensemble_bootstrap
from ebql.errors import InputError, RunError

SPEC = ObservationSpec((3,), "float32")
ALL = [DQNConfig(), DoubleDQNConfig(), EBQLConfig(ensemble_size=3)]


def learner(config, seed=0, device="cpu"):
    ensemble = config.ensemble()
    network = QNetwork(
        SPEC,
        n_actions=2,
        n_members=ensemble.size,
        torso="mlp",
        hidden=(16, 16),
        own_layers=config.own_layers,
        share_torso=ensemble.share_torso,
        generator=torch.Generator().manual_seed(seed),
    )
    return Learner(config, network.to(device))


def batch(rows=32, n_masks=0, seed=0):
    rng = np.random.default_rng(seed)
    return Transitions(
        observations=rng.normal(size=(rows, 3)).astype(np.float32),
        actions=rng.integers(0, 2, rows),
        rewards=rng.normal(size=rows).astype(np.float32),
        discounts=np.where(rng.random(rows) < 0.3, 0, 0.9).astype(np.float32),
        next_observations=rng.normal(size=(rows, 3)).astype(np.float32),
        masks=rng.random((rows, n_masks)) < 0.5,
    )


def tensors(rows):
    return Transitions(*(torch.from_numpy(column) for column in rows))


def weights(a_learner):
    return {name: tensor.detach().clone() for name, tensor in a_learner.online.named_parameters()}


def test_the_prediction_is_the_value_of_the_action_that_was_taken():
    q = torch.tensor([[[1.0, 99.0], [2.0, 98.0]], [[97.0, 3.0], [96.0, 4.0]]])
    assert outputs_taken(q, torch.tensor([0, 1])).tolist() == [[1, 2], [3, 4]]
    atoms = torch.stack([q, q + 0.5], -1)
    taken = outputs_taken(atoms, torch.tensor([0, 1]))
    assert taken.tolist() == [[[1, 1.5], [2, 2.5]], [[3, 3.5], [4, 4.5]]]


@pytest.mark.parametrize(("loss", "function"), [("huber", huber_loss), ("mse", mse_loss)])
def test_losses_and_slopes_are_those_of_pytorch(loss, function):
    errors = torch.linspace(-3, 3, 25, requires_grad=True)
    expected = function(errors, torch.zeros(25), reduction="none")
    (slope,) = torch.autograd.grad(expected.sum(), errors)
    losses, slopes = loss_and_slope(errors.detach(), loss)
    torch.testing.assert_close(losses, expected.detach())
    torch.testing.assert_close(slopes, slope)


def test_the_greedy_action_is_that_of_the_mean():
    # Two of three members prefer action 0; the mean prefers action 1.
    q = torch.tensor([[[1.0, 0.0], [1.0, 0.0], [0.0, 9.0]]])
    assert greedy_actions(q, pessimistic=False).tolist() == [1]


@pytest.mark.parametrize("config", ALL, ids=lambda config: config.name)
@pytest.mark.parametrize("loss", ["huber", "mse"])
@pytest.mark.parametrize("optimiser", ["adam", "rmsprop", "centred-rmsprop"])
def test_one_batch_is_learnt_by_heart(config, loss, optimiser):
    one = learner(config.override(loss=loss, optimiser=optimiser, learning_rate=5e-3))
    losses = [one.update(batch()).loss for _ in range(300)]
    assert losses[-1] < 0.05 * losses[0]


def test_the_targets_are_those_of_the_rule_on_the_next_observation():
    one, rows = learner(EBQLConfig(ensemble_size=3, loss="mse")), batch()
    other = learner(EBQLConfig(ensemble_size=3), seed=9)
    one.target.load_state_dict(other.online.state_dict())
    with torch.no_grad():
        q, q_next_online = (
            one.online(torch.from_numpy(x)) for x in (rows.observations, rows.next_observations)
        )
        q_next_target = one.target(torch.from_numpy(rows.next_observations))
    total = 0.0
    for row in range(32):
        for k in range(3):
            action = int(q_next_online[row, k].argmax())
            others = [q_next_target[row, j, action].item() for j in range(3) if j != k]
            target = rows.rewards[row] + rows.discounts[row] * sum(others) / 2
            total += (q[row, k, rows.actions[row]].item() - target) ** 2
    assert one.update(rows).loss == pytest.approx(total / 32 / 3, rel=1e-4)


@pytest.mark.parametrize("share_torso", [True, False])
def test_in_a_cycle_only_the_member_in_turn_moves(share_torso):
    one = learner(EBQLConfig(ensemble_size=3, members="cycle", share_torso=share_torso))
    for update in range(7):  # more than one round: momentum would move the others
        before = weights(one)
        one.update(batch(seed=update))
        for name, now in weights(one).items():
            moved = [not torch.equal(a, b) for a, b in zip(now, before[name], strict=True)]
            if name.startswith("torso.") and share_torso:
                assert moved == [True]
            else:
                assert moved == [k == update % 3 for k in range(3)]


def masked_gradients(one, rows, weights_of_rows):
    """The slow way: everybody predicts every row, and `weights_of_rows` (rows, K) strike out what is idle."""
    rows = type(rows)(*(torch.from_numpy(column) for column in rows))
    with torch.no_grad():
        q_next_online, q_next_target = one.online(rows.next_observations), one.target(rows.next_observations)
        values = ensemble_bootstrap(Next(q_next_online, q_next_target, q_next_target, torch.arange(3)[None]))
        targets = rows.rewards[:, None] + rows.discounts[:, None] * values
    predictions = outputs_taken(one.online(rows.observations), rows.actions)
    loss = (huber_loss(predictions, targets, reduction="none") * weights_of_rows).sum()
    gradients = torch.autograd.grad(loss / one.config.batch_size, list(one.online.parameters()))
    # Copies: a large layer's next gradient takes this one's place.
    return loss.item(), dict(zip(weights(one), (each.clone() for each in gradients), strict=True))


@pytest.mark.parametrize("members", ["all", "cycle"])
@pytest.mark.parametrize("data", ["shared", "masked", "independent"])
@pytest.mark.parametrize("own_layers", [0, 1, 2])
@pytest.mark.parametrize("torso", [{}, {"torso_gradient": "mean"}, {"share_torso": False}], ids=str)
@pytest.mark.parametrize("large", [False, True])
def test_nothing_is_lost_by_computing_only_for_those_who_learn(
    members, data, own_layers, torso, large, monkeypatch
):
    if large:
        monkeypatch.setattr(dense, "LARGE", 1)
        monkeypatch.setattr(dense, "WIDE", 1)
    config = EBQLConfig(
        ensemble_size=3, members=members, data=data, own_layers=own_layers, batch_size=8, **torso
    )
    one, other = learner(config), learner(config, seed=9)
    one.target.load_state_dict(other.online.state_dict())
    one.target.pack(one.rows)
    taken = []
    monkeypatch.setattr(one._optimiser, "step", lambda *arguments: taken.append(arguments))
    for turn in range(4):  # a round and one more
        rows = batch(one.rows, n_masks=3 if data == "masked" else 0, seed=turn)
        k = turn % 3
        who = torch.eye(3)[k : k + 1] if members == "cycle" else torch.ones(1, 3)
        if data == "independent" and members == "all":
            who = torch.eye(3).repeat_interleave(8, 0)
        elif data == "masked":
            who = who * torch.from_numpy(rows.masks)
        loss, gradients = masked_gradients(one, rows, who)
        n_learning = 1 if members == "cycle" else 3
        assert one.update(rows).loss == pytest.approx(loss / 8 / n_learning, rel=1e-5)
        for (name, slow), fast in zip(gradients.items(), taken[-1][1], strict=True):
            if name.startswith("torso.") and config.torso_gradient == "mean":
                slow = slow / n_learning
            own = members == "cycle" and (name.startswith("heads.") or not config.share_torso)
            torch.testing.assert_close(fast, slow.chunk(3)[k] if own else slow, rtol=1e-4, atol=1e-6)
            if own:
                assert not any(slow.chunk(3)[j].any() for j in range(3) if j != k)


def test_independent_data_asks_for_a_batch_each_and_learns_from_them():
    one = learner(EBQLConfig(ensemble_size=3, data="independent", batch_size=8))
    assert one.rows == 24
    rows, before = batch(24), weights(one)
    # Member 2's rows change; members 0 and 1 must not notice, up to the shared torso's step.
    frozen = [learner(one.config.override(share_torso=False)) for _ in range(2)]
    changed = rows._replace(rewards=np.where(np.arange(24) >= 16, 50, rows.rewards).astype(np.float32))
    for a_learner, data in zip(frozen, (rows, changed), strict=True):
        a_learner.config = a_learner.config.override(max_grad_norm=None)
        a_learner.update(data)
    for a, b in zip(weights(frozen[0]).values(), weights(frozen[1]).values(), strict=True):
        assert [torch.equal(x, y) for x, y in zip(a, b, strict=True)][:2] == [True, True]
    one.update(rows)
    assert any(not torch.equal(now, before[name]) for name, now in weights(one).items())


def test_the_mean_torso_gradient_is_the_sum_divided_by_the_members(monkeypatch):
    gradients = {}
    for kind in ("sum", "mean"):
        one = learner(EBQLConfig(ensemble_size=4, torso_gradient=kind, max_grad_norm=None))
        monkeypatch.setattr(
            one._optimiser, "step", lambda _, g, __, kind=kind: gradients.__setitem__(kind, g), raising=False
        )
        one.update(batch())
    names = [name for name, _ in one.online.named_parameters()]
    assert names[0].startswith("torso.")
    for name, summed, mean in zip(names, gradients["sum"], gradients["mean"], strict=True):
        torch.testing.assert_close(mean * (4 if name.startswith("torso.") else 1), summed)


@pytest.mark.parametrize("optimiser", ["adam", "rmsprop"])
def test_the_optimisers_are_those_of_pytorch(optimiser):
    config = DQNConfig(optimiser=optimiser, max_grad_norm=0.5, optimiser_eps=1e-3)
    ours, theirs = learner(config), learner(config)
    tensors = list(theirs.online.parameters())
    if optimiser == "adam":
        reference = torch.optim.Adam(tensors, config.learning_rate, eps=1e-3)
    else:
        reference = torch.optim.RMSprop(tensors, config.learning_rate, alpha=0.95, eps=1e-3)
    for update in range(5):
        rows = batch(seed=update)
        tensors_of = type(rows)(*(torch.from_numpy(column) for column in rows))
        with torch.no_grad():
            values = theirs.target(tensors_of.next_observations).amax(-1)
        targets = tensors_of.rewards[:, None] + tensors_of.discounts[:, None] * values
        predictions = outputs_taken(theirs.online(tensors_of.observations), tensors_of.actions)
        reference.zero_grad()
        huber_loss(predictions, targets).backward()
        torch.nn.utils.clip_grad_norm_(tensors, 0.5)
        reference.step()
        ours.update(rows)
    for a, b in zip(weights(ours).values(), weights(theirs).values(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_a_large_target_follows_its_online_members_and_what_is_restored(monkeypatch):
    monkeypatch.setattr(dense, "LARGE", 1)
    monkeypatch.setattr(dense, "WIDE", 1)
    config = EBQLConfig(ensemble_size=3, learning_rate=0.1)
    one, other = learner(config), learner(config, seed=9)
    rows = batch()
    observations = torch.from_numpy(rows.observations)
    before = of_target(one, observations)
    one.update(rows)
    assert torch.equal(of_target(one, observations), before)
    one.synchronise()
    after = of_target(one, observations)
    assert not torch.allclose(after, before)
    torch.testing.assert_close(after, one.online(observations).detach())
    other.restore(one.state())
    assert torch.equal(of_target(other, observations), after)


def of_target(one, observations):
    with torch.no_grad():
        return one.target(observations)


@pytest.mark.parametrize("members", ["all", "cycle"])
@pytest.mark.parametrize("optimiser", ["adam", "rmsprop", "centred-rmsprop"])
def test_on_images_the_fused_step_goes_down_the_slope_of_every_weight(members, optimiser, monkeypatch):
    monkeypatch.setattr(dense, "LARGE", 2**19)  # otherwise only larger layers are
    config = EBQLConfig(
        ensemble_size=2, members=members, optimiser=optimiser, hidden=(352,), max_grad_norm=None
    )
    one = build_learner(config.override(batch_size=4), ObservationSpec((84, 84, 4), "uint8"), n_actions=2)
    assert not one.online.heads.layers[0].weight.is_contiguous()  # large enough to lie by output
    images = np.random.default_rng(0).integers(0, 256, (2, 4, 84, 84, 4), dtype=np.uint8)
    rows = batch(4)._replace(observations=images[0], next_observations=images[1])
    before = weights(one)
    turn = one._plans[0]
    gradients = [each.clone() for each in one._compute(turn, tensors(rows), torch.empty(0)).gradients]
    one.update(rows)
    shared = members == "all"
    for (name, old), gradient in zip(before.items(), gradients, strict=True):
        n_owners = 1 if shared or name.startswith("torso.") else 2
        moved = (weights(one)[name] - old).chunk(n_owners)[0]
        clear = gradient.abs() > 1e-3 * gradient.abs().max()
        # A first step of any of the optimisers has the gradient's sign.
        assert (moved.sign() == -gradient.sign())[clear & (moved != 0)].all()
        assert (moved != 0)[clear].float().mean() > 0.9


def test_target_members_stand_still_until_synchronised():
    one = learner(DQNConfig())
    before = [tensor.clone() for tensor in one.target.parameters()]
    one.update(batch())
    assert all(torch.equal(a, b) for a, b in zip(before, one.target.parameters(), strict=True))
    one.synchronise()
    assert all(
        torch.equal(a, b) for a, b in zip(one.online.parameters(), one.target.parameters(), strict=True)
    )


@pytest.mark.parametrize("members", ["all", "cycle"])
@pytest.mark.parametrize("optimiser", ["adam", "rmsprop", "centred-rmsprop"])
def test_a_restored_learner_goes_on_to_the_same_bits(members, optimiser):
    config = EBQLConfig(ensemble_size=3, members=members, optimiser=optimiser)
    first, second = learner(config), learner(config, seed=5)
    for update in range(2):  # fewer than the members, so that one has no optimiser state yet
        first.update(batch(seed=update))
    second.restore({name: array.copy() for name, array in first.state().items()})
    second.updates = first.updates
    for update in range(5):
        for one in (first, second):
            one.update(batch(seed=update))
    assert all(
        torch.equal(a, b) for a, b in zip(weights(first).values(), weights(second).values(), strict=True)
    )


def test_a_loss_that_is_not_a_number_stops_before_the_weights_are_touched():
    one, rows = learner(DQNConfig()), batch()
    before = weights(one)
    with pytest.raises(RunError, match="loss became nan"):
        one.update(rows._replace(rewards=np.full(32, np.nan, np.float32)))
    assert all(torch.equal(now, before[name]) for name, now in weights(one).items())


def test_in_a_cycle_the_mean_torso_gradient_is_that_of_the_member_in_turn():
    after = []
    for kind in ("sum", "mean"):
        one = learner(EBQLConfig(ensemble_size=4, members="cycle", torso_gradient=kind))
        one.update(batch())
        after.append(weights(one))
    assert all(torch.equal(after[0][name], after[1][name]) for name in after[0])


@pytest.mark.parametrize(
    ("saved", "here", "told"),
    [
        ({"ensemble_size": 3}, {"ensemble_size": 4}, r"heads.* is \(3, .* there and \(4, .* here"),
        ({}, {"optimiser": "rmsprop"}, r"optimiser\.mean\.0 is \(.*\) there and nothing here"),
        ({"optimiser": "rmsprop"}, {}, r"optimiser\.mean\.0 is nothing there"),
    ],
)
def test_a_state_of_other_options_is_refused_and_changes_nothing(saved, here, told):
    state = {name: array.copy() for name, array in learner(EBQLConfig(**saved), seed=5).state().items()}
    one = learner(EBQLConfig(**here))
    before = weights(one)
    with pytest.raises(InputError, match=told) as caught:
        one.restore(state)
    assert "\n" not in str(caught.value)
    assert all(torch.equal(before[name], tensor) for name, tensor in weights(one).items())


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
@pytest.mark.parametrize("members", ["all", "cycle"])
@pytest.mark.parametrize("optimiser", ["adam", "rmsprop"])
def test_cuda_learns_what_the_cpu_learns(members, optimiser):
    config = EBQLConfig(ensemble_size=3, members=members, optimiser=optimiser)
    here, there = learner(config), learner(config, device="cuda")
    for update in range(8):
        rows = batch(seed=update)
        assert there.update(rows).loss == pytest.approx(here.update(rows).loss, rel=1e-3)
    for a, b in zip(weights(here).values(), weights(there).values(), strict=True):
        torch.testing.assert_close(a, b.cpu(), rtol=1e-3, atol=1e-4)


def test_evaluations_steer_the_subset_of_adaeq_and_checkpoints_keep_it(small, tmp_path):
    """The size that an evaluation leaves is used, logged, saved and restored."""
    records = []
    options = {**small, "ensemble_size": 4, "subset_size": 2, "tolerance": 1e-9, "evaluation_period": 60}
    options |= {"evaluation_episodes": 1, "log_period": 50, "checkpoint_period": 80}
    agent = ebql.AdaEQ("CartPole-v1", **options)
    agent.learn(160, out=tmp_path / "whole", callback=records.append)
    sizes = [record["subset_size"] for record in records if "subset_size" in record]
    assert sizes[0] == 2  # before the first evaluation, at step 60
    assert sizes[-1] > 2  # any error varies by more than the tolerance
    ebql.AdaEQ("CartPole-v1", **options).learn(80, out=tmp_path / "parts")
    resumed = ebql.AdaEQ.resume(tmp_path / "parts", steps=160)
    whole, parts = agent._learner.state(), resumed._learner.state()
    assert whole["subset_size"].tolist() == [sizes[-1]]
    assert all((whole[name] == parts[name]).all() for name in whole)
    whole["subset_size"] = np.array([5])
    with pytest.raises(InputError, match="subset size must lie between 2 and 4, not 5"):
        resumed._learner.restore(whole)


def test_other_agents_ignore_what_evaluations_say_of_the_error(small):
    learner = ebql.REDQ("CartPole-v1", **small)._learner
    before = learner._generator.get_state()
    learner.steer(9.0)
    assert learner.subset_size is None
    assert "subset_size" not in learner.state()
    assert torch.equal(before, learner._generator.get_state())
