"""The support of a law on finitely many atoms, as a constraint that torch can check."""

from __future__ import annotations

__all__ = ["OneOf"]

from typing import TYPE_CHECKING

from torch import Tensor
from torch.distributions import constraints

if TYPE_CHECKING:
    from .finite import Finite


class OneOf(constraints.Constraint):
    """Values that equal one of a law's atoms.

    Args:
        law: The law.
    """

    is_discrete = True

    def __init__(self, law: Finite) -> None:
        self._law = law
        super().__init__()

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        return self._law.event_dim

    def check(self, value: Tensor) -> Tensor:
        return self._law.index_of(value)[1]
