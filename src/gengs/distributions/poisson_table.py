r"""The table of a Poisson cut to 0 ... n - 1, by one matrix product.

.. math::
    \log \pi_k = k \log\lambda - \lambda - \ln\Gamma(k + 1), \quad k < a = n - 1, \qquad
    \log \pi_a = \log P(X \ge a)

A row of the table is linear in four numbers, :math:`(\log\lambda, \lambda, \log \pi_a, 1)`, so the
table is one matrix product instead of a dozen passes over it, and so is the way back. The tail of a
rate below the cut is a short series,

.. math::
    P(X \ge a) = p(a)\, t, \qquad
    t = 1 + \frac{\lambda}{a + 1} \Big(1 + \frac{\lambda}{a + 2} (1 + \dots)\Big), \qquad
    \partial_\lambda \log P(X \ge a) = \frac{p(a - 1)}{P(X \ge a)} = \frac{a}{\lambda t}.
"""

from __future__ import annotations

__all__ = ["poisson_table"]

import math
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from .special import log_poisson_tail, terms_to_add
from .sums import product


def poisson_table(rate: Tensor, size: int, largest: float) -> Tensor:
    """The log-PMF of ``clip(X, 0, size - 1)``, ``(*batch, size)``.

    Args:
        rate: Positive rates, ``(*batch, 1)``.
        size: How many atoms, at least 2 and few enough for ``float32``.
        largest: The largest rate.
    """
    return _PoissonTable.apply(rate, size, largest)


class _PoissonTable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rate: Tensor, size: int, largest: float) -> Tensor:
        cut = size - 1
        flat = rate.reshape(-1)
        # features are rows, written where they belong: no copy to put columns side by side
        features = flat.new_empty(4, len(flat))
        log_rate, same, log_tail, one = features
        torch.log(flat, out=log_rate)
        same.copy_(flat)
        one.fill_(1.0)
        if largest <= cut:
            series = _series(flat, cut, largest)
            torch.log(series, out=log_tail).add_(log_rate, alpha=cut).sub_(flat)
            log_tail.sub_(math.lgamma(size)).clamp_max_(0)
            tail_slope = cut / (flat * series)
        else:
            log_tail.copy_(log_poisson_tail(flat.new_tensor([cut]), flat, True))
            tail_slope = _tail_slope(flat, log_tail, cut)
        table = product(features.t(), _rows(size, rate.dtype, rate.device))
        ctx.save_for_backward(rate, tail_slope)
        ctx.size = size
        return table.view(*rate.shape[:-1], size)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        rate, tail_slope = ctx.saved_tensors
        cut = ctx.size - 1
        tail_slope = tail_slope.view_as(rate)
        if torch.is_grad_enabled():  # the slope that was kept is a number, this one a function
            log_tail = log_poisson_tail(rate.new_tensor([cut]), rate, True)
            tail_slope = _tail_slope(rate, log_tail, cut)
        rows = _rows(ctx.size, rate.dtype, rate.device)
        power, linear, tail, _ = product(grad, rows.t()).split(1, -1)
        return power / rate + linear + tail * tail_slope, None, None


def _series(rate: Tensor, cut: int, largest: float) -> Tensor:
    """The tail over its first term, by Horner's scheme."""
    one = total = torch.ones_like(rate)
    for j in range(terms_to_add(largest / (cut + 1), cut, rate.dtype), 0, -1):
        total = torch.addcmul(one, total, rate, value=1 / (cut + j))
    return total


def _tail_slope(rate: Tensor, log_tail: Tensor, cut: int) -> Tensor:
    r""":math:`p(a - 1) / P(X \ge a)`."""
    return ((cut - 1) * rate.log() - rate - math.lgamma(cut) - log_tail).exp()


@lru_cache(maxsize=64)
@torch.inference_mode(False)  # what is kept for all must serve those who train
def _rows(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """What each feature contributes to each atom, ``(4, n)``."""
    k = torch.arange(size, dtype=dtype, device=device)
    rows = torch.stack([k, torch.full_like(k, -1.0), torch.zeros_like(k), -torch.lgamma(k + 1)])
    rows[:, -1] = 0.0
    rows[2, -1] = 1.0
    return rows
