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

__all__ = ["Interval", "compare"]

from typing import Any

import torch
from torch import Tensor

from ..numerics.autograd_function import AutogradFunction
from ..numerics.once_differentiable import refuse_derivative
from .noise import Uniform


class _Bounds:
    """The interval in which each uniform number lies, once all comparisons are known."""

    def __init__(self, size: int) -> None:
        self._size, self.number = size, 0
        self._waiting: list[tuple[Tensor, Tensor, Tensor | None]] = []
        self._known: tuple[Tensor, Tensor] = torch.zeros(()), torch.ones(())

    def add(self, p: Tensor, below: Tensor, index: Tensor | None) -> None:
        self._waiting.append((p.detach(), below, index))
        self.number += 1

    def interval(self) -> tuple[Tensor, Tensor]:
        """Lower and upper ends, ``(size,)`` each."""
        for p, below, index in self._waiting:
            if not self._known[0].dim():
                self._known = _everything(p, self._size)
            self._known = _narrow(*self._known, p, below, index)
        self._waiting.clear()
        return self._known


class Interval:
    """What one comparison of uniform numbers tells: the law of a draw, as a block keeps it."""

    batch_shape = event_shape = torch.Size()

    def __init__(self, uniform: Uniform, which: int) -> None:
        self._uniform, self._which = uniform, which

    def log_width(self) -> Tensor:
        """What the comparison adds to the log-probability: each number that it met once."""
        comparisons = self._uniform.comparisons[: self._which + 1]
        p = comparisons[-1][0]
        low, high = _everything(p, self._uniform.size)
        before, tiny, dtype = low.new_zeros(()), torch.finfo(torch.float64).tiny, p.dtype
        for k, (p, below, index) in enumerate(comparisons):
            if k == self._which:
                before = (high - low).clamp_min(tiny).log()
            low, high = _narrow(low, high, p, below, index)
        added = ((high - low).clamp_min(tiny).log() - before).to(dtype)
        one_each = _without_repeats(index)
        return added.reshape(self._uniform.shape) if one_each is None else added[one_each]


def _without_repeats(index: Tensor | None) -> Tensor | None:
    """Indices without the dimensions along which they were repeated; ``None`` if some still are."""
    if index is None:
        return None
    for dim in range(index.dim()):
        first = index.narrow(dim, 0, 1)
        if index.shape[dim] > 1 and bool((index == first).all()):
            index = first
    return index if index.unique().numel() == index.numel() else None


def _everything(p: Tensor, size: int) -> tuple[Tensor, Tensor]:
    # thresholds may come in several precisions, and are compared with each other
    return p.new_zeros(size, dtype=torch.float64), p.new_ones(size, dtype=torch.float64)


def _narrow(
    low: Tensor, high: Tensor, p: Tensor, below: Tensor, index: Tensor | None
) -> tuple[Tensor, Tensor]:
    """The interval once it is known which thresholds ``p`` the numbers are below."""
    p, below = p.flatten().to(low.dtype), below.flatten()
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
) -> tuple[Tensor, Interval | None]:
    """Note a comparison: ``below`` tells whether the uniform number is less than ``p``.

    Args:
        uniform: The numbers.
        index: Which of them each element of ``below`` is; ``None``: each is its own.
        p: The thresholds.
        below: The outcome.

    Returns:
        The outcome as a number that moves with ``p``, and the interval, which is ``None`` for a
        plain Bernoulli draw.
    """
    p = torch.as_tensor(p, device=below.device)
    if not p.is_floating_point():
        p = p.to(torch.get_default_dtype())
    p = p.clamp(0.0, 1.0).expand(below.shape)
    if index is not None:
        index = index.expand(below.shape)
    elif below.shape != uniform.shape:
        index = torch.arange(uniform.size, device=below.device).reshape(uniform.shape)
        index = index.expand(below.shape)
    uniform.comparisons.append((p, below, index))
    if uniform.bounds is None:
        uniform.bounds = _Bounds(uniform.size)
    uniform.bounds.add(p, below, index)
    plain = len(uniform.comparisons) == 1 and index is None
    interval = None if plain else Interval(uniform, len(uniform.comparisons) - 1)
    z = below.to(p.dtype)
    return (_Threshold.apply(z, p, uniform.bounds, index) if p.requires_grad else z), interval


class _Threshold(AutogradFunction):
    @staticmethod
    def forward(z: Tensor, p: Tensor, bounds: _Bounds, index: Tensor | None) -> Tensor:
        return z.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:2])
        ctx.bounds, ctx.index = inputs[2:]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, p = ctx.saved_tensors
        if ctx.bounds.number == 1 and ctx.index is None:
            # a Bernoulli draw, whose slope may be differentiated again
            edge = (spread := p * (1 - p)) == 0
            inside = (z * (1 - p) + (1 - z) * p) / spread.masked_fill(edge, 1.0) / 2
            return None, grad * torch.where(edge, 1.0, inside), None, None
        low, high = ctx.bounds.interval()
        index = slice(None) if ctx.index is None else ctx.index.flatten()
        low, high = low[index].reshape(p.shape), high[index].reshape(p.shape)
        beside = ((p == low) | (p == high)).to(low.dtype)
        share = torch.where((p <= 0) | (p >= 1), 1.0, 0.5)  # at the edge there is one side only
        slope = share * beside / (high - low).clamp_min(torch.finfo(low.dtype).tiny)
        slope = grad * slope.detach().to(grad.dtype)
        if torch.is_grad_enabled():
            slope = refuse_derivative(slope, NOT_TWICE, p)
        return None, slope, None, None


NOT_TWICE = (
    "one uniform number compared with several thresholds has no second derivative; draw by "
    "torch.bernoulli or torch.multinomial, whose slopes have closed forms."
)
