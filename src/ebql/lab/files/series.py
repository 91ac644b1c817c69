"""Curves for the page: smoothed, and with no more points than a screen shows."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

MOST_POINTS = 800


def smoothed(values: Floats, share: float) -> Floats:
    """Return the centred moving average over this `share` of all values; it is shorter at both ends."""
    half = int(share * len(values) / 2)
    if half < 1:
        return values
    sums = np.concatenate([[0.0], values.cumsum()])
    place = np.arange(len(values))
    first, last = np.maximum(place - half, 0), np.minimum(place + half + 1, len(values))
    averages: Floats = (sums[last] - sums[first]) / (last - first)
    return averages


def decimated(x: Floats, y: Floats, most: int = MOST_POINTS) -> tuple[Floats, Floats]:
    """Return at most about `most` points: the lowest and the highest of each stretch, so that peaks stay."""
    if len(x) <= most:
        return x, y
    edges = np.linspace(0, len(x), most // 2 + 1).astype(np.int64)
    kept = {0, len(x) - 1}
    for first, last in pairwise(edges.tolist()):
        part = y[first:last]
        kept |= {first + int(part.argmin()), first + int(part.argmax())}
    places = np.array(sorted(kept))
    return x[places], y[places]


def in_common_bins(series: Sequence[tuple[Floats, Floats]], most: int) -> list[tuple[Floats, Floats]]:
    """Return each series (x, y) with at most `most` points, at places that are the same in all of them.

    If one is longer, the range of x is divided into `most` bins. A point is the mean of a series in a bin, at
    the bin's end, so that means over series compare like with like, also while some are shorter.
    """
    if all(len(x) <= most for x, _ in series):
        return list(series)
    low, high = min(x[0] for x, _ in series if len(x)), max(x[-1] for x, _ in series if len(x))
    edges = np.linspace(low, high, most + 1)
    binned = []
    for x, y in series:
        bins = np.clip(np.searchsorted(edges, x, side="left") - 1, 0, most - 1)
        n = np.bincount(bins, minlength=most)
        filled = n > 0
        binned.append((edges[1:][filled], np.bincount(bins, y, minlength=most)[filled] / n[filled]))
    return binned


def within(x: Floats, y: Floats, low: float, high: float) -> tuple[Floats, Floats]:
    """Return the points from `low` to `high`, and one more on either side."""
    first = max(int(np.searchsorted(x, low)) - 1, 0)
    last = int(np.searchsorted(x, high, side="right")) + 1
    return x[first:last], y[first:last]
