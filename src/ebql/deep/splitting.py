"""The adaptive split: how many of K members select and how many evaluate, given their values.

The estimate is that of `ebql.tabular.splits`, for many rows at once; `docs/algorithms.md` derives it. It
treats each member's value of an action as a sample of the action's true value. `legal` are the actions that
count, (rows, A) of bool; None if all do.
"""

import torch
from torch import Tensor


def likely_gaps(q: Tensor, legal: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return the estimated gap of each action to the best, and the variance over members, both (rows, A).

    `q` are values (rows, K, A). Estimated means lie further apart than the true ones, so they are shrunk
    towards their average until the variance that the errors add over actions is removed.
    """
    _, n_members, n_actions = q.shape
    means, variances = q.mean(1), q.var(1)
    average, noise = means.mean(-1, keepdim=True), variances.mean(-1) / n_members * (n_actions - 1)
    if legal is not None:
        n_legal = legal.sum(-1).clamp(min=1)  # 0 after the end of an episode, where no value counts
        average = means.where(legal, 0).sum(-1, keepdim=True) / n_legal[:, None]
        means = means.where(legal, average)
        noise = variances.where(legal, 0).sum(-1) / n_legal / n_members * (n_legal - 1)
    total = (means - average).square().sum(-1)
    shrinkage = torch.where(total > noise, 1 - noise / total, 0).sqrt()
    return shrinkage[:, None] * (means.amax(-1, keepdim=True) - means), variances


def split_errors(gaps: Tensor, variances: Tensor, n_members: int, legal: Tensor | None = None) -> Tensor:
    """Return the mean squared error (rows, K − 1) when n = 1 … K − 1 members select.

    Appendix C: Σ P(a) (σₐ² / (K − n) + Δₐ²), with gaps Δ and variances σ² (rows, A). The best action is
    selected if it beats every other one, with probability Π Φ(Δₐ / √((σ² + σₐ²) / n)): the paper's product,
    exact for two actions. The remaining probability is divided among the other actions, in proportion to
    their probabilities of beating the best.
    """
    n = torch.arange(1, n_members, device=gaps.device)
    best = (gaps if legal is None else gaps.masked_fill(~legal, torch.inf)).argmin(-1, keepdim=True)
    best_variance = variances.gather(-1, best)
    spread = ((best_variance + variances).unsqueeze(-1) / n).sqrt()
    gaps, variances = gaps.unsqueeze(-1), variances.unsqueeze(-1)
    # Where the spread is 0, gaps decide: 0 / 0 is a tie, anything else over 0 is certain.
    beats: Tensor = torch.special.ndtr((-gaps / spread).nan_to_num(nan=0.0, neginf=float("-inf")))
    beats = beats.scatter(1, best.unsqueeze(-1).expand(-1, 1, n_members - 1), 0.0)
    if legal is not None:
        beats = beats.masked_fill(~legal.unsqueeze(-1), 0.0)
    found, beaten = (1 - beats).prod(1), beats.sum(1)
    cost = (beats * (variances / (n_members - n) + gaps.square())).sum(1)
    lost = torch.where(beaten > 0, (1 - found) * cost / beaten, 0)
    return found * best_variance / (n_members - n) + lost


def best_split(q: Tensor, legal: Tensor | None = None) -> Tensor:
    """Return the number of selectors (rows,) with the smallest error, given values (rows, K, A).

    Ties go to the smallest number. It is 1 where the actions probably do not differ.
    """
    gaps, variances = likely_gaps(q.double(), legal)
    errors = split_errors(gaps, variances, q.shape[1], legal)
    return torch.where(gaps.amax(-1) > 0, errors.argmin(-1) + 1, 1)
