"""Uniform, normal and other continuous random numbers, and what is made of them.

``torch.rand(n) < p`` is a Bernoulli draw, and is taken as one. Uniform numbers that are rearranged
(a column, a new dimension) and compared with several thresholds are an ordered category: see
:mod:`.thresholds`. Numbers that meet a parameter in another way before they are compared or rounded
(``floor(rand + p)``, the argmax of ``logits + gumbel``) are a draw of a distribution that nobody
told: such a place is known here, so that it can be named.
"""

from __future__ import annotations

__all__ = ["SOURCES", "Noise", "Uniform"]

from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from .cut_operations import tensors_in

SOURCES = {
    *("rand", "rand_like", "uniform_", "randn", "randn_like", "normal_", "exponential_"),
    *("log_normal_", "cauchy_"),
}
_REARRANGING = {
    *("squeeze", "view", "reshape", "flatten", "ravel", "unsqueeze", "expand", "expand_as"),
    *("permute", "transpose", "t", "movedim", "swapaxes", "broadcast_to", "repeat", "clone"),
    *("contiguous", "flip", "roll", "narrow", "select", "tile", "unflatten", "__getitem__"),
    *("chunk", "split", "unbind", "double", "float", "to", "mT", "T"),
}
"""Functions after which a number is still the uniform number that it was."""


class Uniform:
    """Uniform numbers as they came from the generator, with what they were compared with.

    Attributes:
        size: How many they are.
        comparisons: The thresholds, whether the number was below, and whose number it was.
    """

    def __init__(self, shape: torch.Size) -> None:
        self.shape, self.size = shape, shape.numel()
        self.comparisons: list[tuple[Any, Tensor, Tensor | None]] = []
        self.bounds: Any = None


class _Seen:
    """Uniform numbers behind a tensor: ``index`` says which, in its own order if it is ``None``."""

    __slots__ = ("index", "uniform")

    def __init__(self, uniform: Uniform | None, index: Tensor | None = None) -> None:
        self.uniform, self.index = uniform, index


_SPOILT = _Seen(None)


class Noise:
    """The continuous random numbers of a running program."""

    def __init__(self) -> None:
        self._seen = WeakTensorKeyDictionary()

    def tables(self) -> tuple[dict[Any, Any], ...]:
        """What is known of tensors: empty where none of them is of interest."""
        return (self._seen.data,)

    def made(self, name: str, args: Any, kwargs: dict[str, Any], result: Tensor) -> None:
        """Numbers have come from one of the :data:`SOURCES`."""
        unit = name in ("rand", "rand_like") or (
            name == "uniform_" and len(args) == 1 and not {"from", "to"} & set(kwargs)
        )
        self._seen[result] = _Seen(Uniform(result.shape)) if unit else _SPOILT

    def spoil(self, result: Any) -> None:
        """Tensors hold random numbers that are not, or no longer, uniform on (0, 1)."""
        for value in tensors_in([result]):
            self._seen[value] = _SPOILT

    def used(self, args: Any) -> bool:
        """Whether there are random numbers among the arguments."""
        return bool(self._seen.data) and any(v in self._seen for v in tensors_in(args))

    def passed_on(
        self, func: Any, name: str, args: Any, kwargs: dict[str, Any], result: Any
    ) -> None:
        """Random numbers were among the arguments of a function, and are in its result."""
        seen = self._seen.get(args[0]) if name in _REARRANGING and args else None
        others = (*args[1:], *kwargs.values())
        if seen is not None and seen.uniform is not None and not self.used(others):
            index = seen.index
            if index is None:
                index = torch.arange(seen.uniform.size, device=args[0].device)
                index = index.reshape(seen.uniform.shape)
            if name not in ("double", "float", "to"):
                index = func(index, *args[1:], **kwargs)
            for part, which in zip(tensors_in([result]), tensors_in([index]), strict=True):
                self._seen[part] = _Seen(seen.uniform, which)
            return
        self.spoil(args[0] if name == "__setitem__" else result)

    def any(self) -> bool:
        """Whether there are random numbers at all."""
        return bool(self._seen.data)

    def known(self, value: Any) -> bool:
        """Whether a tensor holds random numbers."""
        return bool(self._seen.data) and isinstance(value, Tensor) and value in self._seen

    def uniform(self, value: Any) -> _Seen | None:
        """The uniform numbers behind a tensor, without a ``uniform`` if spoilt; or ``None``."""
        if not self._seen.data or not isinstance(value, Tensor):
            return None
        found: _Seen | None = self._seen.get(value)
        return found
