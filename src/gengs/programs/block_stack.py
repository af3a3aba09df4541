"""Which program is running: for each thread and task a stack of blocks, the innermost last."""

from __future__ import annotations

__all__ = [
    "BLOCKS",
    "captures",
    "current",
    "in_user_code",
    "mine",
    "open_programs",
    "outermost",
    "quiet",
]

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .block import Block
    from .torch_mode import ProgramMode

BLOCKS: ContextVar[tuple[Block, ...]] = ContextVar("gengs_blocks", default=())
"""The blocks that are open, be it under ``no_grad``; the outermost first."""

_quiet: ContextVar[bool] = ContextVar("gengs_quiet", default=False)


def current() -> Block:
    """The innermost block."""
    return BLOCKS.get()[-1]


def outermost() -> Block:
    """The outermost block, which keeps the books."""
    return BLOCKS.get()[0]


def open_programs() -> bool:
    """Whether a block is open in this thread or task."""
    return bool(BLOCKS.get())


def captures(mode: ProgramMode | None = None) -> bool:
    """Whether the program makes the draws: in a block, not in our own code, with gradients.

    The ``mode`` of another task, which has a block of its own, is not meant.
    """
    open_blocks = BLOCKS.get()
    mine = bool(open_blocks) and (mode is None or open_blocks[0].mode is mode)
    return mine and in_user_code()


def mine(mode: ProgramMode) -> bool:
    """Whether the block of this thread or task has this mode."""
    open_blocks = BLOCKS.get()
    return bool(open_blocks) and open_blocks[0].mode is mode


def in_user_code(gradients: bool = True) -> bool:
    """Whether it is the user's code that runs, with gradients or, if told so, without."""
    return not _quiet.get() and torch.is_grad_enabled() is gradients


@contextmanager
def quiet() -> Iterator[None]:
    """Interception is off in here."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)
