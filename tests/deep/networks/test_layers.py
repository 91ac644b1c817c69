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


@pytest.mark.parametrize(
    ("activation", "of_minus_one", "of_two"),
    [
        ("relu", 0.0, 2.0),
        ("tanh", -0.761594, 0.964028),
        ("elu", -0.632121, 2.0),
        ("silu", -0.268941, 1.761594),
    ],
)
def test_hidden_layers_are_activated_as_the_option_says(activation, of_minus_one, of_two):
    mlp = MemberMLP(1, (1, 2, 2), generator(), activate_last=False, activation=activation)
    with torch.no_grad():
        for layer, weight in zip(mlp.layers, ([[-1.0, 2.0]], [[1.0, 0.0], [0.0, 1.0]]), strict=True):
            layer.weight.copy_(torch.tensor([weight]))
            layer.bias.zero_()
        outputs = mlp(torch.ones(1, 1, 1))
    torch.testing.assert_close(outputs, torch.tensor([[[of_minus_one, of_two]]]), atol=1e-5, rtol=0)


def test_layer_norm_is_pytorchs_with_a_scale_and_shift_for_each_member():
    mlp = MemberMLP(2, (3, 4, 5), generator(), activate_last=False, layer_norm=True)
    assert len(mlp.norms) == 1  # the output layer has none
    with torch.no_grad():
        mlp.norms[0].scale.copy_(torch.arange(8.0).reshape(2, 1, 4))
        mlp.norms[0].shift.fill_(0.5)
        rows = torch.randn(1, 6, 3, generator=generator(1))
        outputs, same = mlp(rows), mlp.both(rows, rows)[1]
    assert torch.equal(outputs, same)
    for k in range(2):
        norm = torch.nn.LayerNorm(4)
        norm.weight.data, norm.bias.data = torch.arange(4.0) + 4 * k, torch.full((4,), 0.5)
        first, last = ((layer.weight[k], layer.bias[k]) for layer in mlp.layers)
        expected = torch.relu(norm(rows[0] @ first[0] + first[1])) @ last[0] + last[1]
        torch.testing.assert_close(outputs[k], expected)


def test_rows_without_gradients_leave_none_behind_a_layer_norm():
    mlp = MemberMLP(2, (3, 4, 5), generator(), activate_last=False, layer_norm=True, activation="gelu")
    rows = torch.randn(1, 6, 3)
    with_gradients, without = mlp.both(rows, rows)
    assert with_gradients.requires_grad
    assert not without.requires_grad
