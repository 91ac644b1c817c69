import pytest
import torch

from ebql.deep import fast
from ebql.deep.fast import dense
from ebql.deep.networks.layers import MemberLinear, both_products


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize("n_out", [5, 16])
@pytest.mark.parametrize("share_rows", [True, False])
@pytest.mark.parametrize("has_onednn", [True, False])
def test_a_large_layer_has_the_values_and_gradients_of_a_plain_product(
    large, has_onednn, share_rows, n_out, monkeypatch
):
    if not has_onednn:
        monkeypatch.setattr(fast, "HAS_ONEDNN", False)
    layer, plain = large(MemberLinear, 3, 7, n_out), MemberLinear(3, 7, n_out, generator())
    assert torch.equal(layer.weight, plain.weight)
    assert layer.weight.stride() != plain.weight.stride()
    features = torch.randn(1 if share_rows else 3, 4, 7, generator=generator(1), requires_grad=True)
    slopes = torch.randn(3, 4, n_out, generator=generator(2))
    for a, b in zip(*(values_and_gradients(each, features, slopes) for each in (layer, plain)), strict=True):
        torch.testing.assert_close(a, b)
    (of_weight,) = torch.autograd.grad(layer(features), layer.weight, slopes)
    assert of_weight.stride() == layer.weight.stride()  # so that the optimiser need not reorder it


@pytest.mark.parametrize("rows", [4, 40])  # fewer and more than inputs
@pytest.mark.parametrize("needs_gradient", [True, False])
def test_the_only_member_has_the_values_and_gradients_of_a_plain_product(rows, needs_gradient, monkeypatch):
    layer = MemberLinear(1, 7, 5, generator())
    features = torch.randn(1, rows, 7, generator=generator(1), requires_grad=needs_gradient)
    slopes = torch.randn(1, rows, 5, generator=generator(2))
    wanted = values_and_gradients(layer, features, slopes)
    assert not dense.pays(features, layer.weight)
    monkeypatch.setattr(dense, "WIDE", 1)
    monkeypatch.setattr(dense, "MKL_KEEPS_UP", False)
    assert dense.pays(features, layer.weight) == fast.HAS_ONEDNN
    found = values_and_gradients(layer, features, slopes)
    for a, b in zip(found, wanted, strict=True):
        torch.testing.assert_close(a, b)
    assert found[-2].stride() == layer.weight.stride()
    with torch.no_grad():
        torch.testing.assert_close(layer(features), wanted[0])
    monkeypatch.setattr(dense, "MKL_KEEPS_UP", True)
    assert not dense.pays(features, layer.weight)


def values_and_gradients(layer, features, slopes):
    values, inputs = layer(features), (features,) if features.requires_grad else ()
    return values, *torch.autograd.grad(values, (*inputs, layer.weight, layer.bias), slopes)


def test_packed_weights_serve_passes_without_gradients_until_they_are_packed_anew(large):
    layer = large(MemberLinear, 3, 7, 5)
    features = torch.randn(1, 4, 7, generator=generator(1))
    layer.pack(rows=4)
    with torch.no_grad():
        packed = layer(features)
        torch.testing.assert_close(packed, both_products(features, features, layer.weights)[0])
        layer.weight += 1
        torch.testing.assert_close(layer(features), packed)
        layer.pack(rows=4)
        packed_anew = layer(features)
    assert not torch.allclose(packed_anew, packed)
    torch.testing.assert_close(layer(features), packed_anew)  # with gradients, from the weights themselves


def test_other_precisions_are_computed_too(large):
    layer = large(MemberLinear, 3, 7, 5)
    features = torch.randn(1, 4, 7, generator=generator(1))
    wanted = layer(features).double()
    torch.testing.assert_close(layer.double()(features.double()), wanted, rtol=1e-5, atol=1e-6)
