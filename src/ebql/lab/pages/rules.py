"""All other rules of the package as estimators: exact errors where they are known, else simulated ones.

K members share the N samples of each arm; if K does not divide N, the first members have one sample more.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ebql.estimators import (
    MEMBER_RULES,
    Moments,
    apply_rule,
    ensemble,
    error_intervals,
    max_moments,
    order_moments,
    two_phase_moments,
)
from ebql.estimators.members import best_candidate

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

ROTATED = "rotated"  # `ensemble` with `rotate`: no rule of an update, but an estimator
# D'Eramo's weights are integrals, a hundred times slower than any other rule: fewer data sets go to it.
_SHARE_OF_WEIGHTED = 10
_RADIUS = 0.01  # the squared radius of 2RA's ball; the default, 1, would hide every other difference


@dataclass(frozen=True)
class Members:
    """K members' means of m arms: the arms' `means`, and the samples' `spread` and number."""

    means: Floats
    spread: float
    samples: int
    members: int

    @property
    def errors(self) -> Floats:
        """The standard error of each member's mean, (K,)."""
        sizes = np.full(self.members, self.samples // self.members)
        sizes[: self.samples % self.members] += 1
        return np.asarray(self.spread / np.sqrt(sizes))

    def error(self, first: int, last: int) -> float:
        """Return the standard error of the mean of some members' means."""
        chosen = self.errors[first:last]
        return float(np.sqrt((chosen**2).sum()) / len(chosen))

    def draw(self, rng: np.random.Generator, batch: int) -> Floats:
        """Return members' means of `batch` data sets, (batch, K, m)."""
        noise = rng.standard_normal((batch, self.members, len(self.means)))
        return np.asarray(self.means + noise * self.errors[:, None])


@dataclass(frozen=True)
class Rule:
    """A rule with its parameter, as the page names it."""

    key: str
    label: str
    parameter: float | None = None


def rules(k: int) -> list[Rule]:
    """Return all rules for `k` members but the ensemble's own, with the parameters that the page shows."""
    selectors = max(1, k // 2)
    shown = {
        "q-learning": ("Q-learning, one member", None),
        "split": (f"EBQL, {selectors} of {k} select", selectors),
        ROTATED: ("EBQL, mean over selectors", None),
        "mean-maximum": ("Averaged, ensemble, MeanQ", None),
        "maxmin": ("Maxmin", None),
        "subset-minimum": (f"REDQ and AdaEQ, 2 of {k}", 2),
        "order": (f"Order, 2 of {k}", 2),
        "robust-mean": (f"2RA, ρ = {_RADIUS:g}", _RADIUS),
        "cross": ("Cross Q-learning", None),
        "clipped-double": ("Clipped double", None),
        "candidates": ("Action candidates, 2", 2),
        "weighted-double": ("Weighted double, c = 1", 1.0),
        "smoothed": ("Smoothed, τ = 0.1", 0.1),
        "weighted": ("Weighted (D'Eramo)", None),
        "t-estimator": ("T-estimator, α = 0.05", 0.05),
        "k-estimator": ("K-estimator", 1.0),
        "adaptive-order": ("Adaptive order", None),
    }
    others = {name: (name, None) for name in MEMBER_RULES if name not in (*shown, "ensemble-bootstrap")}
    return [Rule(key, label, parameter) for key, (label, parameter) in (shown | others).items()]


def exact_rule(rule: Rule, at: Members) -> Moments | None:
    """Return the exact moments of a rule; None if only a simulation knows them."""
    k, means, first = at.members, at.means, at.error(0, 1)
    size = int(rule.parameter or 0)
    if rule.key == "q-learning":
        return max_moments(means, first)
    if rule.key in ("mean-maximum", "robust-mean"):
        moments = max_moments(means, at.error(0, k))
        bias = moments.bias - np.sqrt(rule.parameter or 0.0)
        return moments._replace(bias=bias, mse=moments.variance + bias**2)
    if rule.key == "split":
        return two_phase_moments(means, at.error(0, size), at.error(size, k))
    if rule.key == "cross":
        return two_phase_moments(means, first, at.error(1, 2))
    orders = {"maxmin": (k, 1), "subset-minimum": (size, 1), "order": (k, size)}
    if rule.key in orders:
        count, index = orders[rule.key]
        if np.ptp(at.errors[:count]) == 0:  # the order of unequally noisy members has no such integral
            return order_moments(means, first, count, index)
    return None


@dataclass
class RuleSimulation:
    """The errors of the rules that are not exact, on more and more data sets."""

    at: Members
    rng: np.random.Generator
    _errors: dict[Rule, list[Floats]] = field(init=False)
    _selected: dict[Rule, Floats] = field(init=False)

    def __post_init__(self) -> None:
        """Start with the rules that are not exact, and without data."""
        inexact = [rule for rule in rules(self.at.members) if exact_rule(rule, self.at) is None]
        self._errors = {rule: [] for rule in inexact}
        self._selected = {rule: np.zeros(len(self.at.means)) for rule in inexact}

    def add(self, batch: int) -> None:
        """Apply the rules to `batch` more data sets."""
        members = self.at.draw(self.rng, batch)
        for rule, errors in self._errors.items():
            own = members[: max(2, batch // _SHARE_OF_WEIGHTED)] if rule.key == "weighted" else members
            values, arms = _estimated(rule, own)
            errors.append(values - self.at.means.max())
            if arms is not None:
                self._selected[rule] += np.bincount(arms.ravel(), minlength=len(self.at.means))

    def told(self) -> dict[str, Any]:
        """Return each rule's bias, variance and MSE with 95% intervals, and how often it selects each arm."""
        told = {}
        for rule, parts in self._errors.items():
            errors, counts = np.concatenate(parts), self._selected[rule]
            selection = counts / counts.sum() if counts.any() else None
            told[rule.key] = {**error_intervals(errors)._asdict(), "selection": selection}
        return told


def _estimated(rule: Rule, members: Floats) -> tuple[Floats, Indices | None]:
    """Return the estimates (batch,) and the selected arms; None for rules that average over arms."""
    if rule.key == ROTATED:
        rotated = ensemble(np.swapaxes(members, -1, -2), members.shape[-2], rotate=True)
        return rotated.value, rotated.index
    select = _SELECTED.get(rule.key)
    arms = None if select is None else select(members, int(rule.parameter or 0))
    return apply_rule(rule.key, members, 0, rule.parameter), arms


def _own_best(members: Floats, _: int) -> Indices:
    return np.asarray(members[..., 0, :].argmax(axis=-1))


def _best_order(members: Floats, index: int) -> Indices:
    return np.asarray(np.sort(members, axis=-2)[..., index - 1, :].argmax(axis=-1))


_SELECTED: dict[str, Callable[[Floats, int], Indices]] = {
    "clipped-double": _own_best,
    "weighted-double": _own_best,
    "candidates": lambda members, size: best_candidate(members, 0, size),
    "maxmin": lambda members, _: _best_order(members, 1),
    "subset-minimum": lambda members, size: _best_order(members[..., :size, :], 1),
    "order": _best_order,
}
"""The arm that a simulated rule selects, (batch,), by its members and its parameter."""
