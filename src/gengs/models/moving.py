"""Laws are no modules: their tensors move to a device or a type with the model that holds them."""

from __future__ import annotations

__all__ = ["moved_like"]

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..distributions.families import twin_of
from ..distributions.truncated import Truncated


def moved_like(law: Distribution, fn: Callable[[Tensor], Tensor]) -> Distribution:
    """The law where ``fn``, as ``Module._apply`` gets it, puts a module's tensors."""
    return _moved(law, partial(_placed, fn))


def _placed(fn: Callable[[Tensor], Tensor], tensor: Tensor) -> Tensor:
    """A constant where ``fn`` puts a module's tensors; it is moved also where they are emptied."""
    like = fn(torch.empty_like(tensor))
    dtype = torch.promote_types(like.dtype, torch.float32)
    return tensor.to(like.device, dtype if tensor.is_floating_point() else like.dtype)


def _moved(law: Distribution, fn: Callable[[Tensor], Tensor]) -> Distribution:
    if isinstance(law, Truncated):
        return law.moved(lambda part: fn(part) if isinstance(part, Tensor) else _moved(part, fn))
    twin = twin_of(law)
    for name, part in vars(law).items():
        if isinstance(part, Tensor):
            vars(twin)[name] = fn(part)
        elif isinstance(part, Distribution):
            vars(twin)[name] = _moved(part, fn)
    return twin
