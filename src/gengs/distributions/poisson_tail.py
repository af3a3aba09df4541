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

The series take some forty passes over the rates. In ``float32``, :math:`\log(T / b\lambda)` below
the cut and :math:`\log T` above it are looked up in a list of parabolas instead, 32 for each unit
of the rate. These were fitted to the series in ``float64``, and are nearer to it than the rounding.
"""

from __future__ import annotations

__all__ = ["LARGEST_CUT", "CutTail", "cut_tail", "differentiable_cut_tail"]

import math
from typing import NamedTuple

import torch
from torch import Tensor

from .constant import constant
from .special import log_poisson_tail, terms_to_add

LARGEST_CUT = 64
"""Past this integer, ``k log λ`` loses more than four digits of the PMF in ``float32``."""

_PIECES = 32
"""Parabolas for each unit of the rate."""

_REACH = 4
"""There are parabolas for rates up to so many times the cut."""


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
    if rate.dtype == torch.float32 and largest < _REACH * cut:
        found = _looked_up(rate, cut)
    else:
        found = _from_series(rate, before, cut, largest)
    growth = found + log_rate
    if largest < cut:
        return CutTail(rate, log_rate, before, growth, growth + before)
    # to pick out the rates above, which are few, takes longer than to do for all what they need
    above = rate >= cut
    growth = (found - before).where(above, growth)
    return CutTail(rate, log_rate, before, growth, found.where(above, growth + before))


def _from_series(rate: Tensor, before: Tensor, cut: int, largest: float) -> Tensor:
    """Below the cut ``log(T / bλ)``, from it on ``log T``."""
    lower = _upward(rate.clamp_max(cut), cut, min(largest, cut)).log_()
    if largest < cut:
        return lower
    upper = torch.log1p(-before.exp() * _downward(rate.clamp_min(cut), cut))
    return upper.where(rate >= cut, lower)


def _looked_up(rate: Tensor, cut: int) -> Tensor:
    """The same, for ``float32``."""
    place = rate * _PIECES
    row = _parabolas(cut, rate.device).index_select(0, place.int().reshape(-1))
    constant, slope, bend = row.view(*rate.shape, 3).unbind(-1)
    offset = place.frac_()
    return torch.addcmul(constant, torch.addcmul(slope, bend, offset), offset)


@constant
def _parabolas(cut: int, device: torch.device) -> Tensor:
    """Of each piece the constant, the slope and the bend, ``(pieces, 3)``."""
    here = torch.device("cpu")  # has float64, and numbers where the default device is meta
    angles = torch.arange(1, 7, 2, dtype=torch.float64, device=here) * (math.pi / 6)
    offset = (1 + angles.cos()) / 2  # where a parabola through three points errs least
    start = torch.arange(_REACH * cut * _PIECES, dtype=torch.float64, device=here)
    rate = (start.unsqueeze(-1) + offset) / _PIECES
    before = (cut - 1) * rate.log() - rate - math.lgamma(cut)
    values = _from_series(rate, before, cut, _REACH * cut)
    powers = offset.unsqueeze(-1) ** torch.arange(3, device=here)
    return torch.linalg.solve(powers, values.t()).t().contiguous().to(device, torch.float32)


def differentiable_cut_tail(rate: Tensor, cut: int) -> CutTail:
    """The same, composed of operations that torch can differentiate."""
    log_rate = rate.log()
    before = (cut - 1) * log_rate - rate - math.lgamma(cut)
    tail = log_poisson_tail(rate.new_tensor(cut), rate, True)
    return CutTail(rate, log_rate, before, tail - before, tail)


def _upward(rate: Tensor, cut: int, largest: float) -> Tensor:
    """``T / bλ`` of rates up to the cut, by Horner's scheme."""
    first = torch.full_like(rate, 1 / cut)
    total = first.clone()
    for j in range(terms_to_add(largest / (cut + 1), cut, rate.dtype), 0, -1):
        torch.addcmul(first, total, rate, value=1 / (cut + j), out=total)
    return total


def _downward(rate: Tensor, cut: int) -> Tensor:
    """``(1 - T) / b`` of rates above the cut: all terms there are."""
    inverse, one = 1 / rate, torch.ones_like(rate)
    total = one.clone()
    for k in range(1, cut):
        torch.addcmul(one, total, inverse, value=k, out=total)
    return total
