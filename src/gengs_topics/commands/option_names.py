"""Errors by the names of options: what a function calls ``min_df`` is ``--min-df`` for a user."""

__all__ = ["by_option_names"]

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from gengs_experiments.runs.config import option

from .topics_settings import FitConfig, Reading

_QUOTED = re.compile(r"`([a-z_]+)`")


@contextmanager
def by_option_names() -> Iterator[None]:
    """Let a ``ValueError`` of the block name the options in place of the arguments."""
    names = {field.name for kind in (FitConfig, Reading) for field in fields(kind)}
    try:
        yield
    except ValueError as error:
        told = _QUOTED.sub(lambda m: option(m[1]) if m[1] in names else m[0], str(error))
        if told == str(error):
            raise
        raise ValueError(told) from None
