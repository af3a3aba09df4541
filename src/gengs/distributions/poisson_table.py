r"""The table of a Poisson cut to 0 ... n - 1, by one matrix product.

.. math::
    \log \pi_k = k \log\lambda - \lambda - \ln\Gamma(k + 1), \quad k < a = n - 1, \qquad
    \log \pi_a = \log P(X \ge a)

With the growth from the atom before the cut to the tail, :math:`g = P(X \ge a) / P(X = a - 1)`
(:mod:`poisson_tail`), a row of the table is linear in four numbers,
:math:`(1, \log\lambda, \lambda, \log g)`, so the table is one matrix product instead of a dozen
passes over it, and so is the way back:

.. math:: \partial_\lambda \log P(X \ge a) = P(X = a - 1) / P(X \ge a) = 1 / g
"""

from __future__ import annotations

__all__ = ["poisson_table"]

from typing import Any

import torch
from torch import Tensor

from .constant import constant
from .poisson_tail import cut_tail, differentiable_cut_tail
from .sums import product


def poisson_table(rate: Tensor, size: int, largest: float) -> Tensor:
    """The log-PMF of ``clip(X, 0, size - 1)``, ``(*batch, size)``.

    Args:
        rate: Positive, finite rates, ``(*batch, 1)``.
        size: How many atoms, at least 2 and at most ``LARGEST_CUT + 1``.
        largest: The largest rate.
    """
    return _PoissonTable.apply(rate, size, largest)


class _PoissonTable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rate: Tensor, size: int, largest: float) -> Tensor:
        ctx.size, cut = size, size - 1
        flat = rate.reshape(-1)
        log_rate, _, growth, tail = cut_tail(flat, cut, largest)
        features = torch.stack([torch.ones_like(flat), log_rate, flat, growth])
        table = product(features.t(), _rows(size, rate.dtype, rate.device))
        if largest > cut:  # there, the tail is the small difference of large numbers
            torch.where(flat > cut, tail, table[:, -1], out=table[:, -1])
        ctx.save_for_backward(rate, growth)
        return table.view(*rate.shape[:-1], size)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        rate, growth = ctx.saved_tensors
        flat = rate.reshape(-1)
        if torch.is_grad_enabled():  # what was kept is a number, this is a function
            growth = differentiable_cut_tail(flat, ctx.size - 1).growth
        rows = _rows_back(ctx.size, rate.dtype, rate.device)
        power, linear, last = product(rows, grad.reshape(-1, ctx.size).t())
        return (power / flat + linear + last * (-growth).exp()).view_as(rate), None, None


@constant
def _rows(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """What each feature contributes to each atom, ``(4, n)``; the last is the one before, grown."""
    k = torch.arange(size, dtype=dtype, device=device).clamp_max(size - 2)
    last = torch.zeros_like(k)
    last[-1] = 1.0
    return torch.stack([-torch.lgamma(k + 1), k, torch.full_like(k, -1.0), last])


@constant
def _rows_back(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """What a gradient of each atom contributes to those of log λ, of λ, and of the tail."""
    rows = _rows(size, dtype, device)[1:].clone()
    rows[:2, -1] = 0.0
    return rows
