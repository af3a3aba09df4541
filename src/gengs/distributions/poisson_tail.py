r"""The tail of a Poisson beyond a cut, by the series that is short.

With the atom before the cut, :math:`b = P(X = a - 1)`, the tail :math:`T = P(X \ge a)` is, for a
rate up to the cut,

.. math::
    \frac Tb = \frac\lambda a \Big(1 + \frac\lambda{a + 1} \Big(1 + \frac\lambda{a + 2}
    (1 + \dots)\Big)\Big)

and for a rate above it

.. math:: T = 1 - b \Big(1 + \frac{a - 1}\lambda \Big(1 + \frac{a - 2}\lambda (1 + \dots)\Big)\Big).

All is kept as logarithms: for a large rate :math:`b` underflows, and so does :math:`T` for a small
one.
"""

from __future__ import annotations

__all__ = ["LARGEST_CUT", "CutTail", "cut_tail", "differentiable_cut_tail"]

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .special import log_poisson_tail, terms_to_add

LARGEST_CUT = 64
"""Past this integer, ``k log λ`` loses more than four digits of the PMF in ``float32``."""


class CutTail(NamedTuple):
    """Rates, and logarithms that belong to them."""

    of: Tensor
    """The rates that were looked at; they do not change when a parameter is changed in place."""
    rate: Tensor
    r""":math:`\log \lambda`"""
    before: Tensor
    r""":math:`\log b`, of the atom before the cut."""
    growth: Tensor
    r""":math:`\log(T / b)`"""
    tail: Tensor
    r""":math:`\log T`"""


def cut_tail(rate: Tensor, cut: int, largest: float) -> CutTail:
    """The tail of each rate, as numbers.

    Args:
        rate: Positive, finite rates, without gradient.
        cut: The integer a, at least 1.
        largest: The largest rate.
    """
    rate = rate.clone()
    log_rate = rate.log()
    before = torch.add(-math.lgamma(cut) - rate, log_rate, alpha=cut - 1)
    if largest <= cut:
        growth = _upward(rate, cut, largest).log_()
        return CutTail(rate, log_rate, before, growth, growth + before)
    # to pick out the rates above, which are few, takes longer than to do for all what they need
    above = rate > cut
    tail_above = torch.log1p(-before.exp() * _downward(rate.clamp_min(cut), cut))
    growth = _upward(rate.clamp_max(cut), cut, cut).log_()
    growth = (tail_above - before).where(above, growth)
    return CutTail(rate, log_rate, before, growth, tail_above.where(above, growth + before))


def differentiable_cut_tail(rate: Tensor, cut: int) -> CutTail:
    """The same, composed of operations that torch can differentiate."""
    log_rate = rate.log()
    before = (cut - 1) * log_rate - rate - math.lgamma(cut)
    tail = log_poisson_tail(rate.new_tensor(cut), rate, True)
    return CutTail(rate, log_rate, before, tail - before, tail)


def _upward(rate: Tensor, cut: int, largest: float) -> Tensor:
    """``T / b`` of rates up to the cut, by Horner's scheme."""
    first = torch.full_like(rate, 1 / cut)
    total = first.clone()
    for j in range(terms_to_add(largest / (cut + 1), cut, rate.dtype), 0, -1):
        torch.addcmul(first, total, rate, value=1 / (cut + j), out=total)
    return total.mul_(rate)


def _downward(rate: Tensor, cut: int) -> Tensor:
    """``(1 - T) / b`` of rates above the cut: all terms there are."""
    inverse, one = 1 / rate, torch.ones_like(rate)
    total = one.clone()
    for k in range(1, cut):
        torch.addcmul(one, total, inverse, value=k, out=total)
    return total
