"""A law on finitely many atoms whose table is made when it is first asked for.

Not everyone asks, and a table is a dozen passes over memory: a draw of a truncated Poisson is a
clipped draw of the Poisson, and a softmax needs no normalised logits. As with torch's own lazy
parameters, what is changed in place before the table is asked for changes the table.
"""

from __future__ import annotations

__all__ = ["Deferred"]

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, Self, cast

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.types import _size

from .families import detached, twin_of
from .finite import Finite
from .once import once

Change = Callable[[Any], Any]
_View = tuple["Deferred", Change, Callable[[Tensor], Tensor]]


class Deferred(Finite):
    """A :class:`Finite` with ``logits`` made from a ``source``.

    Args:
        source: What the table is made from: a law, or a tensor.
        batch: The batch shape.
        event: The shape of one atom.
        dtype: The floating type of what is drawn.
        validate: Whether what is asked of the law is checked.
    """

    def __init__(
        self,
        source: Any,
        batch: torch.Size,
        event: torch.Size,
        dtype: torch.dtype,
        validate: bool,
    ) -> None:
        # whether there is a gradient is decided here, not where somebody first asks for the table
        self._with_gradient = torch.is_grad_enabled()
        self.source = source if self._with_gradient else detached(source)
        self.event_dim, self.dtype = len(event), dtype
        self._seen_through: _View | None = None
        Distribution.__init__(self, batch, event, validate_args=False)
        self._validate_args = validate

    @abstractmethod
    def _make_table(self) -> tuple[Tensor, bool]:
        """The log-probabilities, and whether it is known that none of them is ``-inf``."""

    @once
    def _table(self) -> tuple[Tensor, bool]:
        with torch.set_grad_enabled(self._with_gradient):
            if self._seen_through is None:
                return self._make_table()
            origin, _, change = self._seen_through
            logits, all_possible = origin._table
            return change(logits), all_possible

    @once
    def source(self) -> Any:
        """What the table is made from; here, where it is another law's, changed."""
        origin, change, _ = cast(_View, self._seen_through)
        with torch.set_grad_enabled(self._with_gradient):
            return change(origin.source)

    @property
    def logits(self) -> Tensor:  # type: ignore[override]  # of a Finite, an attribute
        r"""The log-probabilities :math:`\log \pi`, of shape ``(*batch, n)``."""
        return self._table[0]

    @property
    def all_possible(self) -> bool:  # type: ignore[override]  # likewise
        """Whether it is known, without a look, that no atom has probability zero."""
        return self._table[1]

    @once
    def fixed_probs(self) -> Tensor:
        """The probabilities without a gradient, made once for all who need numbers only."""
        if self._seen_through is None:
            return self.logits.detach().exp()
        origin, _, change = self._seen_through
        return change(origin.fixed_probs)

    @property
    def has_table(self) -> bool:
        """Whether the table was asked for before."""
        return "_table" in vars(self)

    def make_table(self) -> None:
        """Ask for the table now."""
        _ = self._table

    def through(self, change_source: Change, change: Callable[[Tensor], Tensor]) -> Self:
        """This law with another source; its table is this one's, made once for both, changed.

        Args:
            change_source: What to apply to the source once it is asked for.
            change: What to apply to the table once one is asked for.
        """
        twin = twin_of(self)
        for name in ("source", "_table", "fixed_probs", "probs"):
            vars(twin).pop(name, None)
        twin._seen_through = self, change_source, change
        return twin

    def expand(self, batch_shape: _size, _instance: Any = None) -> Finite:
        # the table is what is expanded
        return super().expand(batch_shape, _instance or Finite.__new__(Finite))
