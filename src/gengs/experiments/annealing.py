"""One temperature that falls while a model trains, for each GenGS that was not given its own."""

from __future__ import annotations

__all__ = ["anneal"]

from collections.abc import Iterable
from typing import Any

from torch import nn

from ..distributions.temperature import Exponential
from ..estimators.gengs import GenGS
from ..spec import parse_call


def anneal(
    estimators: Iterable[tuple[str, nn.Module]], ends: tuple[float, float], steps: int
) -> dict[str, Any]:
    """The schedule by its name; nothing where nobody follows it.

    Args:
        estimators: As they were typed, and as they were made.
        ends: The first temperature and the last.
        steps: How many steps lie between.
    """
    followers = [
        estimator
        for text, estimator in estimators
        if isinstance(estimator, GenGS) and not _has_its_own(text)
    ]
    if not followers:
        return {}
    schedule = Exponential(*ends, steps=steps)
    for follower in followers:
        follower.temperature = schedule
    return {"temperature": schedule}


def _has_its_own(text: str) -> bool:
    _, arguments, named = parse_call(text)
    return bool(arguments) or "temperature" in named  # the first argument is the temperature
