"""The agents that keep tables: what each one remembers, the rule it bootstraps by, and how it acts."""

from dataclasses import dataclass, field, replace
from enum import IntEnum
from numbers import Real
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ebql.errors import InputError, InputTypeError, unknown_name, whole_number
from ebql.tabular.behaviours import Behaviour
from ebql.tabular.rules import ACTING_ON_THE_FIRST, ACTING_ON_THE_MINIMUM, LOOKING_BACK, PLAIN, Rule

# The least and the largest number of tables a rule is defined for; of all others, any from 1 on.
_TABLES: dict[Rule, tuple[int, float]] = {
    Rule.ENSEMBLE: (2, np.inf),
    Rule.WEIGHTED_DOUBLE: (2, 2),
    Rule.CROSS: (2, np.inf),
    Rule.SELF_CORRECTING: (2, 2),
    Rule.SPEEDY: (2, 2),
    Rule.SPLIT: (2, np.inf),
    Rule.ADAPTIVE_SPLIT: (3, np.inf),
}

# Priors have a random stream of their own, so that they shift no other random number of a seed.
_PRIOR_STREAM = 1


class Turn(IntEnum):
    """Which members learn from a step, as a number that compiled code can switch on."""

    RANDOM = 0
    ALTERNATE = 1
    MASKED = 2


@dataclass(frozen=True)
class Agent:
    """An ensemble of tables, the rule they bootstrap by, whose turn it is to learn, and how it acts.

    All agents act ε-greedily on the mean of their members, Maxmin on the minimum, unless their `behaviour`
    says otherwise.
    """

    label: str = field(compare=False)
    ensemble_size: int
    rule: Rule
    turn: Turn = Turn.RANDOM
    parameter: float = 0.0
    """The rule's own number, where it has one."""
    mask_probability: float = 1.0
    """With masked turns: the probability that a member learns from a step."""
    prior_scale: float = 0.0
    """Standard deviation of the values that the tables start with; 0 for tables of zeros."""
    behaviour: Behaviour = Behaviour.MEAN
    ucb_width: float = 0.0
    """With upper confidence bounds: how many standard deviations they lie above the mean."""

    def __post_init__(self) -> None:
        """Refuse what compiled code, which checks nothing, would make nonsense of."""
        size = whole_number("ensemble_size", self.ensemble_size, 1)
        least, most = _TABLES.get(self.rule, (1, np.inf))
        if not least <= size <= most:
            wanted = f"{least}" if least == most else f"at least {least}"
            raise InputError(f"{self.rule.name} and ensemble size {size} clash: it needs {wanted}.")
        parameter = _not_negative("parameter", self.parameter)
        counts = {Rule.SPLIT: size - 1, Rule.SUBSET_MINIMUM: size, Rule.AVERAGED: np.inf}
        if self.rule in counts and not (parameter.is_integer() and 1 <= parameter <= counts[self.rule]):
            until = "on" if counts[self.rule] == np.inf else f"to {counts[self.rule]}"
            raise InputError(
                f"parameter {parameter:g} and {self.rule.name} clash: it takes a whole number from 1 {until}."
            )
        if self.rule == Rule.WEIGHTED_DOUBLE:
            _positive("parameter", parameter)
        _mask(self.mask_probability)
        _not_negative("prior_scale", self.prior_scale)
        _not_negative("ucb_width", self.ucb_width)

    @property
    def learners(self) -> int:
        """How many tables learn, the first ones; any others hold the past of the first."""
        return 1 if self.rule in LOOKING_BACK else self.ensemble_size

    @property
    def acting(self) -> int:
        """How many tables the agent acts on, the first ones."""
        return 1 if self.rule in ACTING_ON_THE_FIRST else self.ensemble_size

    @property
    def pessimistic(self) -> bool:
        """Whether the tables that are acted on say together what the least of them says, not the mean."""
        return self.rule in ACTING_ON_THE_MINIMUM

    @property
    def plain(self) -> bool:
        """Whether the compiled loop may take its fast path, made for the paper's own agents."""
        one_learns, on_the_mean = self.turn != Turn.MASKED, self.behaviour == Behaviour.MEAN
        return self.rule in PLAIN and one_learns and on_the_mean

    def first_tables(self, n_states: int, n_actions: int, seed: int) -> NDArray[np.float64]:
        """The tables before anything is learnt, `(S, A, K)`."""
        shape = (n_states, n_actions, self.ensemble_size)
        if self.prior_scale == 0:
            return np.zeros(shape)
        return self.prior_scale * np.random.default_rng([seed, _PRIOR_STREAM]).standard_normal(shape)

    def exploring(self, by: Literal["mean", "ucb", "thompson"], width: float = 1.0) -> "Agent":
        """Return the agent acting otherwise: on the mean, on mean + `width` deviations, or by a member.

        `mean` is the minimum where the agent acts on that. `thompson` draws a member for each episode. The
        exploration rate ε stays on top of each.
        """
        if by not in ("mean", "ucb", "thompson"):
            raise unknown_name("behaviour", by, ("mean", "ucb", "thompson"))
        if by != "mean" and self.learners < 2:
            raise InputError(f"exploring by {by} and {self.label} clash: it needs members that differ.")
        width = _not_negative("width", width) if by == "ucb" else 0.0
        acting = replace(self, behaviour=Behaviour[by.upper()], ucb_width=width)
        if acting == self:
            return self
        base = self.label.removesuffix(f" {self._way()}")
        back = by == "mean" and base != self.label
        base = base.replace(f" λ {self.ucb_width:g}", "")  # SUNRISE's own width, which no longer holds
        return replace(acting, label=base if back else f"{base} {acting._way()}")

    def _way(self) -> str:
        """How the agent acts, as its label has it where it is not its own way."""
        widths = (("", self.ucb_width, 1.0),) if self.behaviour == Behaviour.UCB else ()
        return _label(self.behaviour.name.lower(), *widths)


def QLearning() -> Agent:  # noqa: N802 - agents are named as in the literature
    """Watkins' Q-learning: one table that both selects and evaluates; it overestimates."""
    return Agent("QL", 1, Rule.MAXIMUM)


def DoubleQLearning(turn: Literal["random", "alternate"] = "random") -> Agent:  # noqa: N802
    """Van Hasselt's double Q-learning: one table selects, the other evaluates; it underestimates.

    `turn` says which table learns: either at random, as in van Hasselt (2010), or each at every other
    step, as in the paper's appendix. Alternation makes what a table sees depend on the parity of the time
    step, which a world of short episodes can lock in.
    """
    if turn not in ("random", "alternate"):
        raise unknown_name("turn", turn, ("random", "alternate"))
    return Agent("DQL", 2, Rule.ENSEMBLE, Turn[turn.upper()])


def EBQL(ensemble_size: int = 10, split: int | Literal["adaptive"] = 1) -> Agent:  # noqa: N802
    """Ensemble bootstrapped Q-learning: `split` of K tables select, the others evaluate together.

    The paper has one selector. "adaptive" chooses the number for each update, by the members' means and
    spreads at the next state; `History.mean_splits` tells what it chose.
    """
    if split == "adaptive":
        size = whole_number("EBQL's ensemble size with an adaptive split", ensemble_size, 3)
        return Agent(f"EBQL {size} adaptive", size, Rule.ADAPTIVE_SPLIT)
    if isinstance(split, str):
        raise unknown_name("split", split, ("adaptive",))
    size = _members("EBQL's ensemble size", ensemble_size)
    n_index = whole_number("EBQL's split", split, 1)
    if n_index >= size:
        raise InputError(f"split {n_index} and ensemble size {size} clash: someone must be left to evaluate.")
    if n_index == 1:
        return Agent(f"EBQL {size}", size, Rule.ENSEMBLE)
    return Agent(f"EBQL {size} split {n_index}", size, Rule.SPLIT, parameter=float(n_index))


def EnsembleQLearning(ensemble_size: int = 10) -> Agent:  # noqa: N802
    """Ensemble Q-learning: the maximum of the members' mean; it overestimates."""
    size = _members("EnsembleQLearning's ensemble size", ensemble_size)
    return Agent(f"Ensemble {size}", size, Rule.MEAN)


def AveragedQLearning(snapshots: int = 10, period: int = 10) -> Agent:  # noqa: N802
    """Averaged Q-learning: the maximum of the mean of a table and its last snapshots.

    Networks are copied all at once; here each entry remembers itself at every `period`-th of its updates.
    """
    size = _members("AveragedQLearning's snapshots", snapshots)
    period = whole_number("AveragedQLearning's period", period, 1)
    label = _label(f"Averaged {size}", ("period", period, 10))
    return Agent(label, size, Rule.AVERAGED, parameter=float(period))


def Maxmin(ensemble_size: int = 4) -> Agent:  # noqa: N802
    """Maxmin Q-learning: the maximum of the members' minimum; from over- to underestimation as K grows.

    It acts on that minimum, too, and reports it as its values.
    """
    size = _members("Maxmin's ensemble size", ensemble_size)
    return Agent(f"Maxmin {size}", size, Rule.MAXMIN)


def WeightedDoubleQLearning(c: float = 1.0) -> Agent:  # noqa: N802
    """Weighted double Q-learning: between Q-learning (c = 0) and double Q-learning (c → ∞)."""
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
    """REDQ's target: the maximum of the minimum of a few members, drawn anew for each update."""
    size = _members("REDQ's ensemble size", ensemble_size)
    subset = whole_number("REDQ's subset size", subset_size, 1)
    if subset > size:
        raise InputError(f"subset size {subset} and ensemble size {size} clash: a subset is no larger.")
    return Agent(f"REDQ {subset} of {size}", size, Rule.SUBSET_MINIMUM, parameter=float(subset))


def BootstrappedQLearning(ensemble_size: int = 10, mask_probability: float = 0.5) -> Agent:  # noqa: N802
    """Bootstrapped Q-learning: members learn apart, each from its share of the steps; one acts an episode."""
    mask = _splitting_mask(mask_probability)
    return _bootstrapped("Bootstrapped", ensemble_size, mask, ("mask", mask, 0.5))


def RandomisedPriors(  # noqa: N802
    ensemble_size: int = 10, prior_scale: float = 1.0, mask_probability: float = 1.0
) -> Agent:
    """Bootstrapped Q-learning whose members start from random values of their own, N(0, prior_scale²).

    A fixed prior added to a table that learns from zero is the same as a table that starts at the prior.
    """
    mask, scale = _mask(mask_probability), _positive("prior_scale", prior_scale)
    agent = _bootstrapped("Priors", ensemble_size, mask, ("scale", scale, 1.0), ("mask", mask, 1.0))
    return replace(agent, prior_scale=scale)


def SUNRISE(  # noqa: N802
    ensemble_size: int = 10, temperature: float = 10.0, ucb_width: float = 1.0, mask_probability: float = 0.5
) -> Agent:
    """SUNRISE: bootstrapped members that learn less where they disagree, and act on an upper bound."""
    size = _members("SUNRISE's ensemble size", ensemble_size)
    heat = _not_negative("SUNRISE's temperature", temperature)
    mask, width = _splitting_mask(mask_probability), _not_negative("ucb_width", ucb_width)
    label = _label(f"SUNRISE {size}", ("T", heat, 10.0), ("λ", width, 1.0), ("mask", mask, 0.5))
    agent = Agent(label, size, Rule.SUNRISE, Turn.MASKED, heat, mask)
    return replace(agent, behaviour=Behaviour.UCB, ucb_width=width)


def SelfCorrectingQLearning(beta: float = 2.0) -> Agent:  # noqa: N802
    """Self-correcting Q-learning: selects by what the latest update moved away from, β times over."""
    beta = _not_negative("beta", beta)
    return Agent(_label("Self-correcting", ("β", beta, 2.0)), 2, Rule.SELF_CORRECTING, parameter=beta)


def SpeedyQLearning() -> Agent:  # noqa: N802
    """Speedy Q-learning: the newest change of the next state's maximum counts in full; it overestimates."""
    return Agent("Speedy", 2, Rule.SPEEDY)


def _label(name: str, *parameters: tuple[str, float, float]) -> str:
    """Return the name, followed by each parameter (its own name, value, usual value) that is not as usual."""
    unusual = [f"{parameter} {value:g}".strip() for parameter, value, usual in parameters if value != usual]
    return " ".join([name, *unusual])


def _members(name: str, size: int) -> int:
    return whole_number(name, size, 2)


def _number(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InputTypeError(f"{name} must be a number, not {value!r}.")
    return float(value)


def _positive(name: str, value: float) -> float:
    value = _number(name, value)
    # Negated, so that NaN is refused too.
    if not 0 < value < np.inf:
        raise InputError(f"{name} must be a positive number, not {value}.")
    return value


def _not_negative(name: str, value: float) -> float:
    value = _number(name, value)
    if not 0 <= value < np.inf:
        raise InputError(f"{name} must be a number that is not negative, not {value}.")
    return value


def _mask(probability: float) -> float:
    probability = _number("mask_probability", probability)
    if not 0 < probability <= 1:
        raise InputError(f"mask_probability must lie in (0, 1], not {probability}.")
    return probability


def _splitting_mask(probability: float) -> float:
    if _mask(probability) == 1:
        raise InputError(
            "mask_probability 1 and tables of zeros clash: members that see the same steps stay the same."
        )
    return float(probability)


def _bootstrapped(name: str, ensemble_size: int, mask: float, *parameters: tuple[str, float, float]) -> Agent:
    size = _members(f"{name}'s ensemble size", ensemble_size)
    label = _label(f"{name} {size}", *parameters)
    agent = Agent(label, size, Rule.MAXIMUM, Turn.MASKED, mask_probability=mask)
    return replace(agent, behaviour=Behaviour.THOMPSON)
