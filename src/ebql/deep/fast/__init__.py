"""What exists for speed alone. Each part computes what a plain PyTorch path computes; tests hold both equal.

The parts: products of large layers (`dense`), convolutions of binary images (`sparse`), fused optimiser steps
(`optimisers`), greedy actions of small networks without PyTorch (`numpy_policy`), and memory that is kept
between updates (`memory`). Some use calls that PyTorch keeps private. `enabled` decides, for all of them,
whether they or the plain path are used.
"""

import os
import warnings
from collections.abc import Callable
from functools import cache

import torch

HAS_ONEDNN: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]

_PRIVATE_CALLS: dict[str, Callable[[], bool]] = {
    "torch._fused_adam_": lambda: hasattr(torch, "_fused_adam_"),
    "torch.ops.mkldnn._linear_pointwise": lambda: (
        not HAS_ONEDNN or hasattr(torch.ops.mkldnn, "_linear_pointwise")
    ),
}


def enabled() -> bool:
    """Return whether to use the fast path: unless EBQL_PLAIN is set, or this PyTorch lacks what it needs."""
    return not os.environ.get("EBQL_PLAIN") and not missing_calls()


@cache
def missing_calls() -> tuple[str, ...]:
    """Return the private calls that this PyTorch lacks; warn once if there are any."""
    missing = tuple(name for name, exists in _PRIVATE_CALLS.items() if not exists())
    if missing:
        warnings.warn(
            f"PyTorch {torch.__version__} has no {', '.join(missing)}: agents use the plain, slower path.",
            stacklevel=2,
        )
    return missing
