import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from ebql.deep.networks.heads import midpoints
from ebql.deep.networks.outputs import DistributionOutput, QuantileOutput, ValueOutput, projected

SUPPORT = torch.tensor([0.0, 1.0, 2.0, 3.0])


def slow_projection(probabilities, returns, support):
    """Equation 7 of Bellemare et al., one return at a time."""
    onto, spacing = np.zeros(len(support)), support[1] - support[0]
    for mass, value in zip(probabilities, returns, strict=True):
        value = min(max(value, support[0]), support[-1])
        for atom, place in enumerate(support):
            onto[atom] += mass * max(0.0, 1 - abs(value - place) / spacing)
    return onto


def test_the_projection_by_hand():
    # r = 0.5, γ = 0.5: the atoms 0, 1, 2, 3 go to 0.5, 1, 1.5, 2.
    probabilities = torch.tensor([0.1, 0.2, 0.3, 0.4])
    onto = projected(probabilities, 0.5 + 0.5 * SUPPORT, SUPPORT)
    torch.testing.assert_close(onto, torch.tensor([0.05, 0.05 + 0.2 + 0.15, 0.15 + 0.4, 0.0]))


def test_returns_beyond_the_ends_count_as_the_ends_and_those_on_an_atom_stay():
    probabilities = torch.tensor([0.1, 0.2, 0.3, 0.4])
    assert projected(probabilities, SUPPORT + 9, SUPPORT).tolist() == pytest.approx([0, 0, 0, 1])
    assert projected(probabilities, SUPPORT - 9, SUPPORT).tolist() == pytest.approx([1, 0, 0, 0])
    torch.testing.assert_close(projected(probabilities, SUPPORT, SUPPORT), probabilities)


@settings(deadline=None)  # a busy machine is no failure
@given(st.integers(2, 60), st.floats(-20, 5), st.floats(0.1, 30), st.integers(0, 2**31 - 1))
def test_the_projection_equals_the_slow_one_and_keeps_mass_and_mean(atoms, v_min, width, seed):
    rng = np.random.default_rng(seed)
    support = np.linspace(v_min, v_min + width, atoms)
    probabilities = rng.dirichlet(np.ones(atoms), (2, 3))
    returns = rng.normal(v_min + width / 2, width, (2, 1, atoms))
    fast = projected(*(torch.from_numpy(x) for x in (probabilities, returns, support))).numpy()
    for row in range(2):
        for k in range(3):
            slow = slow_projection(probabilities[row, k], returns[row, 0], support)
            np.testing.assert_allclose(fast[row, k], slow, atol=1e-9)
    np.testing.assert_allclose(fast.sum(-1), 1)
    clipped = returns.clip(support[0], support[-1])
    np.testing.assert_allclose(fast @ support, (probabilities * clipped).sum(-1), atol=1e-8)


def test_a_terminal_target_is_the_reward_alone():
    head = DistributionOutput(4, 0.0, 3.0)
    decoy = torch.tensor([[[0.0, 0.0, 0.0, 1.0]]])
    target = head.target(torch.tensor([1.25]), torch.tensor([0.0]), decoy)
    torch.testing.assert_close(target, torch.tensor([[[0.0, 0.75, 0.25, 0.0]]]))


def test_the_softmax_is_over_atoms_and_not_over_actions():
    """Two actions whose logits differ by a constant are equally good; over actions they would not be."""
    head = DistributionOutput(3, -1.0, 1.0)
    logits = torch.zeros(1, 2, 2, 3)
    logits[:, :, 1] += 5.0
    logits[:, 1, :, 2] = 100.0
    predictions = head.predictions(logits)
    torch.testing.assert_close(predictions.sum(-1), torch.ones(1, 2, 2))
    values = head.values(predictions)
    assert values.shape == (1, 2, 2)
    torch.testing.assert_close(values, torch.tensor([[[0.0, 0.0], [1.0, 1.0]]]))


def test_the_categorical_loss_is_the_divergence_and_its_slope_that_of_the_cross_entropy():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(5, 2, 7, generator=generator, requires_grad=True)
    target = torch.rand(5, 2, 7, generator=generator).softmax(-1)
    entropy = cross_entropy(logits.flatten(0, 1), target.flatten(0, 1), reduction="none").view(5, 2)
    (slopes,) = torch.autograd.grad(entropy.sum(), logits)
    losses, own_slopes, errors = DistributionOutput(7, 0.0, 1.0).loss(logits.detach(), target)
    torch.testing.assert_close(losses, (entropy + (target * target.log()).sum(-1)).detach())
    torch.testing.assert_close(own_slopes, slopes)
    assert torch.equal(errors, losses)


def test_the_divergence_from_itself_is_nothing_and_a_sure_target_costs_its_logarithm():
    head = DistributionOutput(3, 0.0, 1.0)
    logits = torch.tensor([[[0.3, -1.0, 2.0]]])
    assert head.loss(logits, logits.softmax(-1)).losses.item() == pytest.approx(0, abs=1e-6)
    sure = torch.tensor([[[0.0, 1.0, 0.0]]])
    expected = -logits.log_softmax(-1)[0, 0, 1].item()
    assert head.loss(logits, sure).losses.item() == pytest.approx(expected)


def test_a_scalar_head_says_what_it_is_told():
    head, outputs = ValueOutput("huber"), torch.tensor([[1.0, 5.0]])
    assert head.values(head.predictions(outputs)) is outputs
    target = head.target(torch.tensor([1.0]), torch.tensor([0.5]), torch.tensor([[2.0, 4.0]]))
    losses, slopes, errors = head.loss(outputs, target)
    assert target.tolist() == [[2.0, 3.0]]
    assert errors.tolist() == [[-1.0, 2.0]]
    assert slopes.tolist() == [[-1.0, 1.0]]
    assert losses.tolist() == [[0.5, 1.5]]


def test_the_quantile_huber_loss_by_hand():
    """Two quantiles (τ̂ = 1/4, 3/4) against three targets: all six pairs count."""
    head = QuantileOutput(midpoints(2))
    outputs, target = torch.tensor([[[0.0, 1.0]]]), torch.tensor([[[-0.5, 1.0, 3.0]]])
    # u = target − output: −0.5, 1, 3 for the first quantile, −1.5, 0, 2 for the second.
    first = [0.75 * 0.125, 0.25 * 0.5, 0.25 * 2.5]
    second = [0.25 * 1.0, 0.75 * 0.0, 0.75 * 1.5]
    losses, slopes, errors = head.loss(outputs, target)
    assert losses.item() == pytest.approx(sum(first) / 3 + sum(second) / 3)
    slope = [-(0.75 * -0.5 + 0.25 + 0.25) / 3, -(0.25 * -1.0 + 0.0 + 0.75) / 3]
    assert slopes[0, 0].tolist() == pytest.approx(slope)
    assert errors.item() == pytest.approx(0.5 - 3.5 / 3)
    # Decoys: fractions that belong to the targets, pairs of equal places only, a mean over both axes.
    assert losses.item() != pytest.approx((sum(first) + sum(second)) / 6)
    swapped, _, _ = QuantileOutput(midpoints(2).flip(0)).loss(outputs, target)
    assert losses.item() != pytest.approx(swapped.item())


def test_quantile_slopes_are_the_losses_gradients_for_fractions_of_each_row():
    torch.manual_seed(0)
    outputs, target = torch.randn(4, 3, 5, requires_grad=True), 2 * torch.randn(4, 3, 7)
    fractions = torch.rand(4, 5)
    losses, slopes, _ = QuantileOutput(fractions).loss(outputs, target)
    torch.testing.assert_close(slopes, torch.autograd.grad(losses.sum(), outputs)[0])
    for row in range(4):
        alone, _, _ = QuantileOutput(fractions[row]).loss(outputs[row : row + 1], target[row : row + 1])
        torch.testing.assert_close(alone[0], losses[row])


def test_quantiles_are_learnt_as_they_are_and_their_mean_is_the_value():
    head = QuantileOutput(midpoints(3))
    outputs = torch.tensor([[[[0.0, 1.0, 5.0], [9.0, -3.0, 0.0]]]])  # (1, 1, 2 actions, 3 quantiles)
    assert torch.equal(head.predictions(outputs), outputs)  # no softmax over either axis
    assert head.values(outputs).tolist() == [[[2.0, 2.0]]]  # over quantiles, not over actions
    target = head.target(torch.tensor([1.0]), torch.tensor([0.5]), outputs[:, :, 0])
    assert target.tolist() == [[[1.0, 1.5, 3.5]]]
    assert head.target(torch.tensor([1.0]), torch.tensor([0.0]), outputs[:, :, 1]).tolist() == [[[1.0] * 3]]


def test_quantile_regression_finds_the_quantiles():
    """The slopes vanish there: at 1.125, for example, 7/8 (1 + 0.125) = 1/8 (0.875 + 7)."""
    head, outputs = QuantileOutput(midpoints(4)), torch.zeros(1, 1, 4)
    for _ in range(4_000):
        outputs -= 0.05 * head.loss(outputs, torch.arange(10.0).reshape(1, 1, 10)).slopes
    assert outputs.flatten().tolist() == pytest.approx([1.125, 3.375, 5.625, 7.875], abs=1e-3)
