"""Whether matrix products in bfloat16 are faster than in float32 on this machine."""

from functools import cache
from time import perf_counter

import torch

from ebql.deep.networks.layers import MemberLinear

_ROWS, _INPUTS, _MEMBERS, _OUTPUTS = 32, 1024, 5, 128  # the hidden layer of EBQL on MinAtar
_WARM_UP, _PRODUCTS = 2, 5


def gains_by_bfloat16(device: torch.device) -> bool:
    """Return whether a device multiplies matrices faster in bfloat16: by a trial on a CPU.

    The names of its instructions do not tell. Of two processors with AVX512-BF16, an AMD EPYC computed
    products faster than in float32, and one whose AMX was not usable took twice as long.
    GPUs have units for bfloat16 since 2020.
    """
    if device.type == "cuda":
        return torch.cuda.get_device_capability(device) >= (8, 0)
    return seconds_per_product(torch.bfloat16) < seconds_per_product(torch.float32)


@cache
def seconds_per_product(dtype: torch.dtype) -> float:
    """Return the time of a layer's product of float32 numbers on the CPU, conversion to `dtype` included.

    It is the shortest of several, because other processes can only lengthen one.
    """
    features = torch.ones(1, _ROWS, _INPUTS)
    layer = MemberLinear(_MEMBERS, _INPUTS, _OUTPUTS, torch.Generator())
    times = []
    for _ in range(_WARM_UP + _PRODUCTS):
        start = perf_counter()
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16, enabled=dtype == torch.bfloat16):
            layer(features)
        times.append(perf_counter() - start)
    return min(times[_WARM_UP:])
