"""The bootstrap rules: which members select the next action, and which evaluate it.

A rule is a pure function. It maps the members' predictions for the NEXT observation to a bootstrap value for
each member that learns. Rewards, discounts and the ends of episodes are handled elsewhere. A rule only picks
and averages predictions, so it works for action values and for distributions over returns alike.

Only legal actions count. A rule therefore selects with `best` or `worst`, never with `argmax` of its own, and
passes values through `only_legal` before it does anything else over actions.

The paper in three functions: `q_learning` (DQN), `double_q` (double DQN), `ensemble_bootstrap` (EBQL). To add
a rule, write the function and give it a line in `RULES`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ebql.deep.splitting import best_split
from ebql.errors import InputError
from ebql.estimators.selection import MIDPOINTS


class Next(NamedTuple):
    """The predictions for the next observation: by K target members, and by the L online members that learn.

    All members learn together (L = K), or one of them (L = 1), or each from its own rows (L = 1 a row).

    >>> online = torch.tensor([[[1.0, 2.0], [4.0, 3.0]]])  # one row, K = 2 members, A = 2 actions
    >>> target = torch.tensor([[[10.0, 20.0], [30.0, 40.0]]])
    >>> after = Next(online, target, predictions=target, members=torch.arange(2)[None])
    >>> ensemble_bootstrap(after)  # member 0 selects action 1, and member 1 evaluates it; and vice versa
    tensor([[40., 10.]])
    """

    online: Tensor | None
    """Action values (rows, L, A) of the online members that learn; None for rules that do not use them."""
    target: Tensor
    """Action values (rows, K, A) of the target members."""
    predictions: Tensor
    """What rules pick and average: `target` itself, or its distributions (rows, K, A, Z)."""
    members: Tensor
    """The indices of the members that learn, (rows or 1, L)."""
    legal: Tensor | None = None
    """The legal actions of the next state, (rows, A) of bool; None where all are."""


def best(after: Next, values: Tensor) -> Tensor:
    """Return the legal action with the largest of `values` (rows, …, A), as indices (rows, …).

    >>> values = torch.tensor([[[1.0, 5.0, 3.0]]])  # (rows, K, A)
    >>> legal = torch.tensor([[True, False, True]])
    >>> best(Next(None, values, values, torch.zeros(1, 1, dtype=torch.int64), legal), values)
    tensor([[2]])
    """
    return only_legal(after, values, -torch.inf).argmax(-1)


def worst(after: Next, values: Tensor) -> Tensor:
    """Return the legal action with the smallest of `values` (rows, …, A), as indices (rows, …).

    >>> values = torch.tensor([[[1.0, 5.0, 3.0]]])  # (rows, K, A)
    >>> legal = torch.tensor([[False, True, True]])
    >>> worst(Next(None, values, values, torch.zeros(1, 1, dtype=torch.int64), legal), values)
    tensor([[2]])
    """
    return only_legal(after, values, torch.inf).argmin(-1)


def only_legal(after: Next, values: Tensor, otherwise: float) -> Tensor:
    """Return `values` (rows, …, A), with `otherwise` in place of the values of illegal actions."""
    if after.legal is None:
        return values
    legal = after.legal.reshape(len(values), *[1] * (values.ndim - 2), -1)
    return values.masked_fill(~legal, otherwise)


def q_learning(after: Next) -> Tensor:
    """Target member k selects and evaluates: its own maximum."""
    return pick(after.predictions, after.members, best(after, _own(after, after.target)))


def double_q(after: Next) -> Tensor:
    """Online member k selects, its own target copy evaluates."""
    return pick(after.predictions, after.members, _selected(after))


def ensemble_bootstrap(after: Next) -> Tensor:
    """Online member k selects, the other K − 1 target members evaluate.

    Q^{EN∖k} of the paper's section 5: the mean over j ≠ k, computed as (sum over all − member k) / (K − 1).
    """
    return mean_of_others(after, _selected(after))


def split(after: Next, n_selectors: Tensor) -> Tensor:
    """The mean of n online members k, k + 1, … selects, the other target members evaluate.

    Indices wrap around at K. `n_selectors` is (rows,) or (1,). `online` are all K members.
    """
    n_members = after.target.shape[1]
    # ahead[k, j]: how many places j comes after k; the first n are selectors.
    indices = torch.arange(n_members, device=after.target.device)
    ahead = (indices - indices[:, None]) % n_members
    ahead = ahead[after.members]
    selects = (ahead < n_selectors[:, None, None]).to(after.target)
    selected = best(after, selects @ _online(after))
    evaluates = (1 - selects) / (n_members - n_selectors[:, None, None])
    weights = evaluates.reshape(*evaluates.shape, *[1] * (after.predictions.ndim - 3))
    return (weights * _by_every_member(after, selected)).sum(2)


def mean_maximum(after: Next) -> Tensor:
    """The mean of all target members selects and evaluates.

    With K members this is Ensemble-DQN; with the last K copies of one network, Averaged-DQN.
    """
    selected = best(after, after.target.mean(1))
    return _for_all(after, after.predictions.mean(1)[_row_numbers(after), selected])


def maxmin(after: Next) -> Tensor:
    """The maximum over actions of the target members' minimum."""
    return subset_minimum(after, torch.arange(after.target.shape[1], device=after.target.device))


def subset_minimum(after: Next, subset: Tensor) -> Tensor:
    """As `maxmin`, over a random `subset` (M,) of the target members."""
    least, by = after.target[:, subset].min(1)
    selected = best(after, least)
    rows = _row_numbers(after)
    return _for_all(after, after.predictions[rows, subset[by[rows, selected]], selected])


def clipped_double(after: Next) -> Tensor:
    """Online member k selects, the target members' minimum evaluates."""
    selected = _selected(after)
    values = after.target.movedim(1, -1)[_rows(after), selected]
    return pick(after.predictions, values.argmin(-1), selected)


def cross(after: Next, others: Tensor) -> Tensor:
    """Online member k selects, one random other target member evaluates: `others` (rows, L)."""
    return pick(after.predictions, others, _selected(after))


def weighted_double(after: Next, c: float) -> Tensor:
    """Online member k selects; its target copy evaluates with weight β, the others' mean with 1 − β.

    β = d / (c + d), where d is the gap in the others' mean between k's best and k's worst action.
    """
    selected, least = _selected(after), worst(after, _online(after))
    scores = after._replace(predictions=after.target)
    gap = (mean_of_others(scores, selected) - mean_of_others(scores, least)).abs()
    beta = (gap / (c + gap)).reshape(*gap.shape, *[1] * (after.predictions.ndim - 3))
    own = pick(after.predictions, after.members, selected)
    return beta * own + (1 - beta) * mean_of_others(after, selected)


def weighted(after: Next) -> Tensor:
    """D'Eramo's weighted estimator: the target members' mean, actions weighted by P(the action is best).

    Errors of the mean are taken to be Gaussian. P averages Π_{j≠a} Φ_j over the midpoints of equal shares of
    a's distribution, as in `ebql.estimators.selection.quick_selection_probabilities`.
    """
    means = after.target.mean(1)
    errors = after.target.std(1) / math.sqrt(after.target.shape[1])
    points = means.unsqueeze(-1) + errors.unsqueeze(-1) * torch.as_tensor(MIDPOINTS).to(means)
    scores = (points.unsqueeze(2) - means[:, None, :, None]) / errors[
        :, None, :, None
    ]  # (rows, a, j, points)
    below: Tensor = torch.special.ndtr(scores.nan_to_num(0.0, posinf=torch.inf, neginf=-torch.inf))
    n_actions = means.shape[1]
    others = (1 - torch.eye(n_actions, device=means.device)).expand(len(means), -1, -1)
    counts = only_legal(after, others, 0.0).unsqueeze(-1) > 0
    chances = torch.where(counts, below, 1).prod(2).mean(-1)
    return _for_all(after, averaged(after.predictions.mean(1), only_legal(after, chances, 0.0)))


def t_estimator(after: Next, alpha: float) -> Tensor:
    """T-estimator: target member k's mean over the actions that a test at level α keeps beside its best."""
    kept = torch.special.ndtr(_scores(after)) >= alpha
    return averaged(_own(after, after.predictions), only_legal(after, kept.to(after.target), 0.0))


def k_estimator(after: Next, scale: float) -> Tensor:
    """K-estimator: target member k's mean over actions, weighted by Φ(score / scale)."""
    weights: Tensor = torch.special.ndtr(_scores(after) / scale)
    return averaged(_own(after, after.predictions), only_legal(after, weights, 0.0))


def order(after: Next, index: int) -> Tensor:
    """The maximum over actions of the target members' `index`-th smallest value; 1 is `maxmin`."""
    values, by = (ranked[:, index - 1] for ranked in after.target.sort(1))
    selected, rows = best(after, values), _row_numbers(after)
    return _for_all(after, after.predictions[rows, by[rows, selected], selected])


def adaptive_order(after: Next) -> Tensor:
    """As `order`, with an index for each row: (K + c) / 4, rounded up, of K target members.

    c of them select the action that is the best in their mean.
    """
    n_members = after.target.shape[1]
    agreeing = (best(after, after.target) == best(after, after.target.mean(1))[:, None]).sum(1)
    index = (n_members + agreeing + 3) // 4
    values, by = (ranked[_row_numbers(after), index - 1] for ranked in after.target.sort(1))
    selected, rows = best(after, values), _row_numbers(after)
    return _for_all(after, after.predictions[rows, by[rows, selected], selected])


def robust_mean(after: Next, rho: float) -> Tensor:
    """2RA: the maximum of the target members' mean minus √ρ. Quantiles can be shifted so, atoms cannot."""
    return mean_maximum(after) - math.sqrt(rho)


def candidates(after: Next, size: int) -> Tensor:
    """The other target members' mean names `size` actions; online member k selects one of them.

    The others' mean evaluates it, but at most with the maximum of target member k.
    """
    others = (after.target.sum(1, keepdim=True) - _own(after, after.target)) / (after.target.shape[1] - 1)
    ranked = only_legal(after, others, -torch.inf).sort(dim=-1, descending=True, stable=True).indices
    is_candidate = torch.zeros_like(others, dtype=torch.bool).scatter(-1, ranked[..., :size], True)
    selected = best(after, _online(after).masked_fill(~is_candidate, -torch.inf))
    own = after._replace(predictions=after.target)
    lower = mean_of_others(own, selected) <= q_learning(own)
    lower = lower.reshape(*lower.shape, *[1] * (after.predictions.ndim - 3))
    return torch.where(lower, mean_of_others(after, selected), q_learning(after))


def smoothed(after: Next, tau: float) -> Tensor:
    """Target member k's maximum with weight 1 − τ, the mean of its other actions with weight τ."""
    own = _own(after, after.target)
    legal = only_legal(after, torch.ones_like(own), 0.0)
    others = legal.sum(-1, keepdim=True) - 1
    of_best = torch.where(others > 0, 1 - tau, 1.0).to(own)
    weights = (tau * legal / others.clamp(min=1)).scatter(-1, best(after, own).unsqueeze(-1), of_best)
    return averaged(_own(after, after.predictions), weights)


def _scores(after: Next) -> Tensor:
    """Return by how many standard errors each action is below target member k's best, (rows, L, A).

    The variance of an action's value is that over the target members.
    """
    own, variances = _own(after, after.target), after.target.var(1).unsqueeze(1)
    selected = best(after, own).unsqueeze(-1)
    gaps = own - own.gather(-1, selected)
    spread = (variances + variances.expand_as(own).gather(-1, selected)).sqrt()
    # Without any variance, gaps decide: 0 / 0 is no distance, anything else over 0 is certain.
    return (gaps / spread).nan_to_num(0.0, posinf=torch.inf, neginf=-torch.inf)


def averaged(predictions: Tensor, weights: Tensor) -> Tensor:
    """Return the mean of predictions (rows, …, A[, Z]) over actions with these weights (rows, …, A)."""
    shares = weights / weights.sum(-1, keepdim=True).clamp(min=torch.finfo(weights.dtype).tiny)
    extra = [1] * (predictions.ndim - weights.ndim)
    return (shares.reshape(*shares.shape, *extra) * predictions).sum(weights.ndim - 1)


def backup_weight(after: Next, temperature: float) -> Tensor:
    """Return SUNRISE's weight of each row for each member, (rows, L), from 0.5 to 1.

    σ(−T s) + 0.5, where s is the standard deviation (divisor K) of the target members' values of k's action.
    """
    values = after.target.movedim(1, -1)[_rows(after), _selected(after)]
    return torch.sigmoid(-temperature * values.std(-1, correction=0)) + 0.5


def pick(predictions: Tensor, members: Tensor, actions: Tensor) -> Tensor:
    """Return the predictions of these members for these actions, (rows, L) or (rows, L, Z); all broadcast."""
    rows = torch.arange(len(predictions), device=predictions.device)[:, None]
    return predictions[rows, members, actions]


def mean_of_others(after: Next, actions: Tensor) -> Tensor:
    """Return the mean prediction of all target members but k for k's actions (rows, L)."""
    n_evaluators = after.target.shape[1] - 1
    by_all = after.predictions.sum(1)[_rows(after), actions]
    return (by_all - pick(after.predictions, after.members, actions)) / n_evaluators


def sample_others(members: Tensor, n_rows: int, n_members: int, generator: torch.Generator) -> Tensor:
    """Return one random other member for each row and each of `members` (rows or 1, L)."""
    ahead = torch.randint(1, n_members, (n_rows, members.shape[1]), generator=generator)
    return (members + ahead.to(members.device)) % n_members


def sample_subset(size: int, n_members: int, generator: torch.Generator) -> Tensor:
    """Return a random set of `size` members, (size,)."""
    return torch.randperm(n_members, generator=generator)[:size]


def steered_size(config: Any, size: int, deviation: float, generator: torch.Generator) -> int:
    """AdaEQ: return the next subset size, given the relative deviation of the measured error.

    Above the tolerance it is a random larger one, up to K; below, a random smaller one, down to 2.
    """
    low, high = size, size
    if deviation > config.tolerance and size < config.ensemble_size:
        low, high = size + 1, config.ensemble_size
    elif deviation < config.tolerance and size > 2:
        low, high = 2, size - 1
    return int(torch.randint(low, high + 1, (), generator=generator))


def n_selectors(after: Next, split: int | str) -> Tensor:
    """Return the number of selectors: (1,) for a fixed split, (rows,) for an adaptive one."""
    if isinstance(split, int):
        return torch.full((1,), split, device=after.target.device)
    return best_split(after.target, after.legal)


def _online(after: Next) -> Tensor:
    assert after.online is not None, "the rule needs selects_online=True in RULES"
    return after.online


def _selected(after: Next) -> Tensor:
    return best(after, _online(after))


def _own(after: Next, of_all: Tensor) -> Tensor:
    """Return the learning members' part (rows, L, …) of what all target members say, (rows, K, …)."""
    return of_all[_rows(after), after.members]


def _row_numbers(after: Next) -> Tensor:
    return torch.arange(len(after.target), device=after.target.device)


def _rows(after: Next) -> Tensor:
    return _row_numbers(after)[:, None]


def _by_every_member(after: Next, actions: Tensor) -> Tensor:
    """Return every target member's predictions for each learning member's action, (rows, L, K[, Z])."""
    return after.predictions.transpose(1, 2)[_rows(after), actions]


def _for_all(after: Next, common: Tensor) -> Tensor:
    """Repeat a common value (rows, …) for each member that learns, (rows, L, …)."""
    return common.unsqueeze(1).expand(-1, after.members.shape[1], *common.shape[1:])


class Rule(NamedTuple):
    """A bootstrap rule and what it needs. `config` is the agent's.

    >>> def largest(after):  # the largest value that any member has for any action
    ...     return after.predictions.amax((1, 2))[:, None].expand(-1, after.members.shape[1])
    >>> values = torch.tensor([[[1.0, 5.0], [4.0, 2.0]]])  # (rows, K, A)
    >>> after = Next(None, values, values, members=torch.arange(2)[None])
    >>> Rule(largest, selects_online=False).bootstrap(after)
    tensor([[5., 5.]])
    """

    bootstrap: Callable[..., Tensor]
    """The function of a `Next` and the `arguments` that returns the bootstrap value (rows, L[, Z])."""
    selects_online: bool
    """Whether the rule uses `online`; if not, that forward pass is skipped."""
    selects_together: bool = False
    """Whether `online` must be all K members, even if only one learns."""
    arguments: Callable[[Any, Next, Tensor], tuple[Any, ...]] = lambda *_: ()
    """(config, after, samples) → the further arguments."""
    sample: Callable[[Any, Tensor, int, int, torch.Generator], Tensor] | None = None
    """(config, members, rows, K, generator) → random `samples`; None for a rule without randomness."""
    backup_weight: Callable[[Any, Next], Tensor] | None = None
    """(config, after) → the weight of each row for each member, (rows, L); None if all count alike."""
    steer: Callable[[Any, int, float, torch.Generator], int] | None = None
    """(config, subset size, relative deviation of the error, generator) → the subset size from now on.

    It is called after each evaluation; None if evaluations do not change the rule.
    """
    logged: str | None = None
    """The name under which the mean of the first further argument is logged."""


RULES = {
    "q-learning": Rule(q_learning, selects_online=False),
    "double-q": Rule(double_q, selects_online=True),
    "ensemble-bootstrap": Rule(ensemble_bootstrap, selects_online=True),
    "split": Rule(
        split,
        selects_online=True,
        selects_together=True,
        arguments=lambda config, after, _: (n_selectors(after, config.split),),
        logged="split",
    ),
    "mean-maximum": Rule(mean_maximum, selects_online=False),
    "maxmin": Rule(maxmin, selects_online=False),
    "subset-minimum": Rule(
        subset_minimum,
        selects_online=False,
        arguments=lambda _config, _after, samples: (samples,),
        sample=lambda config, _members, _rows, n, rng: sample_subset(config.subset_size, n, rng),
    ),
    "adaeq": Rule(
        subset_minimum,
        selects_online=False,
        arguments=lambda _config, _after, samples: (samples,),
        sample=lambda config, _members, _rows, n, rng: sample_subset(config.subset_size, n, rng),
        steer=steered_size,
    ),
    "clipped-double": Rule(clipped_double, selects_online=True),
    "cross": Rule(
        cross,
        selects_online=True,
        arguments=lambda _config, _after, samples: (samples,),
        sample=lambda _config, members, n_rows, n, rng: sample_others(members, n_rows, n, rng),
    ),
    "weighted-double": Rule(
        weighted_double, selects_online=True, arguments=lambda config, _after, _samples: (config.c,)
    ),
    "weighted": Rule(weighted, selects_online=False),
    "t-estimator": Rule(
        t_estimator, selects_online=False, arguments=lambda config, _after, _samples: (config.alpha,)
    ),
    "k-estimator": Rule(
        k_estimator, selects_online=False, arguments=lambda config, _after, _samples: (config.scale,)
    ),
    "order": Rule(order, selects_online=False, arguments=lambda config, _after, _samples: (config.index,)),
    "adaptive-order": Rule(adaptive_order, selects_online=False),
    "robust-mean": Rule(
        robust_mean, selects_online=False, arguments=lambda config, _after, _samples: (config.rho,)
    ),
    "candidates": Rule(
        candidates, selects_online=True, arguments=lambda config, _after, _samples: (config.candidates,)
    ),
    "smoothed": Rule(
        smoothed, selects_online=False, arguments=lambda config, _after, _samples: (config.smoothing,)
    ),
    "sunrise": Rule(
        double_q,
        selects_online=True,
        backup_weight=lambda config, after: backup_weight(after, config.temperature),
    ),
}


def rule_named(name: str) -> Rule:
    """Return the rule with this name."""
    if name not in RULES:
        raise InputError(f"Unknown rule {name!r}: register its agent first, with ebql.register(MyAgent).")
    return RULES[name]
