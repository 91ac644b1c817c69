"""How many of K members should select, and how many evaluate, judged by what the members themselves say."""

import torch
from torch import Tensor


def split_errors(q: Tensor) -> Tensor:
    """Return the error (rows, K − 1) of letting n = 1 … K − 1 of the members select, by values (rows, K, A).

    The paper's appendix C for the two best actions, as if the members' mean and spread (divisor K − 1)
    were the truth: with the gap Δ and the spreads σ₁ and σ₂, n selectors take the second best with
    probability P = Φ(−Δ √n / √(σ₁² + σ₂²)), and the mean squared error is Σ P(a) (σₐ² / (K − n) + Δₐ²).
    """
    n_members = q.shape[1]
    q = q.double()
    best = q.mean(1).topk(min(2, q.shape[2]))
    variances = q.var(1).gather(-1, best.indices)
    n = torch.arange(1, n_members, device=q.device)
    if q.shape[2] == 1:
        return variances / (n_members - n)
    gap = (best.values[:, :1] - best.values[:, 1:]).clamp(min=0)
    # The tiny number decides between equal members: they agree, so the second best is never taken.
    deviation = (variances.sum(-1, keepdim=True) / n).sqrt() + torch.finfo(q.dtype).tiny
    second: Tensor = torch.special.ndtr(-gap / deviation)
    first_error = variances[:, :1] / (n_members - n)
    second_error = variances[:, 1:] / (n_members - n) + gap**2
    return (1 - second) * first_error + second * second_error


def adaptive_split(q: Tensor) -> Tensor:
    """Return the number of selectors (rows,) with the least error; of equally good ones the least."""
    return split_errors(q).argmin(-1) + 1
