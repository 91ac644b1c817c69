"""The bootstrap rules: who selects the next action, and who says what it is worth.

A rule is a pure function from what the members know of the NEXT observation to what is bootstrapped from,
for each member that learns. Rewards, discounts and the ends of episodes are no business of a rule, nor is
whether the members say a number for each action or a distribution over returns: what they say is only
picked and averaged. To add a rule, write the function and give it a line in `RULES`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from ebql.deep.splitting import best_split


class Next(NamedTuple):
    """What K target members, and the online copies of the L that learn, know of the next observation.

    All members learn together (L = K), one of them (L = 1), or each from rows of its own (L = 1 a row).
    """

    online: Tensor | None
    """Action values (rows, L, A) by the parameters that learn; None for rules that do not look."""
    target: Tensor
    """Action values (rows, K, A) by their older copies."""
    judged: Tensor
    """What is picked and averaged: `target` itself, or its distributions (rows, K, A, Z)."""
    members: Tensor
    """The numbers of the members that learn, (rows or 1, L)."""


def q_learning(after: Next) -> Tensor:
    """Return each member's own maximum: who selects also evaluates."""
    own = after.target[_rows(after), after.members]
    return pick(after.judged, after.members, own.argmax(-1))


def double_q(after: Next) -> Tensor:
    """Online member k selects, its own target copy evaluates."""
    return pick(after.judged, after.members, _selected(after))


def ensemble_bootstrap(after: Next) -> Tensor:
    """Online member k selects, the other K − 1 target members evaluate.

    Q^{EN∖k} of the paper's section 5: the mean over j ≠ k, computed as (the sum over all − member k).
    """
    return mean_of_others(after, _selected(after))


def split(after: Next, n_selectors: Tensor) -> Tensor:
    """Online members k, k + 1, …, n of them, select by their mean, the other target members evaluate.

    The count goes around the end; `n_selectors` is (rows,) or (1,). `online` are all K members.
    """
    n_members = after.target.shape[1]
    # ahead[k, j]: how many places j comes after k; the first n are selectors.
    numbers = torch.arange(n_members, device=after.target.device)
    ahead = (numbers - numbers[:, None]) % n_members
    ahead = ahead[after.members]
    selects = (ahead < n_selectors[:, None, None]).to(after.target)
    selected = (selects @ _online(after)).argmax(-1)
    evaluates = (1 - selects) / (n_members - n_selectors[:, None, None])
    weights = evaluates.reshape(*evaluates.shape, *[1] * (after.judged.ndim - 3))
    return (weights * _by_every_member(after, selected)).sum(2)


def mean_maximum(after: Next) -> Tensor:
    """The mean of all target members selects and evaluates.

    Ensemble-DQN, where they are members; Averaged-DQN, where they are one network's last K copies.
    """
    selected = after.target.mean(1).argmax(-1)
    return _for_all(after, after.judged.mean(1)[_row_numbers(after), selected])


def maxmin(after: Next) -> Tensor:
    """The least that any target member says of each action; the best action by that."""
    return subset_minimum(after, torch.arange(after.target.shape[1], device=after.target.device))


def subset_minimum(after: Next, subset: Tensor) -> Tensor:
    """As `maxmin`, but of a random `subset` (M,) of the target members."""
    least, by = after.target[:, subset].min(1)
    selected = least.argmax(-1)
    rows = _row_numbers(after)
    return _for_all(after, after.judged[rows, subset[by[rows, selected]], selected])


def clipped_double(after: Next) -> Tensor:
    """Online member k selects, the target member that says least evaluates."""
    selected = _selected(after)
    said = after.target.movedim(1, -1)[_rows(after), selected]
    return pick(after.judged, said.argmin(-1), selected)


def cross(after: Next, others: Tensor) -> Tensor:
    """Online member k selects, one other target member evaluates: `others` (rows, L), drawn at random."""
    return pick(after.judged, others, _selected(after))


def weighted_double(after: Next, c: float) -> Tensor:
    """Online member k selects; β of what its target copy says and 1 − β of what the others' mean says.

    β = d / (c + d), with d the gap, in the others' mean, between k's best and k's worst action.
    """
    selected, worst = _selected(after), _online(after).argmin(-1)
    scores = after._replace(judged=after.target)
    gap = (mean_of_others(scores, selected) - mean_of_others(scores, worst)).abs()
    beta = (gap / (c + gap)).reshape(*gap.shape, *[1] * (after.judged.ndim - 3))
    own = pick(after.judged, after.members, selected)
    return beta * own + (1 - beta) * mean_of_others(after, selected)


def backup_weight(after: Next, temperature: float) -> Tensor:
    """Return SUNRISE's weight of each row for each member, (rows, L), from 0.5 to 1.

    σ(−T s) + 0.5, with s the spread (divisor K) of the target members' values of k's selected action.
    """
    values = after.target.movedim(1, -1)[_rows(after), _selected(after)]
    return torch.sigmoid(-temperature * values.std(-1, correction=0)) + 0.5


def pick(judged: Tensor, members: Tensor, actions: Tensor) -> Tensor:
    """Return what these members say of these actions, (rows, L) or (rows, L, Z); all broadcast."""
    rows = torch.arange(len(judged), device=judged.device)[:, None]
    return judged[rows, members, actions]


def mean_of_others(after: Next, actions: Tensor) -> Tensor:
    """Return the mean over all target members but member k of what they say of k's actions (rows, L)."""
    n_evaluators = after.target.shape[1] - 1
    by_all = after.judged.sum(1)[_rows(after), actions]
    return (by_all - pick(after.judged, after.members, actions)) / n_evaluators


def drawn_others(members: Tensor, n_rows: int, n_members: int, chance: torch.Generator) -> Tensor:
    """Return for each row, and each of `members` (rows or 1, L), one other member, each as likely."""
    ahead = torch.randint(1, n_members, (n_rows, members.shape[1]), generator=chance)
    return (members + ahead.to(members.device)) % n_members


def drawn_subset(size: int, n_members: int, chance: torch.Generator) -> Tensor:
    """Return `size` different members, (size,), each set of them as likely."""
    return torch.randperm(n_members, generator=chance)[:size]


def n_selectors(after: Next, split: int | str) -> Tensor:
    """Return how many members select: (1,) for a fixed number, (rows,) if the split is adaptive."""
    if isinstance(split, int):
        return torch.full((1,), split, device=after.target.device)
    return best_split(after.target)


def _online(after: Next) -> Tensor:
    assert after.online is not None, "the rule's line in RULES must say selects_online"
    return after.online


def _selected(after: Next) -> Tensor:
    return _online(after).argmax(-1)


def _row_numbers(after: Next) -> Tensor:
    return torch.arange(len(after.target), device=after.target.device)


def _rows(after: Next) -> Tensor:
    return _row_numbers(after)[:, None]


def _by_every_member(after: Next, actions: Tensor) -> Tensor:
    """Return what each target member says of each learner's action, (rows, L, K) or (rows, L, K, Z)."""
    return after.judged.transpose(1, 2)[_rows(after), actions]


def _for_all(after: Next, common: Tensor) -> Tensor:
    """Give what is common to all (rows, …) to each member that learns, (rows, L, …)."""
    return common.unsqueeze(1).expand(-1, after.members.shape[1], *common.shape[1:])


class Rule(NamedTuple):
    """A bootstrap rule and what it needs; `config` is always the agent's."""

    bootstrap: Callable[..., Tensor]
    """What is bootstrapped from, (rows, L[, Z]), of a `Next` and the `arguments`."""
    selects_online: bool
    """Whether the rule reads `online`; if not, that forward pass is saved and None is given."""
    selects_together: bool = False
    """Whether `online` must be all K members, whoever learns."""
    arguments: Callable[[Any, Next, Tensor], tuple[Any, ...]] = lambda *_: ()
    """The further arguments, by (config, after, drawn)."""
    draw: Callable[[Any, Tensor, int, int, torch.Generator], Tensor] | None = None
    """What is left to chance, `drawn`, by (config, members, rows, K, chance)."""
    backup_weight: Callable[[Any, Next], Tensor] | None = None
    """How much each row counts for each member, (rows, L); None if all count alike."""
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
        arguments=lambda _config, _after, drawn: (drawn,),
        draw=lambda config, _members, _rows, n, chance: drawn_subset(config.subset_size, n, chance),
    ),
    "clipped-double": Rule(clipped_double, selects_online=True),
    "cross": Rule(
        cross,
        selects_online=True,
        arguments=lambda _config, _after, drawn: (drawn,),
        draw=lambda _config, members, n_rows, n, chance: drawn_others(members, n_rows, n, chance),
    ),
    "weighted-double": Rule(
        weighted_double, selects_online=True, arguments=lambda config, _after, _drawn: (config.c,)
    ),
    "sunrise": Rule(
        double_q,
        selects_online=True,
        backup_weight=lambda config, after: backup_weight(after, config.temperature),
    ),
}
