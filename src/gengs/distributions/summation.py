r"""Tails of laws that only have a PMF: add its terms, from the cut outwards.

.. math:: \log P(X \ge a) = \log \sum_{j \ge 0} p(a + j)

The terms are positive, so nothing cancels, and autograd differentiates the sum. It ends when a
block of terms adds less than 1e-12 of it. A PMF with a second bump far out (a mixture) ends it too
early; so where the other side is a short finite sum, its complement is taken instead if it is large
enough to be accurate, or has mass that the sum did not find.
"""

from __future__ import annotations

__all__ = ["log_sum", "log_sum_above", "log_sum_below"]

from collections.abc import Callable

import torch
from torch import Tensor

from .special import log1mexp
from .validation import inspectable

LogPMF = Callable[[Tensor], Tensor]

_FIRST_BLOCK = 64
_MOST_TERMS = 1 << 17
_TRACED_TERMS = 256
"""Under ``torch.compile`` and ``vmap`` the number of terms cannot depend on the data."""
_SHORT = 1 << 12
"""A finite side with at most this many terms is summed whole."""


def log_sum_above(log_pmf: LogPMF, a: Tensor, lower: int | None) -> Tensor:
    """``log P(X >= a)``, for cuts ``a`` of shape ``(1,)`` or ``(*batch, 1)``."""
    outwards = _log_sum_outwards(log_pmf, a, 1)
    terms = _terms_between(lower, a)
    if terms is None:
        return outwards
    below = log_sum(log_pmf(a - 1 - terms))
    # 1 - (the rest) has an absolute error of some eps: take it where it is large against that
    missing = -torch.expm1(below.detach().clamp_max(0))
    not_found = missing - outwards.detach().exp() > 100 * torch.finfo(below.dtype).eps
    better = ((missing > 1e-2) | not_found) & ~outwards.isnan()
    complement = log1mexp(below.where(better & (below > -torch.inf), -1.0))
    complement = complement.where(below > -torch.inf, 0.0)
    return complement.where(better, outwards)


def log_sum_below(log_pmf: LogPMF, a: Tensor, lower: int | None) -> Tensor:
    """``log P(X <= a)``, for cuts ``a`` of shape ``(1,)`` or ``(*batch, 1)``."""
    terms = _terms_between(lower, a + 1)
    return _log_sum_outwards(log_pmf, a, -1) if terms is None else log_sum(log_pmf(a - terms))


def log_sum(x: Tensor) -> Tensor:
    """``logsumexp`` over the last dimension, kept; a row of ``-inf`` has gradient 0, not NaN."""
    some = (x > -torch.inf).any(-1, keepdim=True) | x.isnan().any(-1, keepdim=True)
    return x.where(some, 0.0).logsumexp(-1, keepdim=True).where(some, -torch.inf)


def _log_sum_outwards(log_pmf: LogPMF, a: Tensor, direction: int) -> Tensor:
    def block(first: int, last: int) -> Tensor:
        return log_sum(log_pmf(a + direction * torch.arange(first, last, device=a.device)))

    total = block(0, _FIRST_BLOCK)
    if not inspectable(total):
        return log_sum(torch.cat([total, block(_FIRST_BLOCK, _TRACED_TERMS)], -1))
    done = _FIRST_BLOCK
    while done < _MOST_TERMS:
        part = block(done, 2 * done)
        total = log_sum(torch.cat([total, part], -1))
        done *= 2
        if not (part.detach() > total.detach() - 27.6).any():  # exp(-27.6) = 1e-12; NaN ends it
            break
    return total


def _terms_between(lower: int | None, a: Tensor) -> Tensor | None:
    """``0, 1, ...``, as many as there are integers in ``[lower, a)``, where those are few."""
    if lower is None or not inspectable(a) or a.numel() == 0:
        return None
    many = int(a.max()) - lower
    return torch.arange(max(many, 1), device=a.device) if many <= _SHORT else None
