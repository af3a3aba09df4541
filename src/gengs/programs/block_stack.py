"""Which program is running: for each thread and task a stack of blocks, the innermost last."""

from __future__ import annotations

__all__ = ["blocks", "captures", "current", "enter", "in_user_code", "leave", "outermost", "quiet"]

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .program import Program
    from .torch_mode import ProgramMode

_blocks: ContextVar[tuple[Program, ...]] = ContextVar("gengs_blocks", default=())
_quiet: ContextVar[bool] = ContextVar("gengs_quiet", default=False)


def blocks() -> tuple[Program, ...]:
    """The blocks that are open, be it under ``no_grad``; the outermost first."""
    return _blocks.get()


def current() -> Program:
    """The innermost block."""
    return _blocks.get()[-1]


def outermost() -> Program:
    """The outermost block, which keeps the books."""
    return _blocks.get()[0]


def enter(program: Program) -> None:
    """Start a block inside the others."""
    _blocks.set((*_blocks.get(), program))


def leave(program: Program) -> None:
    """End a block, and what was started inside and never ended."""
    if program in (around := _blocks.get()):
        _blocks.set(around[: around.index(program)])


def captures(mode: ProgramMode | None = None) -> bool:
    """Whether the program makes the draws: in a block, not in our own code, with gradients.

    The ``mode`` of another task, which has a block of its own, is not meant.
    """
    open_blocks = _blocks.get()
    mine = bool(open_blocks) and (mode is None or open_blocks[0].mode is mode)
    return mine and in_user_code()


def in_user_code() -> bool:
    """Whether it is the user's code that runs, with gradients."""
    return not _quiet.get() and torch.is_grad_enabled()


@contextmanager
def quiet() -> Iterator[None]:
    """What torch is asked in here is our own affair."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)
