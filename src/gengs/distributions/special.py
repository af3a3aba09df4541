r"""Logarithms that stay finite, and the tail of the Poisson, in log space, with its derivatives.

.. math:: \log P(\mathrm{Poisson}(\lambda) \ge a) = \log \tilde\gamma(a, \lambda)

Writing :math:`1 - \sum_k \pi_k` instead cancels (in float32, Poisson(5) past 30 atoms gives -1e-7
where the truth is 3e-14), and its logarithm is NaN.

The function iterates until it converges, which ``torch.compile`` and ``vmap`` cannot look into, so
its values are a custom operator: opaque to the compiler, with a fake kernel (shapes only) and a
batching rule. The derivatives are formulas in the parameters and in the function's own value, so
that every order exists. The same holds for the incomplete beta function (:mod:`beta_tail`).
"""

from __future__ import annotations

__all__ = ["batched", "log1mexp", "log_poisson_tail", "safe_log", "safe_log1p", "terms_to_add"]

import math
from typing import Any

import torch
from torch import Tensor

from .sums import sum_to
from .validation import inspectable

_SMALL = 64
"""Up to this many atoms the Poisson tail is a short series; past it, torch's ``gammainc``."""


def safe_log(x: Tensor) -> Tensor:
    """``log(x)`` with ``-inf`` at 0, whose gradient there is 0 instead of NaN."""
    zero = x == 0
    return x.masked_fill(zero, 1.0).log().masked_fill(zero, -torch.inf)


def safe_log1p(x: Tensor) -> Tensor:
    """``log(1 + x)`` with ``-inf`` at -1, whose gradient there is 0 instead of NaN."""
    edge = x == -1
    return x.masked_fill(edge, 0.0).log1p().masked_fill(edge, -torch.inf)


def log1mexp(log_p: Tensor) -> Tensor:
    """``log(1 - exp(log_p))`` for ``log_p <= 0``, accurate at both ends."""
    return torch.where(log_p > -math.log(2), (-torch.expm1(log_p)).log(), (-log_p.exp()).log1p())


# ------------------------------------------------------------------------------------ Poisson


def log_poisson_tail(a: Tensor, rate: Tensor, upper: bool) -> Tensor:
    """``log P(X >= a)`` of a Poisson where ``upper``, else ``log P(X < a)``; elementwise."""
    return _LogPoissonTail.apply(a, rate, upper)


class _LogPoissonTail(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(a: Tensor, rate: Tensor, upper: bool) -> Tensor:
        if inspectable(a, rate):  # the operator's first call would import torch's compiler
            return _poisson_tail_values(a, rate, upper)
        return _poisson_tail(a, rate, upper)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        a, rate, ctx.upper = inputs
        ctx.save_for_backward(a, rate, output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[None, Tensor, None]:
        a, rate, log_tail = ctx.saved_tensors
        # dP(X >= a)/drate = p(a - 1), and the opposite for the rest
        k, wide = (a - 1).clamp_min(0).to(rate.dtype), rate
        if not (inspectable(a) and a.numel() and bool(a.max() <= _SMALL)):
            k, wide = k.double(), rate.double()  # in float32 the terms of a large rate cancel
        log_slope = (k * safe_log(wide)).masked_fill(k == 0, 0.0) - wide - torch.lgamma(k + 1)
        flat = (log_tail == -torch.inf) | (a <= 0)
        slope = (log_slope - log_tail.masked_fill(flat, 0.0)).exp().masked_fill(flat, 0.0)
        slope = (slope if ctx.upper else -slope).to(rate.dtype)
        return None, sum_to(grad * slope, rate.shape), None


def _poisson_tail_values(a: Tensor, rate: Tensor, upper: bool) -> Tensor:
    a, shape = a.to(rate.dtype), torch.broadcast_shapes(a.shape, rate.shape)
    if shape.numel() == 0:
        return rate.new_empty(shape)
    rate = rate.expand(shape)
    by = _poisson_tail_by_series if a.max() <= _SMALL else _poisson_tail_by_gammainc
    sure = a <= 0  # every count is at least 0
    return by(a.clamp_min(1), rate, upper).masked_fill_(sure, 0.0 if upper else -torch.inf)


def _log_pmf_poisson(k: Tensor, rate: Tensor) -> Tensor:
    return torch.xlogy(k, rate) - rate - torch.lgamma(k + 1)


def _poisson_tail_by_series(a: Tensor, rate: Tensor, upper: bool) -> Tensor:
    """A tail as a sum of positive terms that start at the cut, outwards (Horner's scheme)."""
    # one cut for all elements, the usual case, is a plain number: half the work
    cut: Tensor | float = float(a) if a.numel() == 1 else a
    largest = max(float(a.max()), 1.0)
    one = torch.ones_like(rate)
    # P(X >= a) = p(a) (1 + rate/(a+1) (1 + rate/(a+2) (1 + ...))), for rate <= a
    total, top = one, float(rate.max())
    all_rise = isinstance(cut, float) and top <= cut  # the usual case: every rate below the cut
    low_rate = rate if all_rise else rate.minimum(a)
    ratio = top / (largest + 1) if all_rise else float((low_rate / (a + 1)).max())
    terms = terms_to_add(ratio, largest, rate.dtype)
    for j in range(terms, 0, -1):
        total = _one_plus_product(one, total, low_rate, 1 / (cut + j))
    # a >= 1 here, so that 0 · log 0 cannot occur, and log is five times as fast as xlogy
    log_first = a * rate.log() - rate - torch.lgamma(a + 1)
    upward = (log_first + total.log()).clamp_max(0)
    if all_rise:
        return upward if upper else log1mexp(upward)
    rising = rate <= a
    # P(X < a) = p(a-1) (1 + (a-1)/rate (1 + (a-2)/rate (1 + ...))), for rate > a
    inverse, total = 1 / rate.maximum(a).clamp_min(1e-30), one
    for j in range(min(terms_to_add(1.0, largest, rate.dtype), int(largest)), 0, -1):
        factor = max(cut - j, 0.0) if isinstance(cut, float) else (cut - j).clamp_min(0)
        total = _one_plus_product(one, total, inverse, factor)
    downward = (_log_pmf_poisson(a - 1, rate) + total.log()).clamp_max(0)
    if upper:
        return torch.where(rising, upward, log1mexp(downward))
    return torch.where(rising, log1mexp(upward), downward)


def terms_to_add(ratio: float, a: float, dtype: torch.dtype) -> int:
    """How many terms until they fall below the rounding error, if none falls slower than these.

    The j-th term is the product of ``ratio * (a + 1) / (a + i)`` for i up to j.
    """
    small = torch.finfo(dtype).eps / 8
    if not ratio < 1:  # NaN as well: any number of them will do
        ratio = 1.0
    terms, term = 1, ratio
    while term > small:
        terms += 1
        term *= ratio * (a + 1) / (a + terms)
    return terms


def _one_plus_product(one: Tensor, x: Tensor, y: Tensor, z: Tensor | float) -> Tensor:
    if isinstance(z, float):
        return torch.addcmul(one, x, y, value=z)
    return torch.addcmul(one, x, y * z)


def _poisson_tail_by_gammainc(a: Tensor, rate: Tensor, upper: bool) -> Tensor:
    a64, rate64 = a.double(), rate.double()
    # Where even float64 underflows, the first term and its geometric continuation are enough.
    if upper:
        tail = torch.special.gammainc(a64, rate64).log()
        first, ratio = a64, rate64 / (a64 + 1)
    else:
        tail = torch.special.gammaincc(a64, rate64).log()
        first, ratio = a64 - 1, (a64 - 1) / rate64
    beyond = _log_pmf_poisson(first, rate64) - (-ratio.clamp_max(1 - 1e-9)).log1p()
    return torch.where(tail < -700, beyond.clamp_max(-700), tail).to(rate.dtype)


_poisson_tail = torch.library.custom_op(
    "gengs::poisson_tail", _poisson_tail_values, mutates_args=()
)


@_poisson_tail.register_fake
def _(a: Tensor, rate: Tensor, upper: bool) -> Tensor:
    return torch.empty_like(rate).expand(torch.broadcast_shapes(a.shape, rate.shape)).contiguous()


# ---------------------------------------------------------------------------------- batching


def batched(in_dims: tuple[int | None, ...], tensors: tuple[Tensor, ...]) -> list[Tensor]:
    """The mapped dimension first in every tensor, with room for broadcasting behind it."""
    rank = max(t.dim() - (d is not None) for t, d in zip(tensors, in_dims, strict=True))
    moved = []
    for t, d in zip(tensors, in_dims, strict=True):
        t = t.unsqueeze(0) if d is None else t.movedim(d, 0)
        moved.append(t.reshape(t.shape[:1] + (1,) * (rank - t.dim() + 1) + t.shape[1:]))
    return moved


@_poisson_tail.register_vmap
def _(info: Any, in_dims: Any, a: Tensor, rate: Tensor, upper: bool) -> tuple[Tensor, int]:
    a, rate = batched(in_dims[:2], (a, rate))
    return _poisson_tail(a, rate, upper), 0
