r"""One uniform number and several thresholds: an ordered category.

``u < p`` is a Bernoulli draw. Compared with thresholds :math:`p_1, \dots, p_n` (a CDF, say), the
same number gives booleans that depend on each other: what is drawn is the interval
:math:`(a, b)` between two neighbouring thresholds, with probability :math:`b - a`.

*Score.* Each comparison narrows the interval, from :math:`(a, b)` to :math:`(a', b')`, and adds
:math:`\log(b' - a') - \log(b - a)`; the thresholds may depend on earlier outcomes.

*Path.* If a threshold moves, probability flows between the two intervals beside it, so the boolean
of that threshold moves by :math:`\tfrac12 / (b - a)` if the number fell beside it, and not at
all if it fell elsewhere: the mid-CDF rule on the line of the intervals. Which interval it is in the
end is known when the program has ended, on the way back.
"""

from __future__ import annotations

__all__ = ["compare", "log_width"]

from typing import Any

import torch
from torch import Tensor

from .noise import Uniform


class _Bounds:
    """The interval in which each uniform number lies, as far as is known."""

    def __init__(self, size: int, like: Tensor) -> None:
        self.low, self.high = like.new_zeros(size), like.new_ones(size)
        self.comparisons = 0


def _narrow(
    low: Tensor, high: Tensor, p: Tensor, below: Tensor, index: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The interval once it is known which thresholds ``p`` the numbers are below."""
    p, below = p.flatten(), below.flatten()
    over, under = torch.where(below, 0.0, p), torch.where(below, p, 1.0)
    if index is None:
        return torch.maximum(low, over), torch.minimum(high, under)
    where = index.flatten()
    return (
        low.scatter_reduce(0, where, over, "amax", include_self=True),
        high.scatter_reduce(0, where, under, "amin", include_self=True),
    )


def compare(
    uniform: Uniform, index: Tensor | None, p: Any, below: Tensor
) -> Tensor | None:
    """A boolean ``below`` (the number is less than ``p``) as a number that moves with ``p``.

    ``index`` tells which of the uniform numbers each element is, ``None``: one each. With a
    threshold that carries no gradient, only the interval is noted.
    """
    p = torch.as_tensor(p, device=below.device)
    if not p.is_floating_point():
        p = p.to(torch.get_default_dtype())
    p = p.clamp(0.0, 1.0).expand(below.shape)
    if index is not None:
        index = index.expand(below.shape)
    elif below.numel() != uniform.size:
        index = torch.arange(uniform.size).reshape(uniform.shape).expand(below.shape)
    uniform.comparisons.append((p, below, index))
    if uniform.bounds is None:
        uniform.bounds = _Bounds(uniform.size, p.detach())
    bounds: _Bounds = uniform.bounds
    with torch.no_grad():
        bounds.low, bounds.high = _narrow(bounds.low, bounds.high, p.to(bounds.low.dtype), below, index)
    bounds.comparisons += 1
    if not p.requires_grad:
        return None
    z: Tensor = _Threshold.apply(below.to(p.dtype), p, bounds, index)
    return z


class _Threshold(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, z: Tensor, p: Tensor, bounds: _Bounds, index: Tensor | None) -> Tensor:
        ctx.save_for_backward(z, p)
        ctx.bounds, ctx.index = bounds, index
        return z.clone()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, p = ctx.saved_tensors
        bounds = ctx.bounds
        if bounds.comparisons == 1 and ctx.index is None:
            # a Bernoulli draw, whose slope may be differentiated again
            q = 1 - p
            edge = (spread := p * q) == 0
            slope = torch.where(edge, 1.0, (z * q + (1 - z) * p) / spread.masked_fill(edge, 1.0) / 2)
            return None, grad * slope, None, None
        index = slice(None) if ctx.index is None else ctx.index.flatten()
        low, high = bounds.low[index].reshape(p.shape), bounds.high[index].reshape(p.shape)
        beside = ((p == low) | (p == high)).to(p.dtype)
        half = torch.where((p <= 0) | (p >= 1), 1.0, 0.5)
        slope = half * beside / (high - low).clamp_min(torch.finfo(p.dtype).tiny)
        return None, grad * slope.detach(), None, None


def log_width(uniform: Uniform, which: int) -> Tensor:
    """What the comparison number ``which`` adds to the log-probability, in the numbers' shape."""
    p = uniform.comparisons[which][0]
    low, high = p.new_zeros(uniform.size), p.new_ones(uniform.size)
    before = torch.zeros((), dtype=p.dtype, device=p.device)
    tiny = torch.finfo(p.dtype).tiny
    for k, (p, below, index) in enumerate(uniform.comparisons[: which + 1]):
        if k == which:
            before = (high - low).clamp_min(tiny).log()
        low, high = _narrow(low, high, p.to(low.dtype), below, index)
    return ((high - low).clamp_min(tiny).log() - before).reshape(uniform.shape)
