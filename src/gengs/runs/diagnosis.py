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


def bad_gradient(modules: Mapping[str, nn.Module]) -> str:
    """The name of a gradient that is not finite."""
    named = ((name, parameter.grad) for name, parameter in _named(modules, "parameters"))
    return (
        _first((f"the gradient of {name}", grad) for name, grad in named)
        or "the gradient norm overflows"
    )


def bad_forward(task: Task, batch: Any) -> str:
    """The name of the first tensor of a step that is not finite, or nothing.

    Put the random generators back to before the step first.
    """
    found = bad_parameter(task) or _first(
        (f"the buffer {name}", b) for name, b in _named(task.modules, "buffers")
    )
    found = found or _first(_tensors(batch, "the batch"))
    if found:
        return found
    seen: list[str] = []
    hooks = []
    for prefix, module in task.modules.items():
        for name, part in module.named_modules(prefix=prefix):

            def watch(part: nn.Module, inputs: Any, output: Any, name: str = name) -> None:
                bad = _first(_tensors(output, f"the output of {name}"))
                if bad:
                    seen.append(bad)

            hooks.append(part.register_forward_hook(watch))
    outputs: Any = {}
    try:
        # A law may refuse NaN as its parameter; the culprit is known by then.
        with contextlib.suppress(ValueError):
            outputs = task.step(batch)
    finally:
        for hook in hooks:
            hook.remove()
    if seen:
        return seen[0]
    results = {"loss": outputs} if isinstance(outputs, Tensor) else outputs
    return _first((f"the result {name!r} of the step", value) for name, value in results.items())


def bad_parameter(task: Task) -> str:
    """The name of the first parameter that is not finite, or nothing."""
    return _first((f"the parameter {name}", p) for name, p in _named(task.modules, "parameters"))


def _named(modules: Mapping[str, nn.Module], kind: str) -> Iterator[tuple[str, Tensor]]:
    for prefix, module in modules.items():
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
