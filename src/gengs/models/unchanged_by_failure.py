"""All or nothing: an estimator whose method fails is what it was before.

A half-trained model must not look like a trained one: what ``fit`` sets on the way is taken back
where it raises, or where somebody interrupts it.
"""

from __future__ import annotations

__all__ = ["unchanged_by_failure"]

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def unchanged_by_failure(estimator: object) -> Iterator[None]:
    """Give an estimator its former attributes back if the block does not end well.

    Attributes that the block *replaced* are as before; what it changed inside of one stays changed.
    """
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:  # an interrupt, too
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
