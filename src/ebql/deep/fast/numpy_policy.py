"""Values of small networks in NumPy, computed on the memory of PyTorch's parameters.

An agent with one environment needs one action at a time. For layers as small as CartPole's, PyTorch's calls
take several times as long as the products in them; NumPy's take a fifth of that.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ebql.deep import fast
from ebql.deep.networks.encoders import Flatten
from ebql.deep.networks.ensemble import QNetwork
from ebql.deep.networks.layers import MemberMLP
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.policy import aggregate
from ebql.deep.replay.ring import Array

# Rows × in × out of the largest layer. Beyond it the overhead of calls hardly matters, and NumPy's BLAS would
# start threads that the option `threads` does not control.
_MOST_PRODUCTS = 8192

Layers = list[tuple[NDArray[np.float32], NDArray[np.float32], bool]]


def numpy_values(
    network: QNetwork, rows: int, *, pessimistic: bool
) -> Callable[[Array], NDArray[np.float32]] | None:
    """Return a function from observations (rows, …) to the members' aggregate (rows, A), if it is faster.

    It reads the parameters in place, so it follows every update. None means that PyTorch is faster.
    """
    encoder, dense, heads = network.stages
    if not fast.enabled():
        return None
    on_cpu = all(parameter.device.type == "cpu" for parameter in network.parameters())
    if not on_cpu or not isinstance(encoder, Flatten) or network.spec.is_image or network.spec.leaves:
        return None
    if not isinstance(dense, MemberMLP) or not isinstance(heads, MemberMLP):
        return None
    if any(mlp.activation != "relu" or mlp.norms is not None for mlp in (dense, heads)):
        return None
    if network.atoms is not None or network.is_implicit or network.prior is not None:
        return None
    layers = _layers(dense) + _layers(heads)
    if max(rows * weight.shape[-2] * weight.shape[-1] for weight, _, _ in layers) > _MOST_PRODUCTS:
        return None
    encode, normaliser = _encoding(network.spec), network.normaliser

    def values(observations: Array) -> NDArray[np.float32]:
        features = encode(observations)
        if normaliser is not None:
            features = normaliser.flat(features)
        with np.errstate(all="ignore"):  # the learner reports weights that diverge
            for weight, bias, activated in layers:
                features = features @ weight
                features += bias
                if activated:
                    np.maximum(features, 0, out=features)
            if features.ndim == 3:
                features = aggregate(features, 0, pessimistic=pessimistic)
            return features

    return values


def _layers(mlp: MemberMLP) -> Layers:
    """Return each layer's weight, bias and whether a ReLU follows; without an axis of a single member."""
    layers = []
    for i, layer in enumerate(mlp.weights()):
        weight, bias = (parameter.detach().numpy() for parameter in (layer.weight, layer.bias))
        if len(weight) == 1:
            weight, bias = weight[0], bias[0]
        layers.append((weight, bias, i < mlp.n_activated))
    return layers


def _encoding(spec: ObservationSpec) -> Callable[[Array], NDArray[np.float32]]:
    """Return `encode` for arrays that are no images, the result flattened to (rows, inputs)."""
    if spec.n_categories is not None:
        one_hot, first = np.eye(spec.n_categories, dtype=np.float32), spec.first_category
        return lambda categories: one_hot[categories - first]
    scale = np.float32(1 / 255 if spec.dtype == "uint8" else 1)

    def floats(observations: Array) -> NDArray[np.float32]:
        flat = observations.reshape(len(observations), spec.n_inputs).astype(np.float32, copy=False)
        return flat * scale if scale != 1 else flat

    return floats
