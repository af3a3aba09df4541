"""Which program is running: for each thread a stack of blocks, the innermost last."""

from __future__ import annotations

__all__ = ["current", "enter", "leave", "outermost", "quiet", "running", "watching"]

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .program import Program


class _Running(threading.local):
    def __init__(self) -> None:
        self.blocks: list[Program] = []
        self.quiet = 0


_running = _Running()


def enter(program: Program) -> tuple[Program, ...]:
    """Start a block; those around it, outermost first."""
    around = tuple(_running.blocks)
    _running.blocks.append(program)
    return around


def leave(program: Program) -> None:
    """End a block, and what was started inside and never ended."""
    while _running.blocks and _running.blocks.pop() is not program:
        pass


def current() -> Program:
    """The innermost block of this thread."""
    return _running.blocks[-1]


def outermost() -> Program:
    """The outermost block of this thread, which keeps the books."""
    return _running.blocks[0]


def running() -> bool:
    """Whether this thread is in a block, be it under ``no_grad``."""
    return bool(_running.blocks)


def watching() -> bool:
    """Whether draws are to be made by the program: in a block, not in our own code, with grad."""
    return bool(_running.blocks) and not _running.quiet and torch.is_grad_enabled()


@contextmanager
def quiet() -> Iterator[None]:
    """What torch is asked in here is our own affair."""
    _running.quiet += 1
    try:
        yield
    finally:
        _running.quiet -= 1
