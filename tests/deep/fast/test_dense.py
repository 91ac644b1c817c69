import pytest
import torch

from ebql.deep import fast
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


def values_and_gradients(layer, features, slopes):
    values = layer(features)
    return values, *torch.autograd.grad(values, (features, layer.weight, layer.bias), slopes)


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
