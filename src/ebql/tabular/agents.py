"""The tabular agents: their ensemble size, bootstrap rule and behaviour."""

from dataclasses import dataclass, field, replace
from enum import IntEnum
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ebql.errors import InputError, InputTypeError, unknown_name, whole_number
from ebql.tabular.behaviours import Behaviour
from ebql.tabular.rules import ACTING_ON_THE_FIRST, ACTING_ON_THE_MINIMUM, LOOKING_BACK, PLAIN, Rule

# The smallest and the largest number of tables of each rule; all other rules take any number.
_TABLES: dict[Rule, tuple[int, float]] = {
    Rule.ENSEMBLE: (2, np.inf),
    Rule.WEIGHTED_DOUBLE: (2, 2),
    Rule.CROSS: (2, np.inf),
    Rule.SELF_CORRECTING: (2, 2),
    Rule.SPEEDY: (2, 2),
    Rule.SPLIT: (2, np.inf),
    Rule.ADAPTIVE_SPLIT: (3, np.inf),
    Rule.WEIGHTED: (2, np.inf),
    Rule.T_ESTIMATOR: (2, np.inf),
    Rule.K_ESTIMATOR: (2, np.inf),
    Rule.CANDIDATES: (2, 2),
    Rule.ADAPTIVE_ORDER: (2, np.inf),
}

# Priors have their own random stream, so that they do not change the other random numbers of a seed.
_PRIOR_STREAM = 1


class Turn(IntEnum):
    """Which members learn from a step, as a number for compiled code."""

    RANDOM = 0
    ALTERNATE = 1
    MASKED = 2


@dataclass(frozen=True)
class Agent:
    """An ensemble of tables with its bootstrap rule, the turn of its members to learn, and its behaviour.

    By default an agent acts ε-greedily on the mean of its members (Maxmin: on their minimum).

    >>> from ebql.environments import chain
    >>> from ebql.tabular import EBQL, learn
    >>> EBQL(ensemble_size=5) == Agent("mine", ensemble_size=5, rule=Rule.ENSEMBLE)  # labels do not count
    True
    >>> learn(chain(0.1), Agent("mine", 5, Rule.ENSEMBLE), episodes=10).tables.shape  # (seeds, K, S, A)
    (1, 5, 4, 10)
    """

    label: str = field(compare=False)
    """What reports and figures call the agent."""
    ensemble_size: int
    """K, the number of tables."""
    rule: Rule
    """Which members select, and which evaluate."""
    turn: Turn = Turn.RANDOM
    """Which members learn from a step."""
    parameter: float = 0.0
    """The parameter of the rule, if it has one."""
    mask_probability: float = 1.0
    """Probability that a member learns from a step, with masked turns."""
    prior_scale: float = 0.0
    """Standard deviation of the initial values; with 0, all tables start at zero."""
    behaviour: Behaviour = Behaviour.MEAN
    """What the agent acts on."""
    ucb_width: float = 0.0
    """Width of upper confidence bounds, in standard deviations above the mean."""

    def __post_init__(self) -> None:
        """Check all values, because compiled code checks none."""
        size = whole_number("ensemble_size", self.ensemble_size, 1)
        least, most = _TABLES.get(self.rule, (1, np.inf))
        if not least <= size <= most:
            needed = f"{least}" if least == most else f"at least {least}"
            raise InputError(f"{self.rule.name} needs an ensemble size of {needed}, not {size}.")
        parameter = _not_negative("parameter", self.parameter)
        counts = {
            Rule.SPLIT: size - 1,
            Rule.SUBSET_MINIMUM: size,
            Rule.ORDER: size,
            Rule.AVERAGED: np.inf,
            Rule.CANDIDATES: np.inf,
        }
        if self.rule in counts and not (parameter.is_integer() and 1 <= parameter <= counts[self.rule]):
            limits = "of at least 1" if counts[self.rule] == np.inf else f"from 1 to {counts[self.rule]}"
            raise InputError(
                f"The parameter of {self.rule.name} must be a whole number {limits}, not {parameter:g}."
            )
        if self.rule in (Rule.WEIGHTED_DOUBLE, Rule.K_ESTIMATOR, Rule.T_ESTIMATOR):
            _positive("parameter", parameter)
        highest = {Rule.T_ESTIMATOR: 0.5, Rule.SMOOTHED: 1.0}.get(self.rule, np.inf)
        _at_most(f"The parameter of {self.rule.name}", parameter, highest)
        _mask(self.mask_probability)
        _not_negative("prior_scale", self.prior_scale)
        _not_negative("ucb_width", self.ucb_width)

    @property
    def learners(self) -> int:
        """Number of tables that learn; with rules that look back only the first does."""
        return 1 if self.rule in LOOKING_BACK else self.ensemble_size

    @property
    def acting(self) -> int:
        """Number of tables that the agent acts on, counted from the first."""
        return 1 if self.rule in ACTING_ON_THE_FIRST else self.ensemble_size

    @property
    def pessimistic(self) -> bool:
        """Whether the agent acts on the minimum of its tables instead of their mean."""
        return self.rule in ACTING_ON_THE_MINIMUM

    @property
    def plain(self) -> bool:
        """Whether the compiled loop can use its fast path for the paper's agents."""
        return self.rule in PLAIN and self.turn != Turn.MASKED and self.behaviour == Behaviour.MEAN

    def first_tables(self, n_states: int, n_actions: int, seed: int) -> NDArray[np.float64]:
        """Return the initial tables, `(S, A, K)`."""
        shape = (n_states, n_actions, self.ensemble_size)
        if self.prior_scale == 0:
            return np.zeros(shape)
        return self.prior_scale * np.random.default_rng([seed, _PRIOR_STREAM]).standard_normal(shape)

    def exploring(self, by: Literal["mean", "ucb", "thompson"], width: float = 1.0) -> "Agent":
        """Return the same agent with another behaviour.

        `mean` acts on the mean of the members (Maxmin: on their minimum). `ucb` acts on the mean plus `width`
        standard deviations. `thompson` draws one member for each episode and acts on it. With each of them, a
        random action is taken with probability ε.
        """
        if by not in ("mean", "ucb", "thompson"):
            raise unknown_name("behaviour", by, ("mean", "ucb", "thompson"))
        if by != "mean" and self.learners < 2:
            raise InputError(f"{self.label} cannot explore by {by}: it needs several tables that learn.")
        width = _not_negative("width", width) if by == "ucb" else 0.0
        changed = replace(self, behaviour=Behaviour[by.upper()], ucb_width=width)
        if changed == self:
            return self
        base = self.label.removesuffix(f" {self._behaviour_label()}")
        is_default = by == "mean" and base != self.label
        base = base.replace(f" λ {self.ucb_width:g}", "")  # SUNRISE's original width
        return replace(changed, label=base if is_default else f"{base} {changed._behaviour_label()}")

    def _behaviour_label(self) -> str:
        """Return the suffix of the label for a behaviour that is not the agent's default."""
        widths = (("", self.ucb_width, 1.0),) if self.behaviour == Behaviour.UCB else ()
        return _label(self.behaviour.name.lower(), *widths)


def QLearning() -> Agent:  # noqa: N802 - agents are named as in the literature
    """Watkins' Q-learning: one table both selects and evaluates; it overestimates.

    >>> QLearning().label
    'QL'
    """
    return Agent("QL", 1, Rule.MAXIMUM)


def DoubleQLearning(turn: Literal["random", "alternate"] = "random") -> Agent:  # noqa: N802
    """Van Hasselt's double Q-learning: one table selects, the other evaluates; it underestimates.

    `turn` is "random" (van Hasselt 2010), where each step updates a random table, or "alternate" (the
    paper's appendix), where the tables take turns. With short episodes, alternation can couple a table to
    the same time step of every episode.

    >>> DoubleQLearning().ensemble_size
    2
    """
    if turn not in ("random", "alternate"):
        raise unknown_name("turn", turn, ("random", "alternate"))
    return Agent("DQL", 2, Rule.ENSEMBLE, Turn[turn.upper()])


def EBQL(ensemble_size: int = 10, split: int | Literal["adaptive"] = 1) -> Agent:  # noqa: N802
    """Ensemble bootstrapped Q-learning: `split` of the K tables select, the mean of the others evaluates.

    The paper uses one selector. "adaptive" chooses the number for each update from the members' means and
    spreads at the next state; `History.mean_splits` records its choices.

    >>> EBQL(ensemble_size=5).label
    'EBQL 5'
    """
    if split == "adaptive":
        size = whole_number("EBQL's ensemble size with an adaptive split", ensemble_size, 3)
        return Agent(f"EBQL {size} adaptive", size, Rule.ADAPTIVE_SPLIT)
    if isinstance(split, str):
        raise unknown_name("split", split, ("adaptive",))
    size = _members("EBQL's ensemble size", ensemble_size)
    n_index = whole_number("EBQL's split", split, 1)
    if n_index >= size:
        raise InputError(
            f"EBQL's split must be below its ensemble size {size}, not {n_index}: some must evaluate."
        )
    if n_index == 1:
        return Agent(f"EBQL {size}", size, Rule.ENSEMBLE)
    return Agent(f"EBQL {size} split {n_index}", size, Rule.SPLIT, parameter=float(n_index))


def EnsembleQLearning(ensemble_size: int = 10) -> Agent:  # noqa: N802
    """Ensemble Q-learning: the maximum of the members' mean; it overestimates."""
    size = _members("EnsembleQLearning's ensemble size", ensemble_size)
    return Agent(f"Ensemble {size}", size, Rule.MEAN)


def AveragedQLearning(snapshots: int = 10, period: int = 10) -> Agent:  # noqa: N802
    """Averaged Q-learning: the maximum of the mean of a table and its last snapshots.

    A network is copied as a whole; here each entry has its own snapshots, one at every `period`-th update.
    """
    size = _members("AveragedQLearning's snapshots", snapshots)
    period = whole_number("AveragedQLearning's period", period, 1)
    label = _label(f"Averaged {size}", ("period", period, 10))
    return Agent(label, size, Rule.AVERAGED, parameter=float(period))


def Maxmin(ensemble_size: int = 4) -> Agent:  # noqa: N802
    """Maxmin Q-learning: the maximum of the members' minimum; it underestimates more as K grows.

    It also acts on that minimum and reports it as its values.
    """
    size = _members("Maxmin's ensemble size", ensemble_size)
    return Agent(f"Maxmin {size}", size, Rule.MAXMIN)


def WeightedDoubleQLearning(c: float = 1.0) -> Agent:  # noqa: N802
    """Weighted double Q-learning: between Q-learning (c → 0) and double Q-learning (c → ∞)."""
    c = _positive("WeightedDoubleQLearning's c", c)
    return Agent(_label("WDQ", ("c", c, 1.0)), 2, Rule.WEIGHTED_DOUBLE, parameter=c)


def ClippedDoubleQLearning() -> Agent:  # noqa: N802
    """Clipped double Q-learning: one table selects, the lower of the two evaluates; it underestimates."""
    return Agent("Clipped", 2, Rule.CLIPPED_DOUBLE)


def CrossQLearning(ensemble_size: int = 10) -> Agent:  # noqa: N802
    """Cross Q-learning: a member selects, one random other evaluates; it underestimates."""
    size = _members("CrossQLearning's ensemble size", ensemble_size)
    return Agent(f"Cross {size}", size, Rule.CROSS)


def REDQ(ensemble_size: int = 10, subset_size: int = 2) -> Agent:  # noqa: N802
    """REDQ's target: the maximum of the minimum of a random subset of members, resampled for each update."""
    size = _members("REDQ's ensemble size", ensemble_size)
    subset = whole_number("REDQ's subset size", subset_size, 1)
    if subset > size:
        raise InputError(f"REDQ's subset size must be at most its ensemble size {size}, not {subset}.")
    return Agent(f"REDQ {subset} of {size}", size, Rule.SUBSET_MINIMUM, parameter=float(subset))


def BootstrappedQLearning(ensemble_size: int = 10, mask_probability: float = 0.5) -> Agent:  # noqa: N802
    """Bootstrapped Q-learning: independent members learn from random steps; one acts in each episode."""
    mask = _mask_below_one(mask_probability)
    return _bootstrapped("Bootstrapped", ensemble_size, mask, ("mask", mask, 0.5))


def RandomisedPriors(  # noqa: N802
    ensemble_size: int = 10, prior_scale: float = 1.0, mask_probability: float = 1.0
) -> Agent:
    """Bootstrapped Q-learning whose members start from their own random values, N(0, prior_scale²).

    For tables, starting at the prior is the same as adding a fixed prior to a table that starts at zero.
    """
    mask, scale = _mask(mask_probability), _positive("prior_scale", prior_scale)
    agent = _bootstrapped("Priors", ensemble_size, mask, ("scale", scale, 1.0), ("mask", mask, 1.0))
    return replace(agent, prior_scale=scale)


def SUNRISE(  # noqa: N802
    ensemble_size: int = 10, temperature: float = 10.0, ucb_width: float = 1.0, mask_probability: float = 0.5
) -> Agent:
    """SUNRISE: bootstrapped members learn less where they disagree, and act on upper confidence bounds."""
    size = _members("SUNRISE's ensemble size", ensemble_size)
    heat = _not_negative("SUNRISE's temperature", temperature)
    mask, width = _mask_below_one(mask_probability), _not_negative("ucb_width", ucb_width)
    label = _label(f"SUNRISE {size}", ("T", heat, 10.0), ("λ", width, 1.0), ("mask", mask, 0.5))
    agent = Agent(label, size, Rule.SUNRISE, Turn.MASKED, heat, mask)
    return replace(agent, behaviour=Behaviour.UCB, ucb_width=width)


def SelfCorrectingQLearning(beta: float = 2.0) -> Agent:  # noqa: N802
    """Self-correcting Q-learning: Q minus β times its latest change selects, Q evaluates."""
    beta = _not_negative("beta", beta)
    return Agent(_label("Self-correcting", ("β", beta, 2.0)), 2, Rule.SELF_CORRECTING, parameter=beta)


def SpeedyQLearning() -> Agent:  # noqa: N802
    """Speedy Q-learning: the latest change of the next state's maximum has full weight; it overestimates."""
    return Agent("Speedy", 2, Rule.SPEEDY)


def WeightedQLearning(ensemble_size: int = 10) -> Agent:  # noqa: N802
    """Weighted Q-learning: every action's mean, weighted by the probability that it is the best one."""
    size = _members("WeightedQLearning's ensemble size", ensemble_size)
    return Agent(f"Weighted {size}", size, Rule.WEIGHTED)


def TEQLearning(ensemble_size: int = 10, alpha: float = 0.05) -> Agent:  # noqa: N802
    """Q-learning with the T-estimator: the mean of the actions that a test cannot tell from the best.

    The level `alpha` runs from the mean of all actions (0) to Q-learning's maximum (0.5).
    """
    size = _members("TEQLearning's ensemble size", ensemble_size)
    alpha = _at_most("TEQLearning's alpha", _positive("TEQLearning's alpha", alpha), 0.5)
    return Agent(_label(f"TE {size}", ("α", alpha, 0.05)), size, Rule.T_ESTIMATOR, parameter=alpha)


def KEQLearning(ensemble_size: int = 10, scale: float = 1.0) -> Agent:  # noqa: N802
    """Q-learning with the K-estimator: actions are weighted by a Gaussian kernel of the test's score."""
    size = _members("KEQLearning's ensemble size", ensemble_size)
    scale = _positive("KEQLearning's scale", scale)
    return Agent(_label(f"KE {size}", ("scale", scale, 1.0)), size, Rule.K_ESTIMATOR, parameter=scale)


def OrderQLearning(ensemble_size: int = 4, index: int = 2) -> Agent:  # noqa: N802
    """Order Q-learning: the maximum of the members' `index`-th smallest value; 1 is Maxmin's rule."""
    size = _members("OrderQLearning's ensemble size", ensemble_size)
    index = whole_number("OrderQLearning's index", index, 1)
    if index > size:
        raise InputError(f"OrderQLearning's index must be at most its ensemble size {size}, not {index}.")
    return Agent(f"Order {index} of {size}", size, Rule.ORDER, parameter=float(index))


def AdaptiveOrderQLearning(ensemble_size: int = 10) -> Agent:  # noqa: N802
    """Order Q-learning whose index rises from the lower quartile to the median as members agree."""
    size = _members("AdaptiveOrderQLearning's ensemble size", ensemble_size)
    return Agent(f"Adaptive order {size}", size, Rule.ADAPTIVE_ORDER)


def RobustQLearning(ensemble_size: int = 10, rho: float = 1.0) -> Agent:  # noqa: N802
    """2RA Q-learning: the maximum of the members' mean minus √ρ; ρ is divided by an entry's updates."""
    size = _members("RobustQLearning's ensemble size", ensemble_size)
    rho = _not_negative("RobustQLearning's rho", rho)
    return Agent(_label(f"2RA {size}", ("ρ", rho, 1.0)), size, Rule.ROBUST_MEAN, parameter=rho)


def CandidateQLearning(candidates: int = 2) -> Agent:  # noqa: N802
    """Action-candidate clipped double Q-learning: the other table names the actions to select from."""
    size = whole_number("CandidateQLearning's candidates", candidates, 1)
    return Agent(_label("Candidates", ("", size, 2)), 2, Rule.CANDIDATES, parameter=float(size))


def SmoothedQLearning(smoothing: float = 1.0) -> Agent:  # noqa: N802
    """Smoothed Q-learning: the weight of all actions but the best is τ, divided by an entry's updates."""
    tau = _not_negative("SmoothedQLearning's smoothing", smoothing)
    _at_most("SmoothedQLearning's smoothing", tau, 1.0)
    return Agent(_label("Smoothed", ("τ", tau, 1.0)), 1, Rule.SMOOTHED, parameter=tau)


def _label(name: str, *parameters: tuple[str, float, float]) -> str:
    """Return the name, followed by each parameter (name, value, default) that differs from its default."""
    changed = [
        f"{parameter} {value:g}".strip() for parameter, value, default in parameters if value != default
    ]
    return " ".join([name, *changed])


def _members(name: str, size: int) -> int:
    return whole_number(name, size, 2)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"{name} must be a number, not {value!r}.")
    return float(value)


def _positive(name: str, value: float) -> float:
    value = _number(name, value)
    if not 0 < value < np.inf:  # also raises for NaN
        raise InputError(f"{name} must be a positive number, not {value}.")
    return value


def _not_negative(name: str, value: float) -> float:
    value = _number(name, value)
    if not 0 <= value < np.inf:
        raise InputError(f"{name} must be a finite number of at least 0, not {value}.")
    return value


def _at_most(name: str, value: float, highest: float) -> float:
    if value > highest:
        raise InputError(f"{name} must be at most {highest:g}, not {value:g}.")
    return value


def _mask(probability: float) -> float:
    probability = _number("mask_probability", probability)
    if not 0 < probability <= 1:
        raise InputError(f"mask_probability must be above 0 and at most 1, not {probability}.")
    return probability


def _mask_below_one(probability: float) -> float:
    if _mask(probability) == 1:
        raise InputError(
            "mask_probability must be below 1: members that start equal and see the same steps stay equal."
        )
    return float(probability)


def _bootstrapped(name: str, ensemble_size: int, mask: float, *parameters: tuple[str, float, float]) -> Agent:
    size = _members(f"{name}'s ensemble size", ensemble_size)
    label = _label(f"{name} {size}", *parameters)
    agent = Agent(label, size, Rule.MAXIMUM, Turn.MASKED, mask_probability=mask)
    return replace(agent, behaviour=Behaviour.THOMPSON)
