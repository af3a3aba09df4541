r"""A law that is cut to a window, :math:`Z = \mathrm{clip}(X, \mathrm{low}, \mathrm{high})`.

It is a :class:`~gengs.Finite`, but its table is made when it is first asked for. Not everyone asks:
a draw of the mid-CDF is a draw of :math:`X`, clipped, and the divergence of two Poissons that are
cut alike has a closed form.
"""

from __future__ import annotations

__all__ = ["Truncated"]

from collections.abc import Callable
from copy import copy
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, Poisson
from torch.distributions.utils import lazy_property
from torch.types import _size

from .certificate import Certificate
from .families import Family, family_of
from .finite import Finite
from .poisson_table import LARGEST_CUT
from .truncation import Window


class Truncated(Finite):
    """The law of ``clip(X, low, high)``: the PMF inside, and a tail on each end atom.

    Args:
        family: The law :math:`X`, with its tails.
        window: The integers that are kept.
        validate: Whether what is asked of the law is checked.

    Attributes:
        source: The law :math:`X` itself.
    """

    consecutive = True

    def __init__(self, family: Family, window: Window, validate: bool) -> None:
        self.source, self.window = family.law, window
        self.event_dim, self.dtype = 0, family.like.dtype
        self.certificate = Certificate(family, window)
        self.family: Family = family
        self._seen_through: tuple[Truncated, Callable[[Any], Any]] | None = None
        # the table's gradient is decided here, not where somebody first asks for the table
        self._with_gradient = torch.is_grad_enabled()
        Distribution.__init__(self, family.batch_shape, torch.Size(), validate_args=False)
        self._validate_args = validate

    @property
    def num_atoms(self) -> int:
        return self.window.size

    @lazy_property
    def atoms(self) -> Tensor:
        """The integers of the window."""
        integers = self.window.integers(self.family.like.device)
        return integers.to(torch.promote_types(self.dtype, torch.float32))

    @lazy_property
    def logits(self) -> Tensor:
        r"""The log-probabilities :math:`\log \pi`, of shape ``(*batch, n)``."""
        if self._seen_through is not None:
            origin, change = self._seen_through
            return change(origin.logits)
        with torch.inference_mode(False), torch.set_grad_enabled(self._with_gradient):
            return self._table()

    @lazy_property
    def known_probs(self) -> Tensor | None:
        if self._seen_through is not None:
            origin, change = self._seen_through
            return None if origin.known_probs is None else change(origin.known_probs)
        logits = self.logits.detach()
        return logits.exp() if self.family.all_possible else None

    @property
    def poisson_cut(self) -> int | None:
        """The last atom, where this is a Poisson cut to 0 ... a for a moderate a; else ``None``."""
        simple = isinstance(self.source, Poisson) and type(self.source).log_prob is Poisson.log_prob
        low, last = self.window.low, self.window.size - 1
        simple = simple and isinstance(low, int) and low == 0
        return last if simple and 0 < last <= LARGEST_CUT else None

    @property
    def has_table(self) -> bool:
        """Whether the table was asked for before."""
        return "logits" in vars(self)

    def make_table(self) -> None:
        """Ask for the table now."""
        _ = self.logits, self.known_probs

    def through(self, change: Callable[[Any], Any]) -> Truncated:
        """This law with ``change`` applied to its source, and to its table once one is asked for.

        The table is made once for both.
        """
        twin = copy(self)
        for name in ("logits", "known_probs", "probs"):
            vars(twin).pop(name, None)
        twin.source, twin._seen_through = change(self.source), (self, change)
        return twin

    def moved(self, move: Callable[[Any], Any]) -> Truncated:
        """This law on another device or in another floating type."""
        twin = self.through(move)
        twin.make_table()
        twin._seen_through = None
        vars(twin).pop("atoms", None)
        twin.family = family_of(twin.source)
        twin.dtype, twin.certificate = twin.family.like.dtype, Certificate(twin.family, self.window)
        return twin

    def expand(self, batch_shape: _size, _instance: Any = None) -> Finite:
        # the table is what is expanded
        return super().expand(
            batch_shape, Finite.__new__(Finite) if _instance is None else _instance
        )

    def _table(self) -> Tensor:
        k = self.window.integers(self.family.like.device)
        if self.window.size > 1:
            return self.family.clipped_log_pmf(k, self.window.begins_at(self.family.lower))
        log_pmf = torch.zeros_like(self.family.log_pmf(k))  # one atom carries everything
        return log_pmf + 0.0 * self.family.like  # with a gradient, zero, where the law has one
