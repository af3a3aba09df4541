r"""A law that is cut to a window, :math:`Z = \mathrm{clip}(X, \mathrm{low}, \mathrm{high})`."""

from __future__ import annotations

__all__ = ["Truncated"]

import math
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor
from torch.distributions import Poisson

from .certificate import Certificate
from .deferred import Deferred
from .families import Family, family_of
from .given import widen
from .once import belongs_to_a_passage, once, outside_inference_mode
from .poisson_table import poisson_table
from .poisson_tail import LARGEST_CUT, CutTail, cut_tail
from .truncation import Window
from .validation import ends_of, ordinary


class Truncated(Deferred):
    """The law of ``clip(X, low, high)``: the PMF inside, and a tail on each end atom.

    Its ``source`` is the law of X.

    Args:
        family: The law of X, with its tails.
        window: The integers that are kept.
        validate: Whether what is asked of the law is checked.
    """

    consecutive = True

    _kept_tail: tuple[int, CutTail | None] | None = None
    """What :attr:`poisson_tail` made, and for which version of the rates."""

    def __init__(self, family: Family, window: Window, validate: bool) -> None:
        super().__init__(family.law, family.batch_shape, torch.Size(), family.like.dtype, validate)
        self.family, self.window = family, window
        self.certificate = Certificate(family, window)

    @property
    def num_atoms(self) -> int:
        return self.window.size

    @once
    def atoms(self) -> Tensor:
        """The integers of the window."""
        integers = self.window.integers(self.family.like.device)
        return integers.to(torch.promote_types(self.dtype, torch.float32))

    def _make_table(self) -> tuple[Tensor, bool]:
        family, window = self.family, self.window
        tail = self.poisson_tail
        if tail is not None:  # no dozen passes over the table
            return poisson_table(family.like, window.size, tail), True
        k = window.integers(family.like.device)
        if window.size > 1:
            return family.clipped_log_pmf(k, window.begins_at(family.lower)), False
        # one atom carries everything, with a gradient, zero, where the law has one
        like = torch.nan_to_num(family.like, neginf=0.0).sum(-1, keepdim=True)
        return torch.zeros_like(family.log_pmf(k)) + 0.0 * like, False

    @property
    def poisson_cut(self) -> int | None:
        """The last atom, where this is a Poisson cut to 0 ... a for a moderate a; else ``None``."""
        law = self.family.law
        simple = isinstance(law, Poisson) and type(law).log_prob is Poisson.log_prob
        low, last = self.window.low, self.window.size - 1
        simple = simple and isinstance(low, int) and low == 0
        return last if simple and 0 < last <= LARGEST_CUT else None

    @property
    def poisson_tail(self) -> CutTail | None:
        """Of a cut Poisson with positive rates, their tails: made once for all who need them."""
        if self._seen_through is not None:
            return cast(Truncated, self._seen_through[0]).poisson_tail
        cut = self.poisson_cut
        if cut is None:
            return None
        rate = cast(Poisson, self.family.law).rate
        if not ordinary(rate) or not rate.numel():
            return None
        version = None if rate.is_inference() else rate._version
        if self._kept_tail is not None and self._kept_tail[0] == version:
            return self._kept_tail[1]
        least, largest = ends_of(rate)
        tail = None
        if least > 0 and largest < math.inf:
            tail = outside_inference_mode(lambda: cut_tail(widen(rate.detach()), cut, largest))
        if version is not None and not belongs_to_a_passage():
            self._kept_tail = version, tail
        return tail

    @once
    def poisson_constants(self) -> tuple[Tensor, Tensor, Tensor]:
        """Of a cut Poisson: log λ, log P(X >= a), and log P(X >= a) - log P(X = a - 1)."""
        tail, before = self.logits[..., -1].detach(), self.logits[..., -2].detach()
        return self.source.rate.detach().log(), tail, tail - before

    def __getstate__(self) -> dict[str, Any]:
        # a copy's rates are other tensors, whose versions are counted anew
        return {**vars(self), "_kept_tail": None}

    def moved(self, move: Callable[[Any], Any]) -> Truncated:
        """This law on another device or in another floating type."""
        twin = self.through(move, move)
        twin.source = move(self.source)
        twin._seen_through = None
        for name in ("atoms", "poisson_constants"):
            vars(twin).pop(name, None)
        twin._kept_tail = None
        twin.family = family_of(twin.source)
        twin.dtype, twin.certificate = twin.family.like.dtype, Certificate(twin.family, self.window)
        return twin
