"""Numbers below 1e-38 are taken as zero while a model trains: they make Adam several times as slow.

Adam remembers each gradient for a while, a tenth less at every step. A weight whose gradients have
ended (it leads to a unit that died, to a pixel that is black in nearly all images, to a word of few
documents) has a memory that after some 700 steps is a *subnormal* number, for which a processor
takes a hundred times as long as for another. They change nothing: beside a weight they round away.

In a loop of your own, ``torch.set_flush_denormal(True)`` at its top, before torch has started its
threads, does the same.
"""

from __future__ import annotations

__all__ = ["without_subnormals"]

from collections.abc import Iterator
from contextlib import contextmanager

import torch


@contextmanager
def without_subnormals() -> Iterator[None]:
    """Take subnormal numbers as zero inside; also a decorator.

    It holds for this thread and those that are started inside. torch starts its own at the first
    large operation, and they stay as they were started, afterwards too: be early, and in a process
    that trains. Where a processor cannot do it, nothing happens.
    """
    before = _flushes()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def _flushes() -> bool:
    """Whether this thread takes subnormal numbers as zero now; torch can be told, but not asked."""
    return not (torch.tensor(1e-30, dtype=torch.float32, device="cpu") * 1e-12).item()
