"""Bootstrap rules as estimators: K members give their means of m arms, a rule makes one number of them.

This is the definition of each rule. `ebql.tabular.rules` applies the same rules to tables, and
`ebql.deep.targets` to networks; `tests/test_floors_agree.py` holds the three to the same numbers. To a
table or a network the arms are the actions of the next state, and the number is what that state is worth.

`members` have the shape (..., K, m), and `member` is the one that is being updated. Ties go to the first arm.
Rules that draw members at random take the next ones in cyclic order here: samples are exchangeable, so the
distribution of the estimate is the same. `docs/algorithms.md` has the equations and the papers.
"""

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtr, ndtri

from ebql.errors import InputError, InputTypeError, unknown_name
from ebql.estimators.arrays import FloatArray, IntArray, real_numbers, whole_numbers
from ebql.estimators.selection import quick_selection_probabilities


def own_maximum(members: FloatArray, member: int) -> FloatArray:
    """Q-learning: the member selects and evaluates."""
    return _largest(_row(members, member))


def ensemble_bootstrap(members: FloatArray, member: int) -> FloatArray:
    """EBQL: the member selects, the mean of the others evaluates; with K = 2, double Q-learning."""
    return _at(_others(members, member), _row(members, member).argmax(axis=-1))


def split(members: FloatArray, member: int, n_index: float) -> FloatArray:
    """EBQL with `n_index` selectors, the member and the next ones; the mean of the others evaluates."""
    cyclic = np.roll(members, -member, axis=-2)
    selectors, evaluators = cyclic[..., : int(n_index), :], cyclic[..., int(n_index) :, :]
    return _at(evaluators.mean(axis=-2), selectors.mean(axis=-2).argmax(axis=-1))


def mean_maximum(members: FloatArray, _member: int) -> FloatArray:
    """Ensemble and averaged Q-learning, MeanQ: the mean of all members selects and evaluates."""
    return _largest(members.mean(axis=-2))


def maxmin(members: FloatArray, _member: int) -> FloatArray:
    """Maxmin Q-learning: the largest minimum over members."""
    return _largest(members.min(axis=-2))


def subset_minimum(members: FloatArray, member: int, size: float) -> FloatArray:
    """REDQ and AdaEQ: as `maxmin`, over a subset of `size` members."""
    return maxmin(np.roll(members, -member, axis=-2)[..., : int(size), :], 0)


def clipped_double(members: FloatArray, member: int) -> FloatArray:
    """Clipped double Q-learning: the member selects, the members' minimum evaluates."""
    return _at(members.min(axis=-2), _row(members, member).argmax(axis=-1))


def cross(members: FloatArray, member: int) -> FloatArray:
    """Cross Q-learning: the member selects, one other member evaluates."""
    other = _row(members, (member + 1) % members.shape[-2])
    return _at(other, _row(members, member).argmax(axis=-1))


def weighted_double(members: FloatArray, member: int, c: float) -> FloatArray:
    """Weighted double Q-learning: the member's own value has the weight β = d / (c + d), the others' 1 - β.

    d is the gap in the others' mean between the member's best and its worst arm.
    """
    own, others = _row(members, member), _others(members, member)
    best = own.argmax(axis=-1)
    gap = np.abs(_at(others, best) - _at(others, own.argmin(axis=-1)))
    beta = gap / (c + gap)
    return np.asarray(beta * _largest(own) + (1 - beta) * _at(others, best))


def weighted(members: FloatArray, _member: int) -> FloatArray:
    """D'Eramo's weighted estimator: Σ_a P(a is the best arm) · mean of arm a.

    The members' mean of an arm is taken to be Gaussian, and its standard error is estimated from the members.
    """
    means = members.mean(axis=-2)
    errors = members.std(axis=-2, ddof=1) / np.sqrt(members.shape[-2])
    return _weighted_mean(means, quick_selection_probabilities(means, errors))


def t_estimator(members: FloatArray, member: int, alpha: float) -> FloatArray:
    """T-estimator: the mean of all arms that a test at level `alpha` cannot tell from the member's best."""
    kept = _scores(members, member) >= ndtri(alpha)
    return _weighted_mean(_row(members, member), kept.astype(np.float64))


def k_estimator(members: FloatArray, member: int, scale: float) -> FloatArray:
    """K-estimator: all arms, weighted by Φ(score / `scale`), where the score is the T-estimator's."""
    return _weighted_mean(_row(members, member), ndtr(_scores(members, member) / scale))


def order(members: FloatArray, _member: int, index: float) -> FloatArray:
    """Order Q-learning: the largest `index`-th smallest value over members; 1 is `maxmin`."""
    return _largest(np.sort(members, axis=-2)[..., int(index) - 1, :])


def adaptive_order(members: FloatArray, _member: int) -> FloatArray:
    """Adaptive order: the index rises from the lower quartile to the median as more members agree.

    Of K members, c select the arm with the largest mean over members; the index is (K + c) / 4, rounded up.
    """
    n_members = members.shape[-2]
    best = members.mean(axis=-2).argmax(axis=-1)
    agreeing = (members.argmax(axis=-1) == np.expand_dims(best, -1)).sum(axis=-1)
    index = -(-(n_members + agreeing) // 4)
    ranked = np.take_along_axis(np.sort(members, axis=-2), index[..., None, None] - 1, axis=-2)
    return _largest(ranked[..., 0, :])


def robust_mean(members: FloatArray, _member: int, rho: float) -> FloatArray:
    """2RA Q-learning: the maximum of the members' mean, at its lowest in a ball of squared radius `rho`."""
    return np.asarray(mean_maximum(members, 0) - np.sqrt(rho))


def candidates(members: FloatArray, member: int, size: float) -> FloatArray:
    """Action-candidate clipped double: the others name their `size` best arms; the member selects among them.

    The others' mean evaluates the arm, at most with the member's own maximum.
    """
    selected = best_candidate(members, member, size)
    return np.minimum(_at(_others(members, member), selected), _largest(_row(members, member)))


def best_candidate(members: FloatArray, member: int, size: float) -> IntArray:
    """Return the arm (...) that `candidates` selects."""
    own, others = _row(members, member), _others(members, member)
    # A stable sort of the negatives, so that ties go to the first arm.
    ranked = np.argsort(-others, axis=-1, kind="stable")[..., : int(size)]
    is_candidate = np.zeros(own.shape, dtype=bool)
    np.put_along_axis(is_candidate, ranked, True, axis=-1)
    return np.asarray(np.where(is_candidate, own, -np.inf).argmax(axis=-1))


def smoothed(members: FloatArray, member: int, tau: float) -> FloatArray:
    """Smoothed Q-learning: the maximum with weight 1 - `tau`, the mean of the other arms with `tau`."""
    own = _row(members, member)
    arms = own.shape[-1]
    if arms == 1:
        return own[..., 0]
    best = _largest(own)
    return np.asarray((1 - tau) * best + tau * (own.sum(axis=-1) - best) / (arms - 1))


class Parameter(NamedTuple):
    """The parameter of a rule: its name, default, kind and limits; None stands for the number of members."""

    name: str
    default: float
    kind: Literal["whole", "real"]
    least: float
    most: float | None
    above_least: bool = False
    """Whether the least value itself is out of range."""

    def check(self, value: float, n_members: int) -> float:
        """Return `value` if it is in range for K members; raise an error otherwise."""
        most = n_members if self.most is None else self.most
        if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
            raise InputTypeError(f"{self.name} must be a number, not {value!r}.")
        low = self.least < value if self.above_least else self.least <= value
        if low and value <= most and (self.kind == "real" or float(value).is_integer()):
            return float(value)
        kind = "a whole number" if self.kind == "whole" else "a number"
        least = f"{'above' if self.above_least else 'of at least'} {self.least:g}"
        limits = least if most == np.inf else f"{least} and at most {most:g}"
        raise InputError(f"{self.name} must be {kind} {limits}, not {value:g}.")


class MemberRule(NamedTuple):
    """A rule for a (K, m) matrix of members' means.

    >>> rule = MEMBER_RULES["ensemble-bootstrap"]
    >>> members = np.array([[3.0, 0.0], [1.0, 9.0], [2.0, 9.0]])  # K = 3 members, m = 2 arms
    >>> float(rule.value(members, 0)), rule.least_members  # member 0 selects arm 0; the mean of 1 and 2
    (1.5, 2)
    """

    value: Callable[..., FloatArray]
    """The function of (members, member), and of the parameter if there is one."""
    least_members: int = 1
    """The smallest ensemble that it works with."""
    parameter: Parameter | None = None
    """What the parameter is called, its default and its limits."""


MEMBER_RULES: dict[str, MemberRule] = {
    "q-learning": MemberRule(own_maximum),
    "ensemble-bootstrap": MemberRule(ensemble_bootstrap, 2),
    "split": MemberRule(split, 2, Parameter("n_index", 1, "whole", 1, None)),
    "mean-maximum": MemberRule(mean_maximum),
    "maxmin": MemberRule(maxmin),
    "subset-minimum": MemberRule(subset_minimum, 1, Parameter("size", 2, "whole", 1, None)),
    "clipped-double": MemberRule(clipped_double),
    "cross": MemberRule(cross, 2),
    "weighted-double": MemberRule(weighted_double, 2, Parameter("c", 1.0, "real", 0, np.inf, True)),
    "weighted": MemberRule(weighted, 2),
    "t-estimator": MemberRule(t_estimator, 2, Parameter("alpha", 0.05, "real", 0, 0.5, True)),
    "k-estimator": MemberRule(k_estimator, 2, Parameter("scale", 1.0, "real", 0, np.inf, True)),
    "order": MemberRule(order, 1, Parameter("index", 2, "whole", 1, None)),
    "adaptive-order": MemberRule(adaptive_order, 2),
    "robust-mean": MemberRule(robust_mean, 1, Parameter("rho", 1.0, "real", 0, np.inf)),
    "candidates": MemberRule(candidates, 2, Parameter("size", 2, "whole", 1, np.inf)),
    "smoothed": MemberRule(smoothed, 1, Parameter("smoothing", 0.1, "real", 0, 1)),
}
"""All rules of a (K, m) matrix, by the names that `ebql.deep.targets.RULES` has for them."""


def apply_rule(rule: str, members: ArrayLike, member: int = 0, parameter: float | None = None) -> FloatArray:
    """Return the estimate (...) that `rule` makes of the members' means, (..., K, m).

    `rule` is a name of `MEMBER_RULES`. Without `parameter`, the rule's default applies.

    >>> float(apply_rule("maxmin", [[1.0, 3.0], [5.0, 3.0]]))  # two members, two arms: minima 1 and 3
    3.0
    """
    if rule not in MEMBER_RULES:
        raise unknown_name("rule", rule, MEMBER_RULES)
    values = real_numbers("members", members)
    if values.ndim < 2 or 0 in values.shape[-2:]:
        raise InputError(f"The members must have the shape (..., members, arms), not {values.shape}.")
    n_members = values.shape[-2]
    member = int(whole_numbers("member", member, 0, n_members - 1))
    function, least, own = MEMBER_RULES[rule]
    if n_members < least:
        raise InputError(f"The rule {rule} needs at least {least} members, not {n_members}.")
    if own is None:
        if parameter is not None:
            raise InputError(f"The rule {rule} has no parameter, but one was given: {parameter}.")
        return function(values, member)
    most = n_members - 1 if rule == "split" else n_members  # some member must evaluate
    return function(values, member, own.check(own.default if parameter is None else parameter, most))


def _largest(values: FloatArray) -> FloatArray:
    return np.asarray(values.max(axis=-1))


def _weighted_mean(values: FloatArray, weights: FloatArray) -> FloatArray:
    return np.asarray((weights * values).sum(axis=-1) / weights.sum(axis=-1))


def _row(members: FloatArray, member: int) -> FloatArray:
    return members[..., member, :]


def _others(members: FloatArray, member: int) -> FloatArray:
    """Return the mean of all members but one, (..., m)."""
    others: FloatArray = np.delete(members, member, axis=-2).mean(axis=-2)
    return others


def _at(values: FloatArray, arms: IntArray) -> FloatArray:
    """Return the entries (...) of `values` (..., m) at `arms` (...)."""
    picked: FloatArray = np.take_along_axis(values, np.expand_dims(arms, -1), axis=-1)[..., 0]
    return picked


def _scores(members: FloatArray, member: int) -> FloatArray:
    """Return each arm's distance below the member's best, in standard errors of the difference, (..., m).

    The variance of a member's value is that over the members (divisor K - 1). It is 0 for the best arm, and
    minus infinity for an arm that is below the best without any variance.
    """
    own = _row(members, member)
    variances = members.var(axis=-2, ddof=1)
    best = own.argmax(axis=-1)
    gaps = own - own.max(axis=-1, keepdims=True)
    spread = np.sqrt(variances + np.expand_dims(_at(variances, best), -1))
    certain = np.where(gaps < 0, -np.inf, 0.0)
    return np.where(spread > 0, gaps / np.where(spread > 0, spread, 1.0), certain)
