r"""Where a drawn index points: values that are read there, or written there.

A value that is looked up is linear in the one-hot vector h of its index,
:math:`v_i = \sum_k h_k v_k`, so the vector that stands for the index carries the gradient on: to
each category goes what the cost would gain by the value that is kept there. What is written at an
index, :math:`x_k + h_k (v - x_k)`, is linear in it, too. torch's ways to read and write by an index
are first put in the form ``x[key]``, in which the drawn index is one part of the key.
"""

from __future__ import annotations

__all__ = ["READS", "WRITES", "Key", "key_of", "slope_of_read", "slope_of_write", "writes_apart"]

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

READS = frozenset(("gather", "take_along_dim", "take", "index_select", "embedding", "__getitem__"))
WRITES = {
    **dict.fromkeys(("scatter", "scatter_", "index_fill", "index_fill_", "__setitem__"), True),
    **dict.fromkeys(("scatter_add", "scatter_add_", "index_add", "index_add_"), False),
}
"""Whether what stood there is replaced."""
_WHOLE = ("index_select", "index_fill", "index_fill_", "index_add", "index_add_")


@dataclass
class Key:
    """``source[parts]``, and what is written there, if anything is."""

    source: Tensor
    parts: tuple[Any, ...]
    value: Any = None
    axis: int = 0
    """The dimension of the source that was moved to the front."""

    @property
    def places(self) -> list[int]:
        """Which parts are tensors."""
        return [i for i, part in enumerate(self.parts) if isinstance(part, Tensor)]

    @property
    def lead(self) -> int:
        """How many dimensions of ``source[parts]`` stand before those of the indices."""
        indexed = [isinstance(part, Tensor | int) for part in self.parts]
        first, last = indexed.index(True), len(indexed) - indexed[::-1].index(True)
        return first if all(indexed[first:last]) else 0  # apart from each other, they come first

    @property
    def shape(self) -> torch.Size:
        """Of all its indices together."""
        return torch.broadcast_shapes(*(self.parts[i].shape for i in self.places))

    def at_all(self, place: int, k: int) -> tuple[Any, ...]:
        """The parts with all categories at a place, in a new first dimension of the indices."""
        numbers = torch.arange(k, device=self.parts[place].device)
        numbers = numbers.view(k, *[1] * len(self.shape))
        return (*self.parts[:place], numbers, *self.parts[place + 1 :])


def key_of(name: str, args: Any, kwargs: dict[str, Any]) -> Key | None:
    """What a function of torch's reads or writes; ``None`` for what has no such form."""
    source, *rest = args
    if name == "embedding":
        return Key(rest[0], (source,)) if rest and kwargs.get("max_norm") is None else None
    if name in ("__getitem__", "__setitem__"):
        return _explicit(source, rest[0] if isinstance(rest[0], tuple) else (rest[0],), rest[1:])
    if name == "take":
        return Key(source.flatten(), tuple(rest)) if len(rest) == 1 else None
    names = ("indices", "dim") if name == "take_along_dim" else ("dim", "index", "value")
    given = dict(zip(names, rest, strict=False)) | kwargs
    words = ("dim", "index", "indices", "value", "src", "source")
    dim, value = given.get("dim"), given.get("value")
    index: Any = given.get("index", given.get("indices"))
    for word in ("src", "source"):
        value = given.get(word) if value is None else value
    if set(given) - set(words) or not isinstance(dim, int) or not _is_index(index):
        return None
    dim %= source.dim()
    if name in _WHOLE:
        if isinstance(value, Tensor) and value.dim():
            value = value.movedim(dim, 0)
        return Key(source.movedim(dim, 0), (index,), value, dim)
    if index.dim() != source.dim() or (
        name == "take_along_dim" and _broadcasts(source, index, dim)
    ):
        return None
    grid = [
        torch.arange(s, device=index.device).view(
            *(-1 if e == d else 1 for e in range(index.dim()))
        )
        for d, s in enumerate(index.shape)
    ]
    if isinstance(value, Tensor) and value.dim():
        value = value[tuple(slice(s) for s in index.shape)]
    return Key(source, (*grid[:dim], index, *grid[dim + 1 :]), value)


def _explicit(source: Tensor, parts: tuple[Any, ...], value: list[Any]) -> Key | None:
    """``source[parts]`` or ``source[parts] = value``; dots are written out."""
    if any(part is None or isinstance(part, bool) for part in parts):
        return None
    if not all(
        part is Ellipsis or isinstance(part, slice | int) or _is_index(part) for part in parts
    ):
        return None
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if dots:
        missing = [slice(None)] * (source.dim() - len(parts) + 1)
        parts = (*parts[: dots[0]], *missing, *parts[dots[0] + 1 :])
    return Key(source, parts, *value)


def _broadcasts(source: Tensor, index: Tensor, dim: int) -> bool:
    return any(
        a != b for d, (a, b) in enumerate(zip(source.shape, index.shape, strict=True)) if d != dim
    )


def _is_index(part: Any) -> bool:
    return isinstance(part, Tensor) and part.dtype in (torch.int64, torch.int32)


def _weights(key: Key, place: int, one_hot: Tensor) -> Tensor:
    """The one-hot vectors of the index at a place: ``(K, *shape of all indices)``."""
    k = min(one_hot.shape[-1], key.source.shape[place])
    return one_hot[..., :k].expand(*key.shape, k).movedim(-1, 0)


def slope_of_read(key: Key, place: int, one_hot: Tensor) -> Tensor:
    """``source[parts]``, as it is linear in the one-hot vectors of one of its indices."""
    weights = _weights(key, place, one_hot)
    k, lead, shape = len(weights), key.lead, key.shape
    options = key.source.detach()[key.at_all(place, k)]  # (*lead, K, *shape or ones, *rest)
    if not options.is_floating_point():
        options = options.to(one_hot.dtype)
    options = _finite(options)  # log(0) of a category that never comes: 0 times it is no number
    first, last = options.shape[:lead], options.shape[lead + 1 + len(shape) :]
    if options.numel() == first.numel() * k * last.numel():  # the same for all
        flat = options.reshape(first.numel(), k, last.numel())
        found = torch.einsum("lkd,kb->lbd", flat, weights.reshape(k, -1).to(flat.dtype))
    else:
        flat = options.expand(*first, k, *shape, *last)
        flat = flat.reshape(first.numel(), k, -1, last.numel())
        found = torch.einsum("lkbd,kb->lbd", flat, weights.reshape(k, -1).to(flat.dtype))
    return found.reshape(*first, *shape, *last).movedim(0, key.axis)


def writes_apart(key: Key, place: int) -> int:
    """How many elements of an index may write to one and the same number; 0 if that varies."""
    zero = torch.zeros_like(key.parts[place])
    numbers = _numbers(key.source, (*key.parts[:place], zero, *key.parts[place + 1 :]))
    times = numbers.unique(return_counts=True)[1]
    return int(times[0]) if bool((times == times[0]).all()) else 0


def slope_of_write(key: Key, place: int, one_hot: Tensor, before: Tensor, puts: bool) -> Tensor:
    """What is written to ``before``, as it is linear in the vectors of one of its indices.

    ``puts`` tells whether it replaces what was there.
    """
    weights = _weights(key, place, one_hot)
    lead, before = key.lead, before.detach().movedim(key.axis, 0)
    parts = key.at_all(place, len(weights))
    parts = tuple(p.expand(weights.shape) if isinstance(p, Tensor) else p for p in parts)
    there = before[parts]  # (*lead, K, *shape, *rest)
    value = torch.as_tensor(key.value, device=before.device).detach().to(before.dtype)
    value = value.expand(before[key.parts].shape).unsqueeze(lead)
    rest = there.dim() - lead - weights.dim()
    weights = weights.to(before.dtype).reshape(*weights.shape, *[1] * rest)
    change = weights * _finite(value - there if puts else value).expand(there.shape)
    numbers = _numbers(before, parts).flatten()
    found = torch.zeros_like(before).flatten().index_add(0, numbers, change.flatten())
    return found.view(before.shape).movedim(0, key.axis)


def _finite(x: Tensor) -> Tensor:
    return x.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)


def _numbers(source: Tensor, parts: tuple[Any, ...]) -> Tensor:
    """The place of each number of ``source[parts]`` in the flat source."""
    return torch.arange(source.numel(), device=source.device).view(source.shape)[parts]
