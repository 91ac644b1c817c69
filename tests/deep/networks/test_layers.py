from copy import deepcopy

import pytest
import torch

from ebql.deep.networks.layers import MemberLinear, MemberMLP, uniform


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("share_rows", [True, False])
def test_each_member_multiplies_by_its_own_weights(share_rows):
    layer = MemberLinear(3, 7, 5, generator())
    features = torch.randn(1 if share_rows else 3, 4, 7, generator=generator(1))
    values = layer(features)
    assert values.shape == (3, 4, 5)
    for k in range(3):
        own = features[0 if share_rows else k] @ layer.weight[k] + layer.bias[k]
        torch.testing.assert_close(values[k], own)


@pytest.mark.parametrize("activate_last", [True, False])
def test_relu_lies_between_layers_and_after_the_last_only_if_wanted(activate_last):
    mlp = MemberMLP(1, (7, 6, 5), generator(), activate_last=activate_last)
    features = torch.randn(1, 40, 7, generator=generator(1))
    first, second = mlp.layers
    wanted = second(first(features).relu())
    assert (wanted < 0).any()
    torch.testing.assert_close(mlp(features), wanted.relu() if activate_last else wanted)


def test_initial_weights_fill_pytorchs_range():
    weights = uniform((50, 100), 16, generator())
    assert 0.24 < weights.abs().max() <= 0.25
    assert abs(weights.mean()) < 0.01


@pytest.mark.parametrize("n_members", [1, 3])
@pytest.mark.parametrize("are_large", [True, False])
def test_rows_without_gradients_come_along_and_change_no_gradient(large, n_members, are_large):
    plain = MemberMLP(n_members, (7, 6, 2), generator(), activate_last=False)
    mlp = large(MemberMLP, n_members, (7, 6, 2), activate_last=False) if are_large else deepcopy(plain)
    features = torch.randn(1, 4, 7, generator=generator(1), requires_grad=True)
    others = torch.randn(1, 5, 7, generator=generator(2))
    slopes = torch.randn(n_members, 4, 2, generator=generator(3))
    both, of_others = mlp.both(features, others)
    assert not of_others.requires_grad
    torch.testing.assert_close(of_others, mlp(others))
    torch.testing.assert_close(both, plain(features))
    gradients = torch.autograd.grad(both, (features, *mlp.parameters()), slopes)
    wanted = torch.autograd.grad(plain(features), (features, *plain.parameters()), slopes)
    for a, b in zip(gradients, wanted, strict=True):
        torch.testing.assert_close(a, b)


def test_copies_compute_the_same_without_what_is_packed(large):
    mlp = large(MemberMLP, 3, (7, 6, 2), activate_last=False)
    for layer in mlp.layers:
        layer.pack(rows=4)
    features = torch.randn(1, 4, 7, generator=generator(1))
    other = deepcopy(mlp)
    with torch.no_grad():
        torch.testing.assert_close(other(features), mlp(features))
        other.layers[0].weight.zero_()  # the copy's own, in the module and in what it computes with
        assert not torch.allclose(other(features), mlp(features))
