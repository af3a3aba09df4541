"""Which tensor is NaN or infinite: a parameter, a buffer, the batch, a result or a gradient."""

from __future__ import annotations

__all__ = ["NonFiniteError", "bad_gradient", "bad_tensor", "diverged"]

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

if TYPE_CHECKING:
    from .training import Task


class NonFiniteError(FloatingPointError):
    """The training met NaN or infinity and stopped."""


def diverged(learning_rate: float) -> str:
    """What a command says of training that diverged."""
    advice = f"choose a smaller --learning-rate than {learning_rate:g} and another folder."
    return f"training diverged: {advice}"


def bad_gradient(task: Task) -> str:
    """The name of a gradient that is not finite."""
    grads = ((f"the gradient of {name}", p.grad) for name, p in _named(task, "parameters"))
    return _first(grads) or "the gradient norm overflows"


def bad_tensor(task: Task, batch: Any = None, outputs: Any = None) -> str:
    """The name of the first tensor of a step that is not finite, or nothing."""
    found = ((f"the parameter {name}", value) for name, value in _named(task, "parameters"))
    buffers = ((f"the buffer {name}", value) for name, value in _named(task, "buffers"))
    results = ((f"the result {name!r} of the step", v) for name, v in (outputs or {}).items())
    return _first(chain(found, buffers, _tensors(batch, "the batch"), results))


def _named(task: Task, kind: str) -> Iterator[tuple[str, Any]]:
    for prefix, module in task.modules.items():
        yield from getattr(module, f"named_{kind}")(prefix=prefix)


def _tensors(value: Any, name: str) -> Iterator[tuple[str, Tensor]]:
    if isinstance(value, Tensor):
        yield name, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _tensors(item, f"{name} ({key})")
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item, name)


def _first(named: Iterable[tuple[str, Tensor | None]]) -> str:
    for name, value in named:
        if value is not None and value.is_floating_point() and not torch.isfinite(value).all():
            return f"{name} is {'nan' if torch.isnan(value).any() else 'infinite'}"
    return ""
