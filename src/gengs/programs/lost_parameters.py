"""Parameters that lose their gradient before the draw that they belong to.

``torch.tensor([t, t])``, ``p.detach()`` and ``float(p)`` are numbers like any other: a draw made of
them carries no gradient, and nothing shows it if others do. So it is remembered which tensors were
made of a parameter without its gradient; of Python's numbers it is known only that there were some.
"""

from __future__ import annotations

__all__ = ["LostParameters"]

from typing import Any

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from .cut_operations import tensors_in
from .sample_site import Site, place_of, where

_NUMBERS = frozenset(
    ("item", "tolist", "numpy", "__array__", "__float__", "__int__", "__index__", "__complex__")
)


class LostParameters:
    """Tensors and numbers that were made of parameters, without their gradient."""

    def __init__(self) -> None:
        self._tensors = WeakTensorKeyDictionary()
        self._numbers: str | None = None
        self._notes: dict[tuple[str, str], Site] = {}

    def __bool__(self) -> bool:
        return bool(self._tensors.data)

    def tables(self) -> tuple[dict[Any, Any], ...]:
        """What is known of tensors: empty where none of them is of interest."""
        return (self._tensors.data,)

    def taken(self, name: str, result: Any) -> None:
        """A parameter was detached, or became a number, by this function."""
        place = place_of(*where())
        if name in _NUMBERS:
            self._numbers = place
        for tensor in tensors_in([result]):
            self._tensors[tensor] = place

    def passed_on(self, name: str, given: Any, result: Any) -> None:
        """Such tensors may be among the arguments of a function."""
        for tensor in tensors_in(given):
            if (place := self._tensors.get(tensor)) is not None:
                if name in _NUMBERS:
                    self._numbers = place
                for made in tensors_in([result]):
                    if made is not tensor:
                        self._tensors[made] = place
                return

    def drawn(self, site: Site, tensors: list[Tensor], moves: bool) -> None:
        """A draw was made with these parameters."""
        if not self._tensors.data and self._numbers is None:
            return
        for tensor in tensors:
            if (place := self._tensors.get(tensor)) is not None:
                self._notes.setdefault((site.place, place), site)
                return
        if not moves and self._numbers is not None:
            self._notes.setdefault((site.place, self._numbers), site)

    def sentences(self) -> list[str]:
        """What is to be said of it."""
        return [
            f"{draw}: a parameter of {site.law} lost its gradient at {place} before this draw "
            "(detach(), item(), float(), torch.tensor(...)), as far as one can see: its share of "
            "the gradient is missing; keep it a tensor (torch.stack in place of torch.tensor)."
            for (draw, place), site in self._notes.items()
        ]
