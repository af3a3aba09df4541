"""A tensor that depends on a size, a type, a device: made once, and kept for all."""

from __future__ import annotations

__all__ = ["constant"]

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

import torch
from torch import Tensor

from .validation import inside_transform

Key = ParamSpec("Key")

_MOST = 64
"""How many of a kind are kept."""


def constant(make: Callable[Key, Tensor]) -> Callable[Key, Tensor]:
    """The decorator. Nobody may write into what the function returns.

    What is kept must serve everyone: it is not made in inference mode, whose tensors cannot be
    trained with, and not kept where it is no tensor with numbers in it (a compiler's, a
    transform's).
    """
    kept: dict[tuple[object, ...], Tensor] = {}

    @wraps(make)
    def get(*key: Key.args, **named: Key.kwargs) -> Tensor:
        if torch.compiler.is_compiling():
            return make(*key, **named)
        name = (*key, *sorted(named.items()))
        value = kept.get(name)
        if value is None:
            with torch.inference_mode(False):
                value = make(*key, **named)
            if type(value) is Tensor and not inside_transform():
                if len(kept) >= _MOST:
                    kept.clear()
                kept[name] = value
        return value

    return get
