"""Surrogates of integers and booleans: the same numbers in floating point, with a gradient.

A mask ``torch.rand(n) < p`` and an index cannot carry a gradient. Their surrogates, made by the
draw's rule, can. The program keeps seeing its own tensor; where arithmetic turns it into a floating
number, the surrogate's takes its place, with the same value. Operations without a slope (a
comparison, an index) are noted for the report.
"""

__all__ = ["Surrogates"]

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakTensorKeyDictionary

from .class_losses import CLASS_LOSSES, slope_of_class_loss
from .cut_operations import tensors_in
from .cut_report import CutReport
from .lookups import READS, WRITES, Key, key_of, slope_of_read, slope_of_write, writes_apart

_CASTS = {
    *("float", "double", "half", "bfloat16", "to", "type", "type_as"),
    *("long", "int", "short", "char", "byte"),
}

_REARRANGING = {
    *("squeeze", "view", "reshape", "flatten", "ravel", "unsqueeze", "expand", "expand_as"),
    *("permute", "transpose", "t", "movedim", "swapaxes", "broadcast_to", "repeat", "clone"),
    *("contiguous", "flip", "roll", "narrow", "select", "tile", "unflatten", "gather"),
    *("index_select", "take", "take_along_dim", "masked_select", "__getitem__"),
}
"""Functions of an index that do not change the categories it stands for."""

_ARITHMETIC = {
    *_CASTS,
    *_REARRANGING,
    *("add", "__radd__", "sub", "__rsub__", "mul", "__rmul__", "div", "true_divide", "neg"),
    *("__rtruediv__", "pow", "square", "sum", "mean", "cumsum", "matmul", "mm", "bmm", "mv"),
    *("dot", "cat", "stack", "concat", "einsum", "linear", "scatter", "scatter_add"),
    *("index_add", "repeat_interleave"),
}
"""Functions that may be asked for the surrogates as they were for the integers."""

_INDEX_OF: dict[str, tuple[int, str]] = {
    **dict.fromkeys(("gather", "index_select", "scatter", "scatter_add"), (2, "index")),
    "index_add": (2, "index"),
    "take": (1, "index"),
    "take_along_dim": (1, "indices"),
    "masked_select": (1, "mask"),
    "repeat_interleave": (1, "repeats"),
    "__getitem__": (1, ""),
    "__setitem__": (1, ""),
    "embedding": (0, "input"),
    **dict.fromkeys(("scatter_", "scatter_add_", "index_fill", "index_fill_"), (2, "index")),
    "index_add_": (2, "index"),
}
"""Where a function takes an index or a mask, which stays what it is: place and name."""

_Function = Callable[..., Tensor]
_IN_PLACE: dict[str, _Function] = {"add_": torch.add, "sub_": torch.sub, "mul_": torch.mul}
_AND = ("__and__", "logical_and", "bitwise_and", "__iand__", "__rand__")
_OR = ("__or__", "logical_or", "bitwise_or", "__ior__", "__ror__")
_XOR = ("__xor__", "logical_xor", "bitwise_xor", "__ixor__")
_LOGIC: dict[str, _Function] = {
    **dict.fromkeys(_AND, lambda a, b: a * b),
    **dict.fromkeys(_OR, lambda a, b: a + b - a * b),
    **dict.fromkeys(_XOR, lambda a, b: a + b - 2 * a * b),
    **dict.fromkeys(("__invert__", "logical_not", "bitwise_not"), lambda a: 1 - a),
}


class Surrogates:
    """The surrogates of the integers and booleans of a running program."""

    def __init__(self, report: CutReport) -> None:
        self._report = report
        self._numbers = WeakTensorKeyDictionary()
        self._one_hot = WeakTensorKeyDictionary()
        self._members = WeakTensorKeyDictionary()

    def __bool__(self) -> bool:
        return bool(self._numbers.data or self._one_hot.data)  # their own length takes longer

    def tables(self) -> tuple[dict[Any, Any], ...]:
        """What is known of tensors: empty where none of them is of interest."""
        return self._numbers.data, self._one_hot.data

    def pair(self, whole: Tensor, surrogate: Tensor) -> None:
        """``surrogate`` is what ``whole`` would be, could it carry a gradient."""
        self._numbers[whole] = surrogate

    def index(self, index: Tensor, one_hot: Tensor) -> None:
        """``one_hot`` is what ``index``, drawn from categories, stands for: ``(*index, K)``."""
        self._one_hot[index] = one_hot

    def distinct(self, index: Tensor, members: Callable[[], Tensor | None]) -> None:
        """No two in the last dimension of ``index`` are alike; ``members`` makes their set."""
        self._members[index] = members

    def of(self, value: Any) -> Tensor | None:
        """The surrogate of a tensor, if there is one."""
        if not isinstance(value, Tensor) or value.is_floating_point():
            return None
        found: Tensor | None = self._numbers.get(value)
        if found is None and (one_hot := self._one_hot.get(value)) is not None:
            found = one_hot @ torch.arange(one_hot.shape[-1], device=value.device).to(one_hot.dtype)
        return found

    def one_hot(self, value: Any) -> Tensor | None:
        """The one-hot vector of an index, or of an integer that is 0 or 1."""
        if not isinstance(value, Tensor) or value.is_floating_point():
            return None
        found: Tensor | None = self._one_hot.get(value)
        number = self._numbers.get(value) if found is None else None
        if number is not None and value.numel() and 0 <= value.min() <= value.max() <= 1:
            found = torch.stack([1 - number, number], -1)
        return found

    def all_in(self, args: Any) -> Iterator[Tensor]:
        """The surrogates of the arguments, lists of tensors included."""
        for value in tensors_in(args) if self else ():
            if (found := self.of(value)) is not None:
                yield found

    def any_in(self, args: Any) -> Tensor | None:
        """The first of them."""
        return next(self.all_in(args), None)

    def apply(self, like: Tensor, func: Any, name: str, args: Any, kwargs: Any) -> tuple[bool, Any]:
        """Whether ``func`` takes surrogates (``like`` is one of them), and what it returns."""
        if name == "where" and len(args) == 3 and self.of(args[0]) is not None:
            return True, self._where(func, *args)
        if name == "masked_fill" and len(args) == 3 and self.of(args[1]) is not None:
            x, mask, value = args
            return True, self._where(lambda m, yes, no: func(no, m, yes), mask, value, x)
        if name == "one_hot":
            plain = func(*args, **kwargs)
            if (one_hot := self.one_hot(args[0])) is None:
                return False, None
            more = plain.shape[-1] - one_hot.shape[-1]  # classes for padding, or none of the last
            self.pair(plain, torch.nn.functional.pad(one_hot, (0, more)))
            return True, plain
        if name in CLASS_LOSSES:
            return self._class_loss(func, name, args, kwargs)
        if name in _LOGIC:
            parts = [self._floating(value, like) for value in args]
            return True, self._beside(func(*args, **kwargs), _LOGIC[name](*parts))
        if name in _IN_PLACE:
            return True, self._in_place(func, name, args, kwargs, like)
        if (name in READS or name in WRITES) and self._is_indexed(name, args, kwargs):
            return self._by_index(func, name, args, kwargs)
        if name not in _ARITHMETIC or self._is_indexed(name, args, kwargs):
            return False, None
        plain = func(*args, **kwargs)
        if name in _REARRANGING and args[0] in self._one_hot:
            one_hot = self._one_hot[args[0]]
            places = torch.arange(args[0].numel(), device=plain.device).view(args[0].shape)
            places = func(places, *args[1:], **kwargs)  # where each number has come from
            rows = one_hot.flatten(0, -2).index_select(0, places.flatten())
            self.index(plain, rows.view(*plain.shape, -1))
            return True, plain
        if name in _CASTS:
            if plain.dtype == torch.bool != args[0].dtype:
                return False, None  # a comparison with 0
            return True, self._beside(plain, self._floating(args[0]))
        place, word = _INDEX_OF.get(name, (len(args), ""))
        args = [v if i == place else self._floating(v, like) for i, v in enumerate(args)]
        kwargs = {k: v if k == word else self._floating(v, like) for k, v in kwargs.items()}
        kwargs.pop("dtype", None)
        return True, self._beside(plain, func(*args, **kwargs))

    def _is_indexed(self, name: str, args: Any, kwargs: Any) -> bool:
        """Whether a surrogate is asked for as an index, which has no slope."""
        place, word = _INDEX_OF.get(name, (len(args), ""))
        return self.any_in([*args[place : place + 1], kwargs.get(word)]) is not None

    def _by_index(self, func: Any, name: str, args: Any, kwargs: Any) -> tuple[bool, Any]:
        """Values that are read or written where a drawn index points."""
        key = key_of(name, args, kwargs)
        drawn = {i: self.one_hot(key.parts[i]) for i in key.places} if key is not None else {}
        carried = {i: one_hot for i, one_hot in drawn.items() if one_hot is not None}
        if key is None or any(self.of(key.parts[i]) is not None for i in drawn.keys() - carried):
            return False, None
        if name in WRITES:
            return self._write(func, name, args, kwargs, key, carried)
        plain, key.source = func(*args, **kwargs), self._floating(key.source)
        slopes = [slope_of_read(key, i, h - h.detach()) for i, h in carried.items()]
        value = plain
        if not plain.is_floating_point():
            value = func(self._floating(args[0], slopes[0]), *args[1:], **kwargs)
        return True, self._beside(plain, sum(slopes, value))

    def _write(
        self, func: Any, name: str, args: Any, kwargs: Any, key: Key, carried: dict[int, Tensor]
    ) -> tuple[bool, Any]:
        (place, one_hot), *more = carried.items()
        index, puts = key.parts[place], WRITES[name]
        each = writes_apart(key, place) if puts else 1
        members = self._members.get(index) if each == index.shape[-1] else None
        if more or (each != 1 and members is None):  # two may meet: that is not linear
            return False, None
        if members is not None and not (isinstance(key.value, Tensor) and key.value.numel() > 1):
            found = members()
            if found is not None:
                one_hot = (found / each).unsqueeze(-2).expand(one_hot.shape)
        target, in_place = args[0], name.endswith("_")
        before = self._floating(target, one_hot).clone()
        self._require_finite(one_hot, key.value, before if puts else 0.0)
        slope = slope_of_write(key, place, one_hot - one_hot.detach(), before, puts)
        plain = func(*args, **kwargs)
        if not target.is_floating_point():
            values = [
                v if i == _INDEX_OF[name][0] else self._floating(v, one_hot)
                for i, v in enumerate(args)
            ]
            values[0] = before
            made = func(*values, **kwargs)
            self.pair(target if in_place else plain, (before if in_place else made) + slope)
            return True, plain
        if not in_place:
            return True, plain + slope
        target += slope
        return True, plain

    def _beside(self, plain: Any, surrogate: Tensor) -> Any:
        if plain.is_floating_point():
            return surrogate.to(plain.dtype)
        self.pair(plain, surrogate)
        return plain

    def _in_place(self, func: Any, name: str, args: Any, kwargs: Any, like: Tensor) -> Any:
        others = [self._floating(value) for value in args[1:]]
        if args[0].is_floating_point():
            return func(args[0], *others, **kwargs)
        surrogate = _IN_PLACE[name](self._floating(args[0], like), *others, **kwargs)
        return self._beside(func(*args, **kwargs), surrogate)

    def _class_loss(self, func: Any, name: str, args: Any, kwargs: Any) -> tuple[bool, Any]:
        one_hot = self.one_hot(args[1])
        if one_hot is None or kwargs["reduce"] is not None or kwargs["size_average"] is not None:
            return False, None
        plain = func(*args, **kwargs)
        return True, plain + slope_of_class_loss(name, args[0], one_hot, plain, kwargs)

    def _where(self, func: Any, mask: Tensor, yes: Any, no: Any) -> Any:
        surrogate: Tensor = self._floating(mask)
        plain = func(mask, yes, no)
        yes, no = self._floating(yes), self._floating(no)
        gap = torch.as_tensor(yes).detach() - torch.as_tensor(no).detach()
        self._require_finite(surrogate, gap)
        step = (surrogate - surrogate.detach()) * gap.nan_to_num(posinf=0.0, neginf=0.0)
        return self._beside(plain, func(mask, yes, no) + step)

    def _require_finite(self, surrogate: Tensor, *values: Any) -> None:
        """Note where a draw puts infinite values: they have no part in the slope."""
        if not all(bool(torch.as_tensor(value).isfinite().all()) for value in values):
            self._report.cut("a choice between infinite values", surrogate)

    def _floating(self, value: Any, like: Tensor | None = None) -> Any:
        """The surrogate of a value, where it has one, and else itself.

        With ``like``, other integers become floating numbers of its type: torch multiplies matrices
        of one type only.
        """
        if isinstance(value, list | tuple):
            return type(value)(self._floating(part, like) for part in value)
        if (surrogate := self.of(value)) is not None:
            return surrogate
        whole = isinstance(value, Tensor) and not value.is_floating_point()
        return value.to(like.dtype) if whole and like is not None else value
