r"""The table of a Poisson cut to 0 ... n - 1, by one matrix product.

.. math::
    \log \pi_k = k \log\lambda - \lambda - \ln\Gamma(k + 1), \quad k < a = n - 1, \qquad
    \log \pi_a = \log P(X \ge a)

With the tail over its first term, :math:`t = P(X \ge a) / p(a)`, a row of the table is linear in
four numbers, :math:`(\log\lambda, \lambda, \log t, 1)`, so the table is one matrix product instead
of a dozen passes over it, and so is the way back. For a rate below the cut, :math:`t` is a short
series:

.. math::
    t = 1 + \frac{\lambda}{a + 1} \Big(1 + \frac{\lambda}{a + 2} (1 + \dots)\Big), \qquad
    \partial_\lambda \log t = \frac{a}{\lambda} \Big(\frac1t - 1\Big) + 1
"""

from __future__ import annotations

__all__ = ["LARGEST_CUT", "poisson_table", "tail_over_first"]

import math
from typing import Any

import torch
from torch import Tensor

from .constant import constant
from .special import log_poisson_tail, terms_to_add
from .sums import product

LARGEST_CUT = 64
"""Past this integer, ``k log λ`` loses more than four digits of the PMF in ``float32``."""


def poisson_table(rate: Tensor, size: int, largest: float) -> Tensor:
    """The log-PMF of ``clip(X, 0, size - 1)``, ``(*batch, size)``.

    Args:
        rate: Positive rates, ``(*batch, 1)``.
        size: How many atoms, at least 2 and at most ``LARGEST_CUT + 1``.
        largest: The largest rate.
    """
    return _PoissonTable.apply(rate, size, largest)


class _PoissonTable(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rate: Tensor, size: int, largest: float) -> Tensor:
        cut = size - 1
        ctx.size, ctx.relative = size, largest <= cut
        flat = rate.reshape(-1)
        # features are rows, written where they belong: no copy to put columns side by side
        features = flat.new_empty(4, len(flat))
        one, log_rate, same, top = features
        one.fill_(1.0)
        torch.log(flat, out=log_rate)
        same.copy_(flat)
        if ctx.relative:
            torch.log(tail_over_first(flat, cut, largest), out=top)
        else:  # against a first term of exp(-rate), the tail itself would be lost in rounding
            top.copy_(log_poisson_tail(flat.new_tensor([cut]), flat, True))
        table = product(features.t(), _rows(size, ctx.relative, rate.dtype, rate.device))
        ctx.save_for_backward(rate, top)
        return table.view(*rate.shape[:-1], size)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        rate, top = ctx.saved_tensors
        cut, flat = ctx.size - 1, rate.reshape(-1)
        if torch.is_grad_enabled():  # what was kept is a number, this is a function
            top = log_poisson_tail(flat.new_tensor([cut]), flat, True)
            top = top - _log_pmf(cut, flat) if ctx.relative else top
        rows = _rows(ctx.size, ctx.relative, rate.dtype, rate.device)
        _, power, linear, to_top = product(rows, grad.reshape(-1, ctx.size).t())
        if ctx.relative:
            power = torch.addcmul(power, to_top, torch.expm1(-top), value=cut)
        else:
            to_top = to_top * (_log_pmf(cut - 1, flat) - top).exp()
        return (power / flat + linear + to_top).view_as(rate), None, None


def _log_pmf(k: int, rate: Tensor) -> Tensor:
    return k * rate.log() - rate - math.lgamma(k + 1)


def tail_over_first(rate: Tensor, cut: int, largest: float, scale: float = 1.0) -> Tensor:
    """The series :math:`t`, times ``scale``, by Horner's scheme; no rate may exceed the cut."""
    total = first = torch.full_like(rate, scale)
    for j in range(terms_to_add(largest / (cut + 1), cut, rate.dtype), 0, -1):
        total = torch.addcmul(first, total, rate, value=1 / (cut + j))
    return total


@constant
def _rows(size: int, relative: bool, dtype: torch.dtype, device: torch.device) -> Tensor:
    """What each feature contributes to each atom, ``(4, n)``.

    To the last atom: the tail over its first term and that term, or (not ``relative``) the tail.
    """
    k = torch.arange(size, dtype=dtype, device=device)
    rows = torch.stack([-torch.lgamma(k + 1), k, torch.full_like(k, -1.0), torch.zeros_like(k)])
    if not relative:
        rows[:, -1] = 0.0
    rows[3, -1] = 1.0
    return rows
