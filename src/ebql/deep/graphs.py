"""CUDA graphs: a computation recorded once, then started whole instead of kernel by kernel."""

from collections.abc import Callable
from typing import TypeVar

import torch
from torch import Tensor

Inputs = TypeVar("Inputs", bound=tuple[Tensor, ...])
Outputs = TypeVar("Outputs")

_WARM_UPS = 3  # libraries choose algorithms and allocate workspaces in the first calls


def graphed(compute: Callable[[Inputs], Outputs], example: Inputs) -> Callable[[Inputs], Outputs]:
    """Return `compute` as a graph over inputs of the example's shapes; a call overwrites the last outputs.

    `compute` must have no effect but its outputs, since it is run to warm up; the parameters it reads may
    change, in place. This path has not been run: no GPU was at hand.
    """
    inputs = type(example)(*(tensor.clone() for tensor in example))
    with torch.cuda.device(example[0].device):
        aside = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            for _ in range(_WARM_UPS):
                compute(inputs)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = compute(inputs)

    def replay(given: Inputs) -> Outputs:
        for tensor, new in zip(inputs, given, strict=True):
            tensor.copy_(new)
        graph.replay()
        return outputs

    return replay
