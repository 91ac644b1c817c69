"""A confidence interval for the mean of the arm that won, valid although it was chosen for its sample mean.

The arm won because its sample mean x exceeded the runner-up's. A value θ of its true mean is excluded if,
among repetitions of the test in which the arm exceeds that runner-up again, fewer than α would miss θ by as
much as x does. This is the conditional inference of Lee et al. (2016), made hybrid as by Andrews, Kitagawa
and McCloskey ("Inference on Winners", QJE 2024): what a simultaneous interval of level 1 - β excludes, with
β = α / 10, is excluded first, so the interval is never longer than that one. For independent Gaussian arms
with known errors, it covers the winner's mean with a probability from 1 - α to (1 - α) / (1 - β).

Their interval cuts equal tails. Ours cuts by the distance from θ: with equal tails, an arm that wins by a
hair gets an interval that lies entirely below both arms.
"""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaincc, ndtr, ndtri, stdtr

from ebql.estimators.arrays import FloatArray

BoolArray: TypeAlias = NDArray[np.bool_]
Scores: TypeAlias = Callable[[FloatArray, FloatArray], FloatArray]
"""(θ, y) → the standard normal score of the sample mean y if the true mean is θ; it increases in y."""

_HALVINGS = 60


class Ends(NamedTuple):
    """The ends of an interval, or arrays of them."""

    low: FloatArray
    high: FloatArray


def student_scores(errors: FloatArray, degrees: FloatArray) -> Scores:
    """Return the scores of sample means with estimated standard `errors`, by Student's distribution."""

    def scores(theta: FloatArray, y: FloatArray) -> FloatArray:
        distance = (y - theta) / errors
        return np.asarray(-np.sign(distance) * ndtri(stdtr(degrees, -np.abs(distance))))

    return scores


def binomial_scores(counts: FloatArray) -> Scores:
    """Return the scores of shares of successes in `counts` trials.

    The tails are those of Jeffreys' interval: the binomial tails with half of the observed outcome's
    probability, made continuous.
    """

    def scores(theta: FloatArray, y: FloatArray) -> FloatArray:
        successes, failures = counts * y + 0.5, counts * (1 - y) + 0.5
        below, above = betaincc(successes, failures, theta), betainc(successes, failures, theta)
        return np.where(below < above, ndtri(below), -ndtri(above))

    return scores


def simultaneous_limit(arms: int, confidence: float) -> float:
    """Return the score that the errors of all of `arms` independent arms stay within, up to β = α / 10."""
    beta = (1 - confidence) / 10
    return float(-ndtri(-np.expm1(np.log1p(-beta) / arms) / 2))


def conditional_interval(
    x: FloatArray,
    runner_up: FloatArray,
    scores: Scores,
    bounds: Ends,
    limit: float,
    confidence: float,
) -> Ends:
    """Return the hybrid conditional interval of the mean behind `x`, which had to exceed `runner_up`.

    `bounds` are values beyond which no mean is possible or plausible; `limit` is the `simultaneous_limit`.
    All arrays have one shape (...).
    """
    beta = (1 - confidence) / 10
    level = confidence / (1 - beta)  # of the test among repetitions that stay within the limit

    def kept(theta: FloatArray) -> BoolArray:
        score, least = scores(theta, x), scores(theta, runner_up)
        distance = np.abs(score)
        inside = _mass(np.minimum(distance, limit), least) <= level * _mass(limit, least)
        return (distance < limit) & inside

    return Ends(_edge(kept, x, bounds.low), _edge(kept, x, bounds.high))


def _mass(distance: FloatArray | float, least: FloatArray) -> FloatArray:
    """Return the probability that a standard normal score is at least `least` and within `distance` of 0."""
    return np.asarray(ndtr(distance) - ndtr(np.maximum(least, -np.asarray(distance))))


def _edge(kept: Callable[[FloatArray], BoolArray], inside: FloatArray, outside: FloatArray) -> FloatArray:
    """Return where values from `inside`, which is kept, to `outside` cease to be kept, by bisection."""
    inside, outside = np.broadcast_arrays(np.asarray(inside, float), np.asarray(outside, float))
    for _ in range(_HALVINGS):
        middle = (inside + outside) / 2
        keep = kept(middle)
        inside, outside = np.where(keep, middle, inside), np.where(keep, outside, middle)
    return inside
