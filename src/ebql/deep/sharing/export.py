"""An agent's policy as an ONNX file: observations → the members' values and the greedy actions.

The graph is written layer by layer from the agent's network, so it needs neither PyTorch's exporter nor this
package to run. Layers of activations are (M, rows, features), as in `networks/`; noise is left out.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ebql.deep.learner import Learner
from ebql.deep.networks.encoders import (
    Combined,
    Flatten,
    MinAtarConvolution,
    NatureConvolutions,
    SmallConvolutions,
)
from ebql.deep.networks.ensemble import QNetwork
from ebql.deep.networks.heads import MLP, DuelingHeads
from ebql.deep.networks.normalisation import FURTHEST, Normaliser
from ebql.deep.networks.observations import ObservationSpec
from ebql.deep.networks.outputs import DistributionOutput, Output, QuantileOutput
from ebql.deep.networks.spaces import Spaces
from ebql.deep.sharing.onnx_graph import OnnxGraph
from ebql.environments.lanes.structures import Leaf
from ebql.errors import InputError
from ebql.runs import output_folder, write_bytes

OBSERVATION, MASK, VALUES, ACTION = "observation", "action_mask", "values", "action"

_ACTIVATIONS = {"relu": "Relu", "tanh": "Tanh", "elu": "Elu", "gelu": "Gelu"}


def write_onnx(
    path: str | Path, learner: Learner, spaces: Spaces, about: dict[str, str], *, action_masks: bool
) -> Path:
    """Write the ONNX file of a learner's greedy policy to `path`, and return the path."""
    content = onnx_policy(learner, spaces, about, action_masks=action_masks)
    output_folder(Path(path).parent)
    return write_bytes(path, content)


def onnx_policy(learner: Learner, spaces: Spaces, about: dict[str, str], *, action_masks: bool) -> bytes:
    """Return the ONNX file of a learner's greedy policy.

    Its inputs are `observation` (rows, …), or an input for each array of a structured observation, and with
    `action_masks` the legal actions `action_mask` (rows, A). Its outputs are `values` (rows, K, A) and
    `action` (rows,), numbered as in the environment.
    """
    network = learner.online
    if network.own is not None:
        raise InputError("An agent with an encoder or a network of your own cannot be exported.")
    graph = OnnxGraph()
    with torch.no_grad(), network.without_noise():
        floats = _floats(graph, spaces.observations)
        if network.normaliser is not None:
            floats = _normalised(graph, network.normaliser, floats)
        values = _values(graph, learner.output, _outputs(graph, network, floats))
    graph.output(VALUES, values, "float32", (network.n_members, spaces.n_actions))
    joined = graph.minimum(values, 1) if learner.ensemble.pessimistic else graph.mean(values, 1)
    if action_masks:
        legal = graph.input(MASK, "bool", (spaces.n_actions,))
        joined = graph.add("Where", legal, joined, graph.constant(-np.inf))
    _add_actions(graph, spaces, graph.add("ArgMax", joined, axis=1, keepdims=0))
    return graph.model(about)


def _add_actions(graph: OnnxGraph, spaces: Spaces, numbers: str) -> None:
    """Add the output: the environment's own actions, given their numbers (rows,)."""
    table = spaces.own(np.arange(spaces.n_actions))
    own = graph.add("Gather", graph.constant(table, table.dtype.name), numbers)
    graph.output(ACTION, own, table.dtype.name, table.shape[1:])


def _floats(graph: OnnxGraph, spec: ObservationSpec) -> str:
    """Add the inputs; return them as floats (rows, …), as `networks.encoders.encode` does."""
    if not spec.leaves:
        return _encoded(graph, spec, graph.input(OBSERVATION, spec.dtype, spec.shape))
    images, others = [], []
    for leaf, image in zip(spec.leaves, spec.leaf_specs, strict=True):
        column = graph.input(input_name(leaf), leaf.dtype, leaf.shape)
        if image is not None:
            images.append(graph.add("Flatten", _encoded(graph, image, column), axis=1))
        elif leaf.categories:
            flat = graph.reshape(column, -1, len(leaf.categories))
            entries = graph.split(flat, (1,) * len(leaf.categories))
            for entry, first, size in zip(entries, leaf.first, leaf.categories, strict=True):
                others.append(_one_hot(graph, graph.reshape(entry, -1), first, size))
        else:
            floats = _encoded(graph, ObservationSpec((math.prod(leaf.shape),), leaf.dtype), column)
            others.append(graph.reshape(floats, -1, math.prod(leaf.shape)))
    return graph.add("Concat", *images, *others, axis=1)


def input_name(leaf: Leaf) -> str:
    """Return the name of the input for one array of a structured observation: its keys, with dots between."""
    return ".".join(str(key) for key in leaf.path) or OBSERVATION


def _encoded(graph: OnnxGraph, spec: ObservationSpec, stored: str) -> str:
    """Return an observation as floats, with the channels of an image last."""
    if spec.n_categories is not None:
        return _one_hot(graph, stored, spec.first_category, spec.n_categories)
    floats = graph.cast(stored, "float32")
    if spec.dtype == "uint8":
        floats = graph.add("Mul", floats, graph.constant(1 / 255))
    if spec.gets_channel:
        return graph.add("Unsqueeze", floats, graph.constant([-1], "int64"))
    return graph.add("Transpose", floats, perm=(0, 2, 3, 1)) if spec.channels_first else floats


def _one_hot(graph: OnnxGraph, categories: str, first: int, size: int) -> str:
    """Return categories (rows,), numbered from `first`, one-hot: (rows, size)."""
    places = graph.add("Sub", categories, graph.constant(first, "int64"))
    return graph.add("OneHot", places, graph.constant(size, "int64"), graph.constant([0.0, 1.0]), axis=-1)


def _normalised(graph: OnnxGraph, normaliser: Normaliser, floats: str) -> str:
    shift, scale = normaliser.shift_and_scale
    scaled = graph.add("Mul", graph.add("Sub", floats, graph.constant(shift)), graph.constant(scale))
    return graph.add("Clip", scaled, graph.constant(-FURTHEST), graph.constant(FURTHEST))


def _outputs(graph: OnnxGraph, network: QNetwork, floats: str) -> str:
    """Return the outputs (rows, K, A), or (rows, K, A, Z) with atoms or quantiles, as `QNetwork.outputs`."""
    encoder, dense, heads = network.stages
    n_members, n_actions = network.n_members, network.n_actions
    features = _dense(graph, dense, _features(graph, encoder, floats))
    embedding = network.embedding
    if embedding is not None:
        n_features = _n_inputs(heads)
        like = next(network.parameters())
        # The fractions are fixed, so their embedding is a constant (M, N, n).
        n_torsos = len(embedding.dense.forward(torch.zeros(1, 1, embedding.N_COSINES).to(like)))
        embedded, n_fractions = embedding.forward(torch.ones(n_torsos, 1, n_features).to(like), None, 1)
        by_fraction = graph.constant(_array(embedded.unsqueeze(1)))
        wide = graph.add("Mul", graph.reshape(features, n_torsos, -1, 1, n_features), by_fraction)
        features = graph.reshape(wide, n_torsos, -1, n_features)
    if isinstance(heads, DuelingHeads):
        outputs = _dueling(graph, heads, features, n_members, n_actions, network.atoms or 1)
    else:
        outputs = _dense(graph, heads, features)
    outputs = graph.add("Transpose", outputs, perm=(1, 0, 2))
    if embedding is not None:
        by_row = graph.reshape(outputs, -1, n_fractions, n_members, n_actions)
        return graph.add("Transpose", by_row, perm=(0, 2, 3, 1))
    if network.prior is not None:
        prior = _outputs(graph, network.prior, floats)
        outputs = graph.add("Add", outputs, graph.add("Mul", prior, graph.constant(network.prior_scale)))
    return (
        outputs if network.atoms is None else graph.reshape(outputs, -1, n_members, n_actions, network.atoms)
    )


def _n_inputs(heads: MLP | DuelingHeads) -> int:
    """Return the number of features that the heads take."""
    mlp = heads.advantage if isinstance(heads, DuelingHeads) else heads
    return int(next(iter(mlp.weights())).weight.shape[1])


def _values(graph: OnnxGraph, output: Output, outputs: str) -> str:
    """Return the action values (rows, K, A) of a network's outputs."""
    if isinstance(output, DistributionOutput):
        chances = graph.add("Softmax", outputs, axis=-1)
        return graph.add("MatMul", chances, graph.constant(_array(output.support)))
    return graph.mean(outputs, -1) if isinstance(output, QuantileOutput) else outputs


def _dense(graph: OnnxGraph, mlp: MLP, features: str) -> str:
    """Return what dense layers make of features (M or 1, rows, n)."""
    for i, layer in enumerate(mlp.weights()):
        product = graph.add("MatMul", features, graph.constant(_array(layer.weight)))
        features = graph.add("Add", product, graph.constant(_array(layer.bias)))
        if i >= mlp.n_activated:
            continue
        if mlp.norms is not None:
            norm: Any = mlp.norms[i]
            ones = graph.constant(np.ones(norm.scale.shape[-1]))
            normal = graph.add("LayerNormalization", features, ones, axis=-1)
            scaled = graph.add("Mul", normal, graph.constant(_array(norm.scale)))
            features = graph.add("Add", scaled, graph.constant(_array(norm.shift)))
        features = _activated(graph, mlp.activation, features)
    return features


def _activated(graph: OnnxGraph, activation: str, features: str) -> str:
    if activation == "silu":
        return graph.add("Mul", features, graph.add("Sigmoid", features))
    return graph.add(_ACTIVATIONS[activation], features)


def _dueling(
    graph: OnnxGraph, heads: DuelingHeads, features: str, n_members: int, n_actions: int, n_outputs: int
) -> str:
    """Return V + A − the mean of A over actions, (K, rows, A Z)."""
    value = graph.reshape(_dense(graph, heads.value, features), n_members, -1, 1, n_outputs)
    by_action = graph.reshape(_dense(graph, heads.advantage, features), n_members, -1, n_actions, n_outputs)
    centred = graph.add("Sub", graph.add("Add", value, by_action), graph.mean(by_action, 2, keep=True))
    return graph.reshape(centred, n_members, -1, n_actions * n_outputs)


def _features(graph: OnnxGraph, encoder: Any, floats: str) -> str:
    """Return the features (M, rows, n) that an encoder makes of floats (rows, …)."""
    if isinstance(encoder, Flatten):
        return graph.reshape(floats, 1, -1, encoder.n_features)
    if isinstance(encoder, Combined):
        return _combined(graph, encoder, floats)
    if isinstance(encoder, NatureConvolutions):
        layers = [
            (weight, bias, stride)
            for weight, bias, (_, _, stride) in zip(
                encoder.weights, encoder.biases, encoder.LAYERS, strict=True
            )
        ]
    elif isinstance(encoder, MinAtarConvolution):
        layers = [_as_convolution(encoder.convolution, encoder.SIDE, 1)]
    else:
        assert isinstance(encoder, SmallConvolutions)
        layers = [_as_convolution(layer, encoder.SIDE, encoder.SIDE) for layer in encoder.layers]
    return _convolutions(graph, layers, _n_torsos(encoder), floats, encoder.n_features)


def _n_torsos(encoder: Any) -> int:
    """Return M of convolutions: one for all members, or one for each."""
    if isinstance(encoder, NatureConvolutions):
        return len(encoder.biases[0]) // encoder.LAYERS[0][0]
    first: Any = encoder.convolution if isinstance(encoder, MinAtarConvolution) else encoder.layers[0]
    return len(first.weight)


def _combined(graph: OnnxGraph, encoder: Combined, floats: str) -> str:
    """Return the features of images, and the rest as it is, side by side."""
    sizes = [math.prod(shape) for shape in encoder.shapes]
    parts = graph.split(floats, [*sizes, encoder.n_rest] if encoder.n_rest else sizes)
    features = []
    for image, shape, convolutions in zip(parts, encoder.shapes, encoder.images, strict=False):
        features.append(_features(graph, convolutions, graph.reshape(image, -1, *shape)))
    if encoder.n_rest:
        rest = graph.reshape(parts[-1], 1, -1, encoder.n_rest)
        features.append(
            graph.add("Expand", rest, graph.constant((_n_torsos(encoder.images[0]), 1, 1), "int64"))
        )
    return graph.add("Concat", *features, axis=-1)


def _as_convolution(layer: Any, side: int, stride: int) -> tuple[Tensor, Tensor, int]:
    """Return a product over patches (M, side · side · channels, filters) as filters of a convolution."""
    n_members, _, filters = layer.weight.shape
    by_pixel = layer.weight.reshape(n_members, side, side, -1, filters)
    return by_pixel.permute(0, 4, 3, 1, 2).flatten(0, 1), layer.bias.reshape(-1), stride


def _convolutions(
    graph: OnnxGraph,
    layers: Sequence[tuple[Tensor, Tensor, int]],
    n_members: int,
    images: str,
    n_features: int,
) -> str:
    """Return the features (M, rows, n) of images (rows, height, width, channels); members are groups."""
    features = graph.add("Transpose", images, perm=(0, 3, 1, 2))
    for i, (weight, bias, stride) in enumerate(layers):
        constants = (graph.constant(_array(array)) for array in (weight, bias))
        groups = n_members if i else 1
        features = graph.add("Conv", features, *constants, strides=(stride, stride), group=groups)
        features = graph.add("Relu", features)
    # (rows, M · filters, height, width) → (M, rows, height · width · filters), channels last.
    filters = len(layers[-1][0]) // n_members
    pixels = graph.add("Transpose", features, perm=(0, 2, 3, 1))
    by_member = graph.reshape(pixels, -1, n_features // filters, n_members, filters)
    return graph.reshape(graph.add("Transpose", by_member, perm=(2, 0, 1, 3)), n_members, -1, n_features)


def _array(tensor: Tensor) -> NDArray[np.float32]:
    array: NDArray[np.float32] = tensor.detach().cpu().numpy()
    return array
