"""Integers and booleans that go with a floating twin, which carries the gradient.

A mask ``torch.rand(n) < p`` and an index cannot carry a gradient. Their twins can: the same numbers
in floating point, made by the draw's rule. The program keeps seeing its own tensor; where
arithmetic turns it into a floating number, the twin's takes its place, with the same value.
Operations without a slope (a comparison, an index) are noted for the report.
"""

from __future__ import annotations

__all__ = ["Twins"]

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

_CASTS = frozenset(
    [
        *("float", "double", "half", "bfloat16", "to", "type", "type_as"),
        *("long", "int", "short", "char", "byte"),
    ]
)
_ARITHMETIC = frozenset(
    [
        *_CASTS,
        *("clone", "contiguous"),
        *("add", "__radd__", "sub", "__rsub__", "mul", "__rmul__", "div", "true_divide", "neg"),
        *("__rtruediv__", "pow", "square", "sum", "mean", "cumsum", "matmul", "mm", "bmm", "mv"),
        *("__getitem__", "view", "reshape", "flatten", "unsqueeze", "squeeze", "expand", "dot"),
        *("permute", "transpose", "t", "movedim", "broadcast_to", "repeat", "cat", "stack"),
        *("concat", "expand_as", "einsum", "linear", "gather", "index_select", "scatter_add"),
        *("take", "take_along_dim", "masked_select", "index_add", "scatter", "flip", "roll"),
        *("narrow", "select", "tile", "repeat_interleave", "unflatten", "swapaxes", "ravel"),
    ]
)
"""Functions that may be asked for the twins as they were for the integers."""

_INDEX_OF: dict[str, tuple[int, str]] = {
    **dict.fromkeys(("gather", "index_select", "scatter", "scatter_add"), (2, "index")),
    "index_add": (2, "index"),
    "take": (1, "index"),
    "take_along_dim": (1, "indices"),
    "masked_select": (1, "mask"),
    "repeat_interleave": (1, "repeats"),
    "__getitem__": (1, ""),
}
"""Where a function takes an index or a mask, which stays what it is: place and name."""

_REARRANGING = frozenset(
    [
        *("squeeze", "view", "reshape", "flatten", "ravel", "unsqueeze", "expand", "expand_as"),
        *("permute", "transpose", "t", "movedim", "swapaxes", "broadcast_to", "repeat", "clone"),
        *("contiguous", "flip", "roll", "narrow", "select", "tile", "unflatten", "gather"),
        *("index_select", "take", "take_along_dim", "masked_select", "__getitem__"),
    ]
)
"""Functions of an index that do not change the categories it stands for."""

_IN_PLACE: dict[str, Callable[..., Tensor]] = {
    "add_": torch.add,
    "sub_": torch.sub,
    "mul_": torch.mul,
}


def _and(a: Tensor, b: Tensor) -> Tensor:
    return a * b


def _or(a: Tensor, b: Tensor) -> Tensor:
    return a + b - a * b


def _xor(a: Tensor, b: Tensor) -> Tensor:
    return a + b - 2 * a * b


_LOGIC: dict[str, Callable[..., Tensor]] = {
    **dict.fromkeys(("__and__", "logical_and", "bitwise_and", "__iand__", "__rand__"), _and),
    **dict.fromkeys(("__or__", "logical_or", "bitwise_or", "__ior__", "__ror__"), _or),
    **dict.fromkeys(("__xor__", "logical_xor", "bitwise_xor", "__ixor__"), _xor),
    **dict.fromkeys(("__invert__", "logical_not", "bitwise_not"), lambda a: 1 - a),
}


class Twins:
    """The twins of the integers and booleans of a running program."""

    def __init__(self) -> None:
        self._twins = WeakTensorKeyDictionary()
        self._one_hot = WeakTensorKeyDictionary()
        self.any = False  # the length of a weak dictionary takes longer

    def pair(self, whole: Tensor, twin: Tensor) -> None:
        """``twin`` is what ``whole`` would be, could it carry a gradient."""
        self._twins[whole] = twin
        self.any = True

    def index(self, index: Tensor, one_hot: Tensor) -> None:
        """``one_hot`` is what ``index``, drawn from categories, stands for: ``(*index, K)``."""
        self._one_hot[index] = one_hot
        self.any = True

    def twin_of(self, value: Any) -> Tensor | None:
        """The twin, if there is one."""
        if not isinstance(value, Tensor) or value.is_floating_point():
            return None
        found: Tensor | None = self._twins.get(value)
        if found is None and (one_hot := self._one_hot.get(value)) is not None:
            found = one_hot @ torch.arange(one_hot.shape[-1], device=value.device).to(one_hot.dtype)
        return found

    def any_in(self, args: Any) -> Tensor | None:
        """The first twin among the arguments, lists of tensors included."""
        return next(self.all_in(args), None) if self.any else None

    def all_in(self, args: Any) -> Iterator[Tensor]:
        """The twins among the arguments, lists of tensors included."""
        for value in args if self.any else ():
            if isinstance(value, list | tuple):
                yield from self.all_in(value)
            elif (twin := self.twin_of(value)) is not None:
                yield twin

    def apply(self, func: Any, name: str, args: Any, kwargs: Any) -> tuple[bool, Any]:
        """What ``func`` returns, with its twin beside it; and whether it had a way for that."""
        if name == "where" and len(args) == 3 and self.twin_of(args[0]) is not None:
            return True, self._where(func, *args)
        if name == "one_hot" and args[0] in self._one_hot:
            plain = func(*args, **kwargs)
            one_hot = self._one_hot[args[0]]
            if plain.shape == one_hot.shape:
                self.pair(plain, one_hot)
            return True, plain
        if name in _LOGIC:
            parts = [self._floating(value, like=self.any_in(args)) for value in args]
            return True, self._beside(func(*args, **kwargs), _LOGIC[name](*parts))
        if name in _IN_PLACE:
            return True, self._in_place(func, name, args, kwargs)
        if name not in _ARITHMETIC or self._is_indexed(name, args, kwargs):
            return False, None
        if name in _REARRANGING and args[0] in self._one_hot:
            plain = func(*args, **kwargs)
            planes = [
                func(plane, *args[1:], **kwargs) for plane in self._one_hot[args[0]].unbind(-1)
            ]
            self.index(plain, torch.stack(planes, -1))
            return True, plain
        plain = func(*args, **kwargs)
        if plain.dtype == torch.bool != args[0].dtype and name in _CASTS:
            return False, None  # a comparison with 0
        return True, self._beside(plain, self._twin_result(func, name, args, kwargs))

    def _twin_result(self, func: Any, name: str, args: Any, kwargs: Any) -> Tensor:
        if name in _CASTS:
            twin: Tensor = self._swap(args[0])
            return twin
        kwargs = {key: value for key, value in kwargs.items() if key != "dtype"}
        place, word = _INDEX_OF.get(name, (len(args), ""))
        like = self.any_in((*args, *kwargs.values()))
        args = [v if i == place else self._floating(v, like) for i, v in enumerate(args)]
        kwargs = {k: v if k == word else self._floating(v, like) for k, v in kwargs.items()}
        result: Tensor = func(*args, **kwargs)
        return result

    def _is_indexed(self, name: str, args: Any, kwargs: Any) -> bool:
        """Whether a twin is asked for as an index, which has no slope."""
        place, word = _INDEX_OF.get(name, (len(args), ""))
        return self.any_in([*args[place : place + 1], kwargs.get(word)]) is not None

    def _beside(self, plain: Any, twin: Tensor) -> Any:
        if plain.is_floating_point():
            return twin.to(plain.dtype)
        self.pair(plain, twin)
        return plain

    def _in_place(self, func: Any, name: str, args: Any, kwargs: Any) -> Any:
        if args[0].is_floating_point():
            return func(args[0], *[self._swap(value) for value in args[1:]], **kwargs)
        base = self._floating(args[0], self.any_in(args))
        twin = _IN_PLACE[name](base, *[self._swap(value) for value in args[1:]], **kwargs)
        result = func(*args, **kwargs)
        self.pair(result, twin)
        return result

    def _where(self, func: Any, mask: Tensor, yes: Any, no: Any) -> Any:
        twin: Tensor = self._swap(mask)
        plain = func(mask, yes, no)
        yes, no = self._swap(yes), self._swap(no)
        gap = torch.as_tensor(yes).detach() - torch.as_tensor(no).detach()
        step = (twin - twin.detach()) * gap.nan_to_num(posinf=0.0, neginf=0.0)
        return self._beside(plain, func(mask, yes, no) + step)

    def _swap(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return type(value)(self._swap(part) for part in value)
        twin = self.twin_of(value)
        return value if twin is None else twin

    def _floating(self, value: Any, like: Tensor | None) -> Any:
        """The twin; other integers as floating numbers, since torch multiplies only their like."""
        if isinstance(value, list | tuple):
            return type(value)(self._floating(part, like) for part in value)
        twin = self.twin_of(value)
        if twin is not None or not isinstance(value, Tensor) or like is None:
            return value if twin is None else twin
        return value if value.is_floating_point() else value.to(like.dtype)
