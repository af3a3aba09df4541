r"""The mid rule of one-hot vectors: the gradient of an exact draw of K categories.

With :math:`p = \mathrm{softmax}(\theta)`, the drawn category b, the gradient G of the cost at the
draw, and its mean :math:`\bar G = p \cdot G`,

.. math::
    \frac{dL}{d\theta} = (1 - w)\, p \odot (G - \bar G) + w\, (z - p)(G_b - \bar G)

where :math:`w = 1/2` is the mid rule (exact for quadratic costs; ReinMax of Liu et al., 2023) and
:math:`w = 0` plain straight-through. The first term is what flows out of the draw, seen in all K
directions at once; the second what flows into it, seen in one draw of :math:`1/p_b`: of many
categories it is mostly noise, and gets less weight (:mod:`gengs.laws.inflow_weight`). Two passes
over the table and a dot product; what is kept for the way back is p and the index.
"""

from __future__ import annotations

__all__ = ["attach_one_hot", "one_hot_vectors"]

from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..numerics.attach import attach_gradient, nonzero
from ..numerics.autograd_function import AutogradFunction
from .inflow_weight import inflow_weight


def attach_one_hot(
    index: Tensor,
    fixed: Tensor,
    *,
    logits: Tensor | None = None,
    probs: Tensor | None = None,
    weight: float | None = None,
) -> Tensor:
    """One-hot vectors ``(*sample, *batch, K)`` that move with the law they were drawn from.

    Args:
        index: The categories that were drawn, ``(*sample, *batch)``.
        fixed: The probabilities they were drawn with, ``(*batch, K)``, without gradient.
        logits: The parameter that moves them, ``(*batch, K)``, or
        probs: normalised probabilities.
        weight: The weight w of the second term; by default :func:`inflow_weight`.
    """
    weight = inflow_weight(fixed.shape[-1]) if weight is None else weight
    if logits is not None:
        result: Tensor = _ByLogits.apply(logits, fixed, index.unsqueeze(-1), weight)
        return result
    if probs is None:
        raise TypeError("attach_one_hot expects one of `probs` and `logits`.")
    return attach_gradient((partial(_by_probs, weight),), one_hot_vectors(index, fixed), probs)


def _by_probs(weight: float, g: Tensor, z: Tensor, p: Tensor) -> Tensor:
    ratio = torch.where(p == 0, 1.0, z / nonzero(p))  # impossible: the whole one-sided slope
    mean = (p * g).sum(-1, keepdim=True)
    return (1 - weight) * g + weight * ratio * (g - mean)


def one_hot_vectors(index: Tensor, like: Tensor) -> Tensor:
    """Vectors ``(*index.shape, K)`` of indices, in the type of ``like``, ``(..., K)``.

    NaN probabilities draw an index beyond the last: their vector has a NaN.
    """
    n, index = like.shape[-1], index.unsqueeze(-1)
    one = like.new_ones(()).where(index < n, torch.nan)
    return like.new_zeros(*index.shape[:-1], n).scatter(-1, index.clamp_max(n - 1), one)


class _ByLogits(AutogradFunction):
    @staticmethod
    def forward(logits: Tensor, p: Tensor, index: Tensor, weight: float) -> Tensor:
        return one_hot_vectors(index.squeeze(-1), p)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        logits, p, index, ctx.weight = inputs
        ctx.save_for_backward(logits, p, index)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, p, index = ctx.saved_tensors
        w = ctx.weight
        if torch.is_grad_enabled():  # to be differentiated again, through the draw too
            z = _ByLogits.apply(logits, p, index, w)
            p = logits.softmax(-1)
            centred = grad - (p * grad).sum(-1, keepdim=True)
            inflow = z * centred  # linear in the draw: then the second derivative is right
            slope = (1 - w) * p * centred + w * (inflow - p * inflow.sum(-1, keepdim=True))
        else:
            mean = (p * grad).sum(-1, keepdim=True)
            index = index.clamp_max(p.shape[-1] - 1)
            up = w * (grad.gather(-1, index) - mean)
            slope = p * ((1 - w) * (grad - mean) - up)
            slope = slope.scatter_add(-1, index, up)
        return slope.sum_to_size(logits.shape).to(logits.dtype), None, None, None
