"""Uniform, normal and other continuous random numbers, and what is made of them.

``torch.rand(n) < p`` is a Bernoulli draw, and is taken as one. Numbers that meet a parameter before
they are compared or rounded (``floor(rand + p)``, the argmax of ``logits + gumbel``) are a draw,
too, of a law that nobody told: such a place is known here, so that it can be named.
"""

__all__ = ["SOURCES", "Noise"]

from typing import Any

from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from .cut_operations import tensors_in

SOURCES = {
    *("rand", "rand_like", "uniform_", "randn", "randn_like", "normal_", "exponential_"),
    *("log_normal_", "cauchy_"),
}


class Noise:
    """The continuous random numbers of a running program."""

    def __init__(self) -> None:
        self._uses = WeakTensorKeyDictionary()  # how often uniforms were compared; -1: no uniforms

    def made(self, name: str, args: Any, kwargs: dict[str, Any], result: Tensor) -> None:
        """Numbers have come from one of the :data:`SOURCES`."""
        unit = name in ("rand", "rand_like") or (
            name == "uniform_" and len(args) == 1 and not {"from", "to"} & set(kwargs)
        )
        self._uses[result] = 0 if unit else -1

    def spoil(self, result: Any) -> None:
        """Tensors hold random numbers that are not, or no longer, uniform on (0, 1)."""
        for value in tensors_in([result]):
            self._uses[value] = -1

    def used(self, args: Any) -> bool:
        """Whether there are random numbers among the arguments, which are spoilt by that."""
        found = [v for v in tensors_in(args) if v in self._uses] if self._uses.data else []
        self.spoil(found)
        return bool(found)

    def known(self, value: Any) -> bool:
        """Whether a tensor holds random numbers."""
        return bool(self._uses.data) and isinstance(value, Tensor) and value in self._uses

    def compared(self, uniform: Any) -> int | None:
        """How often numbers were compared before, -1 if used otherwise; ``None`` if not random."""
        if not self.known(uniform):
            return None
        uses: int = self._uses[uniform]
        self._uses[uniform] = -1 if uses else 1
        return uses
