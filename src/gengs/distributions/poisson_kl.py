r"""The divergence of two Poissons that are cut to 0 ... a alike, without a table.

With the tail :math:`T = P(X \ge a)`, the atom before it, :math:`b = P(X = a - 1)`, their likes
:math:`U, c` of the other law, and :math:`r = \log(\lambda / \mu)`,

.. math::
    \mathrm{KL} &= \lambda r\, (1 - T - b) - (\lambda - \mu)(1 - T) + T \log \frac TU \\
    \partial_\lambda \mathrm{KL} &= r\, (1 - T - b) + b\, \log \frac{T / b}{U / c}

The first is :math:`\sum_k \pi_k \log(\pi_k / \rho_k)`, where
:math:`\log(\pi_k / \rho_k) = k r - (\lambda - \mu)` below the cut and
:math:`\sum_{k < a} k\, p(k) = \lambda P(X < a - 1)`; the second follows from
:math:`\partial_\lambda p(k) = p(k - 1) - p(k)` by summation by parts.
"""

from __future__ import annotations

__all__ = ["cut_poisson_kl"]

from typing import Any, cast

import torch
from torch import Tensor
from torch.distributions import Poisson

from .poisson_tail import CutTail, differentiable_cut_tail
from .sums import sum_to
from .truncated import Truncated
from .validation import ordinary


def cut_poisson_kl(q: Truncated, p: Truncated) -> Tensor | None:
    """The divergence, or ``None`` where the tables must be asked."""
    cut = q.poisson_cut
    if cut is None or cut != p.poisson_cut or q.has_table:  # who has the table follows it
        return None
    rate, other = cast(Poisson, q.source).rate, cast(Poisson, p.source).rate
    if other.requires_grad or rate.dtype != p.dtype or not ordinary(rate, other):
        return None
    tail = q.poisson_tail
    if tail is None or not other.numel() or not p.all_possible:
        return None
    return _CutPoissonKL.apply(rate, other, *p.poisson_constants, cut, tail)


class _CutPoissonKL(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        rate: Tensor,
        other: Tensor,
        log_other: Tensor,
        other_tail: Tensor,
        other_growth: Tensor,
        cut: int,
        tail: CutTail,
    ) -> Tensor:
        constants = other, log_other, other_tail, other_growth
        kl, slope = _value_and_slope(tail, *constants)
        ctx.save_for_backward(rate, slope, *constants)
        ctx.cut = cut
        return kl

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        rate, slope, *constants = ctx.saved_tensors
        if torch.is_grad_enabled():  # the slope that was kept is a number, this one a function
            _, slope = _value_and_slope(differentiable_cut_tail(rate, ctx.cut), *constants)
        return sum_to(grad * slope, rate.shape), *[None] * 6


def _value_and_slope(
    log: CutTail,
    other: Tensor,
    log_other: Tensor,
    other_tail: Tensor,
    other_growth: Tensor,
) -> tuple[Tensor, Tensor]:
    """The divergence and its slope, from logarithms of this law and those of the other."""
    rate, before, tail = log.of, log.before.exp(), log.tail.exp()
    below = -torch.expm1(log.tail)  # 1 - tail, also where that is small
    inner = (log.rate - log_other) * (below - before)
    kl = torch.addcmul(inner * rate, rate - other, below, value=-1)
    kl = torch.addcmul(kl, tail, log.tail - other_tail)
    return kl, torch.addcmul(inner, before, log.growth - other_growth)
