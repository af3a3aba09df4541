"""A property that is made when first asked for, and kept for all who ask later.

What is kept must serve everyone: it is not made in inference mode, whose tensors cannot be trained
with; it is not kept inside ``vmap`` or ``torch.func.grad``, whose tensors end with them; nor inside
an activation checkpoint, which wants the same work done twice.
"""

from __future__ import annotations

__all__ = ["belongs_to_a_passage", "once", "outside_inference_mode"]

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import torch

from .validation import inside_transform

Value = TypeVar("Value")


class once(Generic[Value]):
    """The decorator; the attribute of the same name holds what was made."""

    def __init__(self, make: Callable[[Any], Value]) -> None:
        self.make = make
        self.name = make.__name__
        self.__doc__ = make.__doc__

    def __get__(self, instance: Any, owner: type | None = None) -> Value:
        if instance is None:
            return self  # type: ignore[return-value]  # the class's own attribute
        value = outside_inference_mode(lambda: self.make(instance))
        if torch.compiler.is_compiling() or not belongs_to_a_passage():
            setattr(instance, self.name, value)
        return value


def outside_inference_mode(make: Callable[[], Value]) -> Value:
    """What ``make`` returns, as tensors that can be trained with."""
    # a compiler cannot tell the mode; others do not leave it in vain, which takes a while
    if torch.compiler.is_compiling() or torch.is_inference_mode_enabled():
        with torch.inference_mode(False):
            return make()
    return make()


def belongs_to_a_passage() -> bool:
    """Whether what is made now belongs to a transform or a checkpoint."""
    return inside_transform() or _saved_tensor_hooks() is not None


def _saved_tensor_hooks() -> Any:
    return torch._C._autograd._top_saved_tensors_default_hooks(True)
