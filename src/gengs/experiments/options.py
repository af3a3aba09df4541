"""Numbers out of range, by the names of the options that people typed.

A check deep inside a model would speak of its own arguments; here a command says which option was
wrong, before anything is read or trained.
"""

from __future__ import annotations

__all__ = ["check_least", "check_positive", "option"]

import math
from collections.abc import Mapping


def option(name: str) -> str:
    """The option of a field: ``kl_warm_up`` is typed ``--kl-warm-up``."""
    return "--" + name.replace("_", "-")


def check_least(config: object, least: Mapping[str, float]) -> None:
    """Raise for the first field below its least value, or not finite; ``None`` is left alone.

    Args:
        config: The dataclass of a command.
        least: Fields, each with the least value it may have.
    """
    for name, bound in least.items():
        number = getattr(config, name)
        if number is not None and not bound <= number < math.inf:
            kind = "" if math.isfinite(number) else "a finite number of "
            raise ValueError(
                f"expected {kind}at least {bound} for {option(name)}, but got {number}."
            )


def check_positive(config: object, *names: str) -> None:
    """Raise for the first field that is not positive and finite; ``None`` is left alone."""
    for name in names:
        number = getattr(config, name)
        if number is not None and not 0 < number < math.inf:
            raise ValueError(
                f"expected a positive, finite number for {option(name)}, but got {number}."
            )
