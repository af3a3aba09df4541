"""Numbers below 1e-38, which make a step half as slow again, taken as zero while a model trains.

Adam remembers each gradient for a while, a tenth less at every step. The weights of a pixel that is
black in nearly all images, or of a word in few documents, get no gradient at most steps, so that
after some 700 of them their memory is a *subnormal* number. A processor takes a hundred times as
long for one, and on MNIST they come by the ten thousand. They change nothing: beside a weight they
round away.

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
    large operation, and they stay as they were started: be early. Where a processor cannot do it,
    nothing happens.
    """
    before = _flushes()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)


def _flushes() -> bool:
    """Whether this thread takes subnormal numbers as zero now; torch can be told, but not asked."""
    return not (torch.tensor(1e-30) * 1e-12).item()
