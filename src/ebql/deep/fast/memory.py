"""Memory that updates use again and again, kept by the process."""

import torch

from ebql.deep import fast

_LARGEST_BLOCK = 2**25 - 2**16
"""Bytes; glibc raises its limits for blocks of up to 32 MiB, which include what it stores about them."""


def keep_freed_memory() -> None:
    """Let the C library keep up to 64 MiB of freed memory instead of returning it to the system.

    An update frees the pixels of its batch, and the next one needs as much again. If the system has the pages
    by then, getting them back takes a tenth to a fifth of a step of `atari-100k`. glibc keeps twice the size
    of the largest block that was ever freed, so a large block is freed here, without touching its pages.
    Other C libraries are not affected.
    """
    if fast.enabled():
        torch.empty(_LARGEST_BLOCK, dtype=torch.uint8)
