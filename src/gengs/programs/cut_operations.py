"""Which operations end a gradient.

Most show it in what they return: booleans and integers made of numbers that carry a gradient, or a
number that carries none any more. The others, whose slope torch takes to be 0, or which jump
between pieces of the same slope, are known by name.
"""

__all__ = ["ending", "moving", "no_derivative", "tensors_in"]

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

_NAMED = {
    **dict.fromkeys(("any", "all", "nonzero", "count_nonzero", "argwhere"), "compared"),
    **dict.fromkeys(("argmax", "argmin", "argsort", "searchsorted", "bucketize"), "compared"),
    **dict.fromkeys(("equal", "allclose", "is_nonzero", "__bool__", "__contains__"), "compared"),
    **dict.fromkeys(("unique", "unique_consecutive", "histc", "histogram"), "compared"),
    **dict.fromkeys(("long", "int", "short", "char", "byte", "bool"), "cast to integers"),
    **dict.fromkeys(("round", "floor", "ceil", "trunc", "fix", "sign", "sgn"), "rounded"),
    **dict.fromkeys(("__floordiv__", "__rfloordiv__", "floor_divide", "heaviside"), "rounded"),
    **dict.fromkeys(("remainder", "fmod", "frac", "__rmod__"), "taken modulo a number"),
    **dict.fromkeys(("detach", "tensor"), "detached"),
    **dict.fromkeys(("item", "tolist", "numpy", "__array__"), "taken out of torch"),
    **dict.fromkeys(("__float__", "__int__", "__index__", "__complex__"), "taken out of torch"),
}
_CHECKS = frozenset(("isnan", "isinf", "isfinite", "isneginf", "isposinf", "isreal"))


def ending(name: str, args: Any, kwargs: dict[str, Any], result: Any) -> str | None:
    """How a function of torch's ends the gradients of its arguments; ``None`` if it does not."""
    kind = _NAMED.get(name) or _NAMED.get(name.rstrip("_"))
    if kind is not None or name in _CHECKS:
        return kind
    if kwargs.get("rounding_mode"):
        return "rounded"
    if name == "__setitem__":
        result = args[0]
    # what is asked for its shape, its type or its device alone
    if not isinstance(result, Tensor) or name.endswith("_like") or name.startswith("new_"):
        return None
    if not (result.is_floating_point() or result.is_complex()):
        return "compared" if result.dtype == torch.bool else "cast to integers"
    if not result.requires_grad or no_derivative(result):
        return "put through a function without a derivative"
    return None


def no_derivative(result: Any) -> bool:
    """Whether torch would raise on the way back."""
    return isinstance(result, Tensor) and type(result.grad_fn).__name__ == "NotImplemented"


def tensors_in(args: Any) -> Iterator[Tensor]:
    """The tensors among arguments, lists of tensors included."""
    for value in args:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from tensors_in(value)


def moving(args: Any) -> Iterator[Tensor]:
    """Those of them that require a gradient."""
    return (value for value in tensors_in(args) if value.requires_grad)
