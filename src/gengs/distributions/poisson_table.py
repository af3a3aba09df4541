r"""The table of a Poisson cut to 0 ... n - 1, by one matrix product.

.. math::
    \log \pi_k = k \log\lambda - \lambda - \ln\Gamma(k + 1), \quad k < a = n - 1, \qquad
    \log \pi_a = \log P(X \ge a)

A row of the table up to the tail (:mod:`poisson_tail`) is linear in three numbers,
:math:`(1, \log\lambda, \lambda)`, so the table is one matrix product instead of a dozen passes over
it, and so is the way back, with

.. math:: \partial_\lambda \log P(X \ge a) = P(X = a - 1) / P(X \ge a).
"""

from __future__ import annotations

__all__ = ["poisson_table"]

from typing import Any

import torch
from torch import Tensor

from .constant import constant
from .poisson_tail import CutTail, differentiable_cut_tail
from .sums import product


def poisson_table(rate: Tensor, size: int, log: CutTail) -> Tensor:
    """The log-PMF of ``clip(X, 0, size - 1)``, ``(*batch, size)``.

    Args:
        rate: Positive, finite rates, ``(*batch, 1)``.
        size: How many atoms, at least 2 and at most ``LARGEST_CUT + 1``.
        log: The logarithms of the rates, of their tails and so on, ``(*batch,)``.
    """
    return _PoissonTable.apply(rate, size, log)


class _PoissonTable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rate: Tensor, size: int, log: CutTail) -> Tensor:
        ctx.size = size
        log_rate, growth = log.rate.reshape(-1), log.growth.reshape(-1)
        features = torch.stack([torch.ones_like(log_rate), log_rate, log.of.reshape(-1)])
        table = product(features.t(), _rows(size, rate.dtype, rate.device))
        # not by the product: for a large rate, the tail is the small difference of large numbers
        table[:, -1] = log.tail.reshape(-1)
        ctx.save_for_backward(rate, log_rate, growth)
        return table.view(*rate.shape[:-1], size)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        rate, log_rate, growth = ctx.saved_tensors
        flat = rate.reshape(-1)
        if torch.is_grad_enabled():  # what was kept are numbers, these are functions
            _, log_rate, _, growth, _ = differentiable_cut_tail(flat, ctx.size - 1)
        rows = _rows_back(ctx.size, rate.dtype, rate.device)
        power, linear, last = product(rows, grad.reshape(-1, ctx.size).t())
        # λ b / T goes to the cut with the rate to 0, while b / T overflows
        power = torch.addcmul(power, last, (log_rate - growth).exp())
        return (power / flat + linear).view_as(rate), None, None


@constant
def _rows(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """What each feature contributes to each atom, ``(3, n)``."""
    k = torch.arange(size, dtype=dtype, device=device)
    return torch.stack([-torch.lgamma(k + 1), k, torch.full_like(k, -1.0)])


@constant
def _rows_back(size: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """What a gradient of each atom contributes to those of log λ, of λ, and of the tail."""
    _, k, minus_one = _rows(size, dtype, device)
    rows = torch.stack([k, minus_one, torch.zeros_like(k)])
    rows[:, -1] = torch.tensor([0.0, 0.0, 1.0], dtype=dtype, device=device)
    return rows
