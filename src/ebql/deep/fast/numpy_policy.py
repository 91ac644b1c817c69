"""Values of small networks without PyTorch, computed on the memory of its parameters.

An agent with one environment needs one action at a time. For layers as small as CartPole's, PyTorch's calls
take several times as long as the products in them; NumPy's take a fifth of that. Larger layers are multiplied
by one row in compiled code, which skips the inputs that a ReLU has set to 0 if weights are stored by input.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ebql.compiled import compiled, reordered
from ebql.deep import fast
from ebql.deep.fast import sparse
from ebql.deep.networks.encoders import Flatten, MinAtarConvolution
from ebql.deep.networks.ensemble import QNetwork
from ebql.deep.networks.layers import MemberMLP
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.policy import aggregate
from ebql.deep.replay.ring import Array

# Rows × in × out of the largest layer for NumPy. Beyond it NumPy's BLAS would start threads that the option
# `threads` does not control.
_MOST_PRODUCTS = 8192

Floats = NDArray[np.float32]
Layers = list[tuple[Floats, Floats, bool]]


def numpy_values(network: QNetwork, rows: int, *, pessimistic: bool) -> Callable[[Array], Floats] | None:
    """Return a function from observations (rows, …) to the members' aggregate (rows, A), if it is faster.

    It reads the parameters in place, so it follows every update. None means that PyTorch is faster.
    """
    _, dense, heads = network.stages
    if not fast.enabled():
        return None
    if any(parameter.device.type != "cpu" for parameter in network.parameters()):
        return None
    if not isinstance(dense, MemberMLP) or not isinstance(heads, MemberMLP):
        return None
    if any(mlp.activation != "relu" or mlp.norms is not None for mlp in (dense, heads)):
        return None
    if network.atoms is not None or network.is_implicit or network.prior is not None:
        return None
    features_of = _encoding(network)
    if features_of is None:
        return None
    layers = _layers(dense) + _layers(heads)
    product = _numpy_product
    if max(rows * weight.shape[1] * weight.shape[2] for weight, _, _ in layers) > _MOST_PRODUCTS:
        if rows > 1:
            return None
        product = _compiled_product
    elif all(len(weight) == 1 for weight, _, _ in layers):  # without that axis NumPy takes half the time
        layers = [(weight[0], bias[0], activated) for weight, bias, activated in layers]

    def values(observations: Array) -> Floats:
        features = features_of(observations)
        with np.errstate(all="ignore"):  # the learner reports weights that diverge
            for weight, bias, activated in layers:
                features = product(features, weight, bias)
                if activated:
                    np.maximum(features, 0, out=features)
            if features.ndim == 3:
                features = aggregate(features, 0, pessimistic=pessimistic)
            return features

    return values


def _numpy_product(features: Floats, weight: Floats, bias: Floats) -> Floats:
    """Return features ([M,] rows, in) times the weight ([M,] in, out), plus the bias: ([M,] rows, out)."""
    products: Floats = features @ weight
    products += bias
    return products


def _compiled_product(features: Floats, weight: Floats, bias: Floats) -> Floats:
    """As `_numpy_product`, for one row and weights (M, in, out)."""
    if weight.flags.c_contiguous:
        return _product_by_input(features, weight, bias)
    return _product_by_output(features, weight.transpose(0, 2, 1), bias)


@compiled
def _product_by_input(features: Floats, weight: Floats, bias: Floats) -> Floats:
    """Return the product with weights (M, in, out)."""
    n_members, n_inputs, n_outputs = weight.shape
    products = bias.copy()
    rows, used = features.reshape(-1, n_inputs), np.empty(n_inputs, np.int64)
    for member in range(n_members):
        inputs = rows[member if len(rows) > 1 else 0]
        n_used = 0
        for i in range(n_inputs):
            used[n_used] = i
            n_used += inputs[i] != 0
        out = products[member, 0]
        last = n_used - n_used % 4
        for i in range(0, last, 4):  # four at a time: the outputs are read and written less often
            a, b, c, d = used[i], used[i + 1], used[i + 2], used[i + 3]
            of_a, of_b, of_c, of_d = (
                weight[member, a],
                weight[member, b],
                weight[member, c],
                weight[member, d],
            )
            for j in range(n_outputs):
                out[j] += (
                    inputs[a] * of_a[j] + inputs[b] * of_b[j] + inputs[c] * of_c[j] + inputs[d] * of_d[j]
                )
        for i in used[last:n_used]:
            for j in range(n_outputs):
                out[j] += inputs[i] * weight[member, i, j]
    return products


@reordered
def _product_by_output(features: Floats, weight: Floats, bias: Floats) -> Floats:
    """Return the product with weights (M, out, in)."""
    n_members, n_outputs, n_inputs = weight.shape
    products = bias.copy()
    rows = features.reshape(-1, n_inputs)
    for member in range(n_members):
        inputs = rows[member if len(rows) > 1 else 0]
        for j in range(n_outputs):
            of_output, total = weight[member, j], np.float32(0)
            for i in range(n_inputs):
                total += inputs[i] * of_output[i]
            products[member, 0, j] += total
    return products


def _layers(mlp: MemberMLP) -> Layers:
    """Return each layer's weight, bias and whether a ReLU follows."""
    return [
        (layer.weight.detach().numpy(), layer.bias.detach().numpy(), i < mlp.n_activated)
        for i, layer in enumerate(mlp.weights())
    ]


def _encoding(network: QNetwork) -> Callable[[Array], Floats] | None:
    """Return a function from observations (rows, …) to features ([M,] rows, n), or None for PyTorch's."""
    spec, encoder, normaliser = network.spec, network.stages[0], network.normaliser
    if isinstance(encoder, MinAtarConvolution):
        if spec.dtype != "bool" or spec.channels_first:
            return None
        weight, bias = (parameter.detach().numpy() for parameter in encoder.convolution.parameters())
        return lambda images: sparse.features_of(
            images.reshape(1, len(images), len(images[0]), -1), weight, bias
        )
    if not isinstance(encoder, Flatten) or spec.is_image or spec.leaves:
        return None
    floats_of = _floats(spec)
    if normaliser is None:
        return floats_of
    return lambda observations: normaliser.flat(floats_of(observations))


def _floats(spec: ObservationSpec) -> Callable[[Array], Floats]:
    """Return `encode` for arrays that are no images, the result flattened to (rows, inputs)."""
    if spec.n_categories is not None:
        one_hot, first = np.eye(spec.n_categories, dtype=np.float32), spec.first_category
        return lambda categories: one_hot[categories - first]
    scale = np.float32(1 / 255 if spec.dtype == "uint8" else 1)

    def floats(observations: Array) -> Floats:
        flat = observations.reshape(len(observations), spec.n_inputs).astype(np.float32, copy=False)
        return flat * scale if scale != 1 else flat

    return floats
