import pytest
import torch

from ebql.deep.fast import dense
from ebql.deep.networks import heads
from ebql.deep.networks.heads import NoisyMLP, dueling


def noisy(n_members=3, sizes=(4, 5, 2), seed=0):
    return NoisyMLP(
        n_members,
        sizes,
        torch.Generator().manual_seed(seed),
        activate_last=False,
        noise_scale=0.5,
    )


def test_noise_is_the_outer_product_of_rooted_normals():
    mlp, generator = noisy(), torch.Generator().manual_seed(7)
    draws = torch.randn(3, 4 + 5 + 5 + 2, generator=torch.Generator().manual_seed(7))
    rooted = draws.sign() * draws.abs().sqrt()
    mlp.resample(generator)
    layer = mlp.layers()[1]
    weight, bias = layer.noisy()
    for k in range(3):
        noise_in, noise_out = rooted[k, 9:14], rooted[k, 14:]
        expected = layer.weight[k] + layer.weight_scale[k] * torch.outer(noise_in, noise_out)
        torch.testing.assert_close(weight[k], expected)
        torch.testing.assert_close(bias[k, 0], layer.bias[k, 0] + layer.bias_scale[k, 0] * noise_out)


def test_scales_start_at_their_share_and_means_as_a_plain_layer():
    layer = noisy().layers()[0]
    assert layer.weight_scale.unique().tolist() == [0.25]
    assert layer.weight.abs().max() <= 0.5


def test_outputs_change_with_each_draw_and_not_with_noise_off():
    mlp, generator = noisy(), torch.Generator().manual_seed(0)
    inputs = torch.randn(1, 6, 4, generator=torch.Generator().manual_seed(1))
    means = mlp(inputs)  # nothing is drawn yet
    mlp.resample(generator)
    first = mlp(inputs)
    assert first.shape == (3, 6, 2)
    assert not torch.allclose(first, means)
    assert torch.equal(mlp(inputs), first)
    mlp.resample(generator)
    assert not torch.allclose(mlp(inputs), first)
    mlp.noise_off = True
    torch.testing.assert_close(mlp(inputs), means)


def test_held_weights_serve_until_they_are_held_anew():
    mlp, generator = noisy(), torch.Generator().manual_seed(0)
    inputs = torch.ones(1, 2, 4)
    mlp.resample(generator)
    fresh = mlp(inputs)
    mlp.refresh_cache()
    assert torch.equal(mlp(inputs), fresh)
    with torch.no_grad():
        assert torch.equal(mlp(inputs), fresh)
        mlp.means[0] += 1
        assert torch.equal(mlp(inputs), fresh)
        mlp.noise_off = True
        assert not torch.allclose(mlp(inputs), fresh)
        mlp.noise_off = False
    mlp.refresh_cache()
    held = mlp(inputs)
    assert not torch.allclose(held, fresh)
    mlp.resample(generator)  # refreshes its cache by itself
    assert not torch.allclose(mlp(inputs), held)


@pytest.mark.parametrize("large", [1, 2**19])
def test_held_weights_have_the_values_and_gradients_of_fresh_ones(large, monkeypatch):
    fresh = noisy()
    monkeypatch.setattr(dense, "LARGE", large)  # from which size on weights lie by output
    monkeypatch.setattr(dense, "WIDE", large)
    monkeypatch.setattr(heads, "_LARGE", large)
    held = noisy()
    assert held.means[0].is_contiguous() == (large > 1)
    for mlp in (fresh, held):
        mlp.resample(torch.Generator().manual_seed(0))
    held.refresh_cache()
    inputs = torch.randn(1, 6, 4, generator=torch.Generator().manual_seed(1), requires_grad=True)
    others = torch.randn(1, 5, 4, generator=torch.Generator().manual_seed(3))
    slopes = torch.randn(3, 6, 2, generator=torch.Generator().manual_seed(2))
    values, values_of_others = held.both(inputs, others)
    torch.testing.assert_close(values, fresh(inputs))
    torch.testing.assert_close(held(inputs), values)
    torch.testing.assert_close(values_of_others, fresh(others))
    assert not values_of_others.requires_grad
    with torch.no_grad():
        torch.testing.assert_close(held(inputs), values)
    gradients = torch.autograd.grad(values, (inputs, *held.parameters()), slopes)
    wanted = torch.autograd.grad(fresh(inputs), (inputs, *fresh.parameters()), slopes)
    for a, b in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(a, b)


def test_gradients_of_the_scales_are_those_of_the_weights_times_the_noise():
    mlp = noisy()
    mlp.resample(torch.Generator().manual_seed(0))
    mlp(torch.ones(1, 2, 4)).sum().backward()
    layer = mlp.layers()[1]
    means, scales = mlp.means[2].grad, mlp.scales[2].grad
    torch.testing.assert_close(scales, means * layer.noise_in * layer.noise_out)


def test_dueling_by_hand():
    # Two actions with two atoms each: advantages (1, 5) and (3, 1) have the means (2, 3).
    values, advantages = torch.tensor([[[10.0, 20.0]]]), torch.tensor([[[1.0, 5.0, 3.0, 1.0]]])
    assert dueling(values, advantages, n_actions=2).tolist() == [[[9.0, 22.0, 11.0, 18.0]]]
    plain = dueling(torch.tensor([[[10.0]]]), torch.tensor([[[1.0, 3.0]]]), n_actions=2)
    assert plain.tolist() == [[[9.0, 11.0]]]


def test_a_constant_cannot_move_between_the_streams():
    values, advantages = torch.randn(2, 3, 1), torch.randn(2, 3, 4)
    both = dueling(values, advantages, 4)
    torch.testing.assert_close(dueling(values, advantages + 7, 4), both)
    assert both.mean(-1).flatten().tolist() == pytest.approx(values.flatten().tolist(), abs=1e-5)
