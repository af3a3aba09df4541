"""Which program is running: for each thread and task a stack of blocks, the innermost last."""

from __future__ import annotations

__all__ = ["current", "enter", "leave", "noting", "outermost", "quiet", "running", "watching"]

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .program import Program
    from .watch import Watch

_blocks: ContextVar[tuple[Program, ...]] = ContextVar("gengs_blocks", default=())


class _Quiet(threading.local):
    depth = 0


_quiet = _Quiet()


def enter(program: Program) -> tuple[Program, ...]:
    """Start a block; those around it, outermost first."""
    around = _blocks.get()
    _blocks.set((*around, program))
    return around


def leave(program: Program) -> None:
    """End a block, and what was started inside and never ended."""
    blocks = _blocks.get()
    _blocks.set(blocks[: blocks.index(program)] if program in blocks else blocks)


def current() -> Program:
    """The innermost block."""
    return _blocks.get()[-1]


def outermost() -> Program:
    """The outermost block, which keeps the books."""
    return _blocks.get()[0]


def running() -> bool:
    """Whether a block is open, be it under ``no_grad``."""
    return bool(_blocks.get())


def watching(watch: Watch | None = None) -> bool:
    """Whether draws are to be made by the program: in a block, not in our own code, with grad.

    Args:
        watch: The mode that asks; that of another task, which has a block of its own, is not meant.
    """
    blocks = _blocks.get()
    mine = bool(blocks) and (watch is None or blocks[0].watch is watch)
    return mine and noting()


def noting() -> bool:
    """Whether it is the user's code that runs, with gradients."""
    return not _quiet.depth and torch.is_grad_enabled()


@contextmanager
def quiet() -> Iterator[None]:
    """What torch is asked in here is our own affair."""
    _quiet.depth += 1
    try:
        yield
    finally:
        _quiet.depth -= 1
