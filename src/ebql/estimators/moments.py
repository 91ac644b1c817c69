"""Exact bias, variance and mean squared error of the estimators for independent Gaussian arms.

Everything is computed from the gaps to the best arm, not from raw means, so a large common offset of the
means does not cost accuracy.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import beta, betainc, ndtr

from ebql.errors import InputError
from ebql.estimators.arrays import (
    FloatArray,
    estimated_arms,
    gaussian_arms,
    whole_numbers,
)
from ebql.estimators.quadrature import gaussian_line
from ebql.estimators.selection import selection_probabilities, winning_atoms


class Moments(NamedTuple):
    """The exact error of an estimator.

    >>> error = exact_moments([0.5, 0.0], 1.0, n=10, n_index=[2, 5])
    >>> error.bias.round(3).tolist(), error.selection.round(2).tolist()
    ([-0.154, -0.107], [[0.69, 0.31], [0.79, 0.21]])
    """

    bias: FloatArray
    """The mean error, (...), in units of the samples."""
    variance: FloatArray
    """The variance of the estimate, (...), in squared units."""
    mse: FloatArray
    """The mean squared error, (...), in squared units."""
    selection: FloatArray
    """P(â* = a): how often each arm is selected, (..., m)."""


def two_phase_moments(means: ArrayLike, selector_errors: ArrayLike, evaluator_errors: ArrayLike) -> Moments:
    """Return the moments of an estimator whose selector and evaluator are unbiased and independent.

    The three arguments broadcast to (..., m). `selector_errors` and `evaluator_errors` are the standard
    errors of the selector's and the evaluator's means, so each arm can have its own sample counts.

    >>> round(float(two_phase_moments([0.5, 0.0], 1 / np.sqrt(5), 1 / np.sqrt(5)).bias), 4)
    -0.1073
    """
    selection = selection_probabilities(means, selector_errors)
    means, evaluator_errors = estimated_arms(means, evaluator_errors)
    selection, means, evaluator_errors = np.broadcast_arrays(selection, means, evaluator_errors)
    evaluator_variance = evaluator_errors**2
    shortfall = means - means.max(axis=-1, keepdims=True)
    # Appendix C: E[μ_â*] - μ*, Σ (σ_a²/(N-N_1) + Δ_a²) P(â*=a), and their difference as a sum of squares.
    bias = (shortfall * selection).sum(axis=-1)
    mse = ((evaluator_variance + shortfall**2) * selection).sum(axis=-1)
    spread = (shortfall - bias[..., None]) ** 2
    variance = ((evaluator_variance + spread) * selection).sum(axis=-1)
    return Moments(bias, variance, mse, selection)


def exact_moments(means: ArrayLike, stds: ArrayLike, n: ArrayLike, n_index: ArrayLike) -> Moments:
    """Return the moments of the weighted double estimator, which selects with `n_index` of `n` samples.

    `means` (m,), `stds` a scalar or (m,); `n` and `n_index` broadcast to the results' shape (...).

    >>> round(float(exact_moments([0.5, 0.0], 1.0, n=10, n_index=5).bias), 4)
    -0.1073
    """
    means, stds = gaussian_arms(means, stds)
    n = whole_numbers("n", n, 2)
    n_index = whole_numbers("n_index", n_index, 1)
    n, n_index = np.broadcast_arrays(n, n_index)
    if (n_index >= n).any():
        whole_numbers("n_index", n_index, 1, int(n[n_index >= n].min()) - 1)
    selector_count, evaluator_count = n_index[..., None], (n - n_index)[..., None]
    return two_phase_moments(means, stds / np.sqrt(selector_count), stds / np.sqrt(evaluator_count))


def ensemble_moments(means: ArrayLike, stds: ArrayLike, n: ArrayLike, k: ArrayLike) -> Moments:
    """Return the moments of `ensemble(samples, k)`; k need not divide the number of samples.

    `means` (m,), `stds` a scalar or (m,), `n` samples of every arm or (m,) counts; `k` sets the
    results' shape (...).

    >>> round(float(ensemble_moments([0.5, 0.0], 1.0, n=10, k=2).bias), 4)
    -0.1073
    """
    means, stds = gaussian_arms(means, stds)
    n = whole_numbers("n", n, 2)
    if n.ndim > 1 or n.size not in (1, means.size):
        raise InputError(f"Give one n for all arms or one per arm ({means.size}), not {n.size}.")
    k = whole_numbers("The ensemble size k", k, 2, int(n.min()))[..., None]
    size, larger = np.divmod(n, k)
    selector_count = size + (larger > 0)
    # Member 0 is one of the `larger` members, which have one sample more.
    larger_evaluators = np.maximum(larger - 1, 0)
    inverse_counts = larger_evaluators / (size + 1) + (k - 1 - larger_evaluators) / size
    return two_phase_moments(means, stds / np.sqrt(selector_count), stds * np.sqrt(inverse_counts) / (k - 1))


def single_moments(means: ArrayLike, stds: ArrayLike, n: ArrayLike) -> Moments:
    """Return the moments of the single estimator, the largest sample mean of `n` samples per arm.

    `means` (m,), `stds` a scalar or (m,); the shape of `n` is the results' shape (...).

    >>> round(float(single_moments([0.0, 0.0], 1.0, n=10).bias), 4)
    0.1784
    """
    means, stds = gaussian_arms(means, stds)
    n = whole_numbers("n", n, 1)
    return max_moments(means, stds / np.sqrt(n[..., None]))


def max_moments(means: ArrayLike, errors: ArrayLike) -> Moments:
    """Return the moments of the largest of m estimates with standard `errors`; both broadcast to (..., m).

    >>> round(float(max_moments([0.0, 0.0], 1.0).bias), 4)  # 1/√π
    0.5642
    """
    means, errors = estimated_arms(means, errors)
    gaps = means - means.max(axis=-1, keepdims=True)
    m = means.shape[-1]
    rows = zip(gaps.reshape(-1, m), errors.reshape(-1, m), strict=True)
    results = np.reshape([_row_moments(*row) for row in rows], (*means.shape[:-1], 2 + m))
    bias, mse, selection = results[..., 0], results[..., 1], results[..., 2:]
    return Moments(bias[()], mse - bias**2, mse[()], selection)


def order_moments(means: ArrayLike, errors: ArrayLike, members: int, index: int) -> Moments:
    """Return the moments of the largest, over arms, of the `index`-th smallest of `members` estimates.

    `means` and `errors`, the standard errors of one member's mean, broadcast to (m,). With index 1 this is
    Maxmin's estimator. `selection` is P(arm a attains the maximum).

    >>> round(float(order_moments([0.0, 0.0], 1.0, members=2, index=1).bias), 3)  # Maxmin of two
    -0.099
    """
    means, errors = estimated_arms(means, errors)
    if means.ndim != 1 or (errors == 0).any():
        raise InputError("order_moments needs one list of arms with positive errors.")
    members = int(whole_numbers("members", members, 1))
    index = int(whole_numbers("index", index, 1, members))
    gaps = means - means.max()
    line = gaussian_line(gaps, errors)
    below, density = np.exp(line.log_cdf), np.exp(line.log_pdf)
    # P(Q_(i) <= x) = P(at least i of K members are below x), a beta distribution function of F(x).
    order_cdf = betainc(index, members - index + 1, below)
    above = ndtr(-(line.x - gaps[:, None]) / errors[:, None])
    order_pdf = density * below ** (index - 1) * above ** (members - index) / beta(index, members - index + 1)
    others = np.stack([np.delete(order_cdf, arm, axis=0).prod(axis=0) for arm in range(gaps.size)])
    won = order_pdf * others * line.weight
    bias = np.asarray((won @ line.x).sum())
    mse = np.asarray((won @ line.x**2).sum())
    return Moments(bias[()], mse - bias**2, mse[()], won.sum(axis=-1))


def _row_moments(gaps: FloatArray, errors: FloatArray) -> FloatArray:
    """Return bias, MSE and the m selection probabilities of one row of arms, (2 + m,)."""
    line = gaussian_line(gaps, errors)
    best = gaps.argmax()
    # E[max] - μ* = E[(largest of the others - best)⁺] = ∫ F_*(x) (1 - Π_{j≠*} F_j(x)) dx. All terms are
    # positive, so even a tiny bias keeps its digits and its sign. Summing over all arms and subtracting the
    # best one would lose them.
    others = np.delete(line.log_cdf, best, axis=0).sum(axis=0)
    bias = line.weight @ (np.exp(line.log_cdf[best]) * -np.expm1(others))
    won, atoms = line.winning_density() * line.weight, winning_atoms(gaps, errors)
    mse = (won @ line.x**2 + atoms * gaps**2).sum()
    return np.concatenate([[bias, mse], won.sum(axis=-1) + atoms])
