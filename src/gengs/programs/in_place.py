"""Updates in place: what autograd has saved is copied before it is overwritten.

``susceptible -= new`` is how simulators are written, and torch refuses to go back through it if the
old numbers are still needed. While a block is open each saved tensor is known by its storage. An
operation that is about to write there asks for a copy first, and the distributions whose parameters
lie there are asked for the log-probability of what they drew.

(torch's own ``allow_mutation_on_saved_tensors`` does the same for every operation of a dispatcher
mode, at several times the price.)
"""

from __future__ import annotations

__all__ = ["SavedTensors", "snapshot", "written_by"]

import copy
import weakref
from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks
from torch.distributions import Distribution


class _Saved:
    __slots__ = ("__weakref__", "tensor")

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor

    def __call__(self) -> None:
        self.tensor = self.tensor.clone()


_saved: dict[int, list[Any]] = {}
"""What autograd has saved in blocks that are open, by storage; of all threads and tasks."""


def _keep(tensor: Tensor) -> _Saved:
    saved = _Saved(tensor)
    _saved.setdefault(_storage(tensor), []).append(weakref.ref(saved))
    return saved


class SavedTensors(saved_tensors_hooks):
    """What is saved while a block is open."""

    def __init__(self) -> None:
        super().__init__(_keep, lambda saved: saved.tensor)
        self._draws: dict[int, list[Callable[[], None]]] = {}

    def watch(self, tensors: list[Tensor], rescue: Callable[[], None]) -> None:
        """Call ``rescue`` before one of ``tensors`` is overwritten."""
        for tensor in tensors:
            self._draws.setdefault(_storage(tensor), []).append(rescue)

    def before_writing(self, target: Tensor) -> None:
        """Numbers in ``target`` are about to change."""
        place = _storage(target)
        for rescue in self._draws.pop(place, ()):
            rescue()
        for reference in _saved.pop(place, ()):
            saved = reference()
            if saved is not None:
                saved()

    def forget(self, alone: bool) -> None:
        """The loss is known; if this is the only block, nothing else is saved."""
        self._draws.clear()
        if alone:
            _saved.clear()


def _storage(tensor: Tensor) -> int:
    """Where the numbers are."""
    return tensor.untyped_storage().data_ptr()


_IN_PLACE = frozenset(
    f"__i{name}__" for name in ("add", "sub", "mul", "truediv", "pow", "and", "or", "xor")
)


def written_by(name: str, args: Any, kwargs: dict[str, Any]) -> Tensor | None:
    """The tensor that a function of torch's writes to, if it does."""
    if name[-1:] == "_":
        if name[:2] != "__" or name == "__setitem__" or name in _IN_PLACE:
            return args[0] if args and isinstance(args[0], Tensor) else None
        return None
    return kwargs.get("out") if kwargs else None


def snapshot(law: Any) -> Any:
    """A copy of a law whose parameters, with their gradients, are copies of their own."""
    if not isinstance(law, Distribution):
        return law
    result = copy.copy(law)
    for name, part in vars(law).items():
        if isinstance(part, Tensor):
            vars(result)[name] = part.clone()
        elif isinstance(part, Distribution):
            vars(result)[name] = snapshot(part)
    return result
