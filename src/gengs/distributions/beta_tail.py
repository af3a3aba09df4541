r"""The tails of binomials and negative binomials, in log space, with their derivatives.

.. math::
    \log P(\mathrm{Binomial}(N, p) \ge a) &= \log I_p(a, N - a + 1) \\
    \log P(\mathrm{NegativeBinomial}(r, p) \ge a) &= \log I_p(a, r)

torch has no incomplete beta function :math:`I_x(a, b)`. Here it is a continued fraction (Lentz's
algorithm); where :math:`a` is a small integer and the tail is not rare, the short sum of what is
below. Like the Poisson's tail (:mod:`special`) it is a custom operator.
"""

from __future__ import annotations

__all__ = ["log_beta_tail"]

import math
from typing import Any

import torch
from torch import Tensor

from .special import batched, log1mexp
from .sums import sum_to
from .validation import inspectable

_FEW = 64
"""Up to this many terms, the sum below is shorter than the fraction."""


def log_beta_tail(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tensor:
    r"""``log I_x(a, b)``, the regularised incomplete beta function, ``y = 1 - x``; elementwise.

    Its gradient goes into ``log_x`` alone (as ``y`` is a function of ``x``), none into ``a, b``.
    """
    return _LogBetaTail.apply(a, b, log_x, log_y)


class _LogBetaTail(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tensor:
        if inspectable(a, b, log_x, log_y):
            return _beta_tail_values(a, b, log_x, log_y)
        return _beta_tail(a, b, log_x, log_y)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, None, Tensor, None]:
        a, b, log_x, log_y, log_tail = ctx.saved_tensors
        known = torch.isfinite(log_tail) & torch.isfinite(log_x) & torch.isfinite(log_y)
        known = known & (a > 0) & (b > 0)
        a, b = a.where(known, 1.0), b.where(known, 1.0)
        log_beta = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
        # dI/dlog x = x^a y^(b-1) / B(a, b)
        log_slope = a * log_x.where(known, 0.0) + (b - 1) * log_y.where(known, 0.0) - log_beta
        slope = (log_slope - log_tail.where(known, 0.0)).exp().where(known, 0.0)
        return None, None, sum_to(grad * slope, log_x.shape), None


def _beta_tail_values(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tensor:
    dtype = log_x.dtype
    cut = float(a) if a.numel() == 1 else math.nan
    parts = [t.double() for t in torch.broadcast_tensors(a, b, log_x, log_y)]
    if not (cut.is_integer() and 0 < cut <= _FEW):
        return _beta_tail_by_fraction(*parts).to(dtype)
    below = _beta_below(int(cut), *parts[1:])
    tail = torch.log1p(-below)
    # where nearly all is below, the difference to 1 has few digits; where it is NaN, none
    rare = ~(below < 1 - 1e-5)
    if rare.any():
        tail[rare] = _beta_tail_by_fraction(*(part[rare] for part in parts))
    return tail.to(dtype)


def _beta_below(a: int, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tensor:
    r"""``1 - I_x(a, b)`` for a small integer: :math:`\sum_{k < a} \binom{b + k - 1}{k} x^k y^b`."""
    x = log_x.exp()
    term = total = (b * log_y).exp()
    for k in range(1, a):
        term = term * x * ((b + (k - 1)) / k)
        total = total + term
    return total


def _beta_tail_by_fraction(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tensor:
    sure = (a <= 0) | ((log_y == -torch.inf) & (b > 0))
    never = ~sure & ((b <= 0) | (log_x == -torch.inf))
    a, b = a.where(~(sure | never), 1.0), b.where(~(sure | never), 1.0)
    log_x, log_y = log_x.where(~(sure | never), -0.6931), log_y.where(~(sure | never), -0.6931)
    # the fraction converges fast on this side of the mean; else take the other tail's complement
    direct = log_x.exp() < (a + 1) / (a + b + 2)
    first, second = torch.where(direct, a, b), torch.where(direct, b, a)
    log_1, log_2 = torch.where(direct, log_x, log_y), torch.where(direct, log_y, log_x)
    log_beta = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
    front = first * log_1 + second * log_2 - first.log() - log_beta
    tail = (front + _beta_fraction(first, second, log_1.exp()).log()).clamp_max(0)
    tail = torch.where(direct, tail, log1mexp(tail))
    return tail.masked_fill(never, -torch.inf).masked_fill(sure, 0.0)


def _beta_fraction(a: Tensor, b: Tensor, x: Tensor, accuracy: float = 1e-14) -> Tensor:
    """The continued fraction of the incomplete beta function, by the modified Lentz algorithm."""
    tiny = 1e-300
    c = torch.ones_like(x)
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / torch.where(d.abs() < tiny, tiny, d)
    value = d
    if x.numel() == 0:
        return value
    for m in range(1, 100_000):
        for coefficient in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 + coefficient * d
            c = 1 + coefficient / c
            d = 1 / torch.where(d.abs() < tiny, tiny, d)
            c = torch.where(c.abs() < tiny, tiny, c)
            value = value * d * c
        if m % 8 == 0 and not ((c * d - 1).abs() > accuracy).any():  # NaN ends it too
            break
    return value


_beta_tail = torch.library.custom_op("gengs::beta_tail", _beta_tail_values, mutates_args=())


@_beta_tail.register_fake
def _(a: Tensor, b: Tensor, log_x: Tensor, log_y: Tensor) -> Tensor:
    shape = torch.broadcast_shapes(a.shape, b.shape, log_x.shape, log_y.shape)
    return torch.empty_like(log_x).expand(shape).contiguous()


@_beta_tail.register_vmap
def _(info: Any, in_dims: Any, *tensors: Tensor) -> tuple[Tensor, int]:
    return _beta_tail(*batched(in_dims, tensors)), 0
