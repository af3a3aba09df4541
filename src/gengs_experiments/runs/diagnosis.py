"""Which tensor went wrong first.

A loss of NaN says nothing about its cause. The step is made once more, with the same batch, the
same weights and the same random numbers, and every module is watched: the first one whose output is
not finite has a name.
"""

from __future__ import annotations

__all__ = ["NonFiniteError", "bad_forward", "bad_gradient", "bad_parameter"]

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

if TYPE_CHECKING:
    from .training import Task


class NonFiniteError(FloatingPointError):
    """The training met NaN or infinity and stopped."""


def bad_gradient(task: Task) -> str:
    """The name of a gradient that is not finite."""
    grads = ((f"the gradient of {name}", p.grad) for name, p in _named(task, "parameters"))
    return _first(grads) or "the gradient norm overflows"


def bad_parameter(task: Task) -> str:
    """The name of the first parameter that is not finite, or nothing."""
    return _first((f"the parameter {name}", p) for name, p in _named(task, "parameters"))


def bad_forward(task: Task, batch: Any) -> str:
    """The name of the first tensor of a step that is not finite, or nothing."""
    buffers = ((f"the buffer {name}", buffer) for name, buffer in _named(task, "buffers"))
    found = bad_parameter(task) or _first(buffers) or _first(_tensors(batch, "the batch"))
    if found:
        return found
    seen: list[str] = []
    outputs: Any = {}
    with contextlib.ExitStack() as stack:
        for name, part in _named(task, "modules"):

            def watch(part: nn.Module, inputs: Any, output: Any, name: str = name) -> None:
                seen.append(_first(_tensors(output, f"the output of {name}")))

            stack.callback(part.register_forward_hook(watch).remove)
        # A law may refuse NaN as its parameter; the culprit is known by then.
        with contextlib.suppress(ValueError):
            outputs = task.step(batch)
    results = {"loss": outputs} if isinstance(outputs, Tensor) else outputs
    named = ((f"the result {name!r} of the step", value) for name, value in results.items())
    return next(filter(None, seen), "") or _first(named)


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
