import pytest
import torch

from ebql.deep.config.agents import DQNConfig
from ebql.deep.optimisers import make_optimiser, norm_divisor


def test_centred_rmsprop_has_its_epsilon_inside_the_root():
    config = DQNConfig(optimiser="centred-rmsprop", learning_rate=0.1, optimiser_eps=0.19, rmsprop_alpha=0.9)
    weight = torch.tensor([5.0, 7.0])
    optimiser = make_optimiser(config, [weight])
    optimiser.step([0], [torch.tensor([2.0, 0.0])], None)
    # m = 0.2, v = 0.4, v − m² + ε = 0.4 − 0.04 + 0.19 = 0.55; outside the root it would be 0.6 + 0.19.
    assert weight.tolist() == pytest.approx([5 - 0.1 * 2 / 0.55**0.5, 7.0])
    moved = weight[0].item()
    optimiser.step([0], [torch.tensor([4.0, 0.0])], torch.tensor(4.0))
    # The divisor leaves g = 1: m = 0.28, v = 0.46, v − m² + ε = 0.46 − 0.0784 + 0.19.
    assert weight[0].item() == pytest.approx(moved - 0.1 / 0.5716**0.5)
    assert weight[1].item() == 7.0


def test_a_constant_gradient_leaves_no_variance_and_no_nan():
    config = DQNConfig(optimiser="centred-rmsprop", optimiser_eps=1e-12, rmsprop_alpha=0.5)
    weight = torch.zeros(1)
    optimiser = make_optimiser(config, [weight])
    for _ in range(200):
        optimiser.step([0], [torch.full((1,), 1e-3)], None)
    assert weight.isfinite().all()


@pytest.mark.parametrize("momentum", [0.0, 0.95])
@pytest.mark.parametrize("plain", ["", "1"])
def test_momentum_rmsprop_is_that_of_pytorch(plain, momentum, monkeypatch):
    monkeypatch.setenv("EBQL_PLAIN", plain)
    generator = torch.Generator().manual_seed(0)
    config = DQNConfig(
        optimiser="momentum-rmsprop",
        learning_rate=2.5e-4,
        optimiser_eps=0.01,
        rmsprop_alpha=0.95,
        rmsprop_momentum=momentum,
    )
    ours = [torch.randn(64, 33, generator=generator), torch.randn(33, generator=generator)]
    theirs = [weight.clone().requires_grad_() for weight in ours]
    optimiser = make_optimiser(config, ours)
    reference = torch.optim.RMSprop(
        theirs, lr=2.5e-4, alpha=0.95, eps=0.01, momentum=momentum, centered=True, foreach=False
    )
    for step in range(50):
        gradients = [torch.randn(weight.shape, generator=generator) * 0.1 ** (step % 4) for weight in ours]
        for weight, gradient in zip(theirs, gradients, strict=True):
            weight.grad = gradient.clone()
        reference.step()
        optimiser.step([0, 1], gradients, None)
    for one, other in zip(ours, theirs, strict=True):
        if plain and momentum:
            assert torch.equal(one, other)
        else:  # compiled in one pass, or PyTorch's branch without momentum: their roundings differ
            torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("optimiser", ["adam", "rmsprop", "centred-rmsprop", "momentum-rmsprop"])
@pytest.mark.parametrize("divisor", [None, torch.tensor(3.0)])
@pytest.mark.parametrize("weight_order", [torch.contiguous_format, torch.channels_last])
@pytest.mark.parametrize("gradient_order", [torch.contiguous_format, torch.channels_last])
def test_the_order_in_memory_changes_no_number(optimiser, divisor, weight_order, gradient_order):
    generator = torch.Generator().manual_seed(0)
    start = torch.randn(3, 4, 5, 6, generator=generator)
    plain, ordered = start.clone(), start.to(memory_format=weight_order, copy=True)
    config = DQNConfig(optimiser=optimiser, learning_rate=0.1)
    optimisers = [make_optimiser(config, [weight]) for weight in (plain, ordered)]
    for _ in range(3):
        gradient = torch.randn(3, 4, 5, 6, generator=generator)
        optimisers[0].step([0], [gradient.clone()], divisor)
        optimisers[1].step([0], [gradient.to(memory_format=gradient_order, copy=True)], divisor)
    torch.testing.assert_close(ordered, plain)
    assert not torch.equal(plain, start)
    for a, b in zip(*(each.state().values() for each in optimisers), strict=True):
        torch.testing.assert_close(a, b)


def test_rmsprop_steps_a_choice_of_tensors_and_leaves_the_rest():
    config = DQNConfig(optimiser="rmsprop", learning_rate=0.1, optimiser_eps=0.5, rmsprop_alpha=0.75)
    weights = [torch.tensor([1.0]), torch.tensor([2.0])]
    optimiser = make_optimiser(config, weights)
    optimiser.step([1], [torch.tensor([8.0])], torch.tensor(2.0))
    # g = 4, v = 0.25 · 16 = 4, √v + ε = 2.5; corrected for the start, √v would be 4.
    assert [weight.item() for weight in weights] == [1.0, pytest.approx(2 - 0.1 * 4 / 2.5)]
    assert [x.item() for x in optimiser.state().values()] == [0.0, pytest.approx(4.0)]


def test_gradients_are_divided_by_their_common_norm_whatever_their_order():
    generator = torch.Generator().manual_seed(0)
    plain = torch.randn(3, 4, 5, 6, generator=generator)
    part = torch.randn(7, 8, generator=generator)[:, 1:3]
    alike = torch.randn(2, 1, generator=generator).expand(2, 5)
    gradients = [plain.to(memory_format=torch.channels_last), plain.transpose(1, 2), part, alike]
    norm = torch.cat([gradient.flatten() for gradient in gradients]).norm()
    torch.testing.assert_close(norm_divisor(gradients, 2.0), norm / 2)
    assert norm_divisor(gradients, 1e3) == 1
