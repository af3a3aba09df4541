"""What changes while a model trains: the temperature of GenGS, the weight of the divergence."""

__all__ = ["anneal", "warm_up"]

from collections.abc import Iterable
from typing import Any

from torch import nn

from gengs.estimators.gengs import GenGS
from gengs.estimators.spec import parse_call
from gengs.estimators.temperature import Exponential, Linear


def anneal(
    estimators: Iterable[tuple[str, nn.Module]], ends: tuple[float, float], steps: int
) -> dict[str, Any]:
    """One temperature that falls over so many steps, for each GenGS that was not given its own.

    The estimators are given as they were typed, and as they were made.
    """
    schedule, followed = Exponential(*ends, steps=steps), False
    for text, estimator in estimators:
        _, arguments, named = parse_call(text)
        its_own = arguments or "temperature" in named  # the first argument is the temperature
        if isinstance(estimator, GenGS) and not its_own:
            estimator.temperature, followed = schedule, True
    return {"temperature": schedule} if followed else {}


def warm_up(model: Any, steps: int) -> dict[str, Any]:
    """Let the weight of a model's divergence rise to 1 over so many steps; 0 for not at all."""
    if not steps:
        return {}
    # a schedule's values are positive; the weight starts at one step's worth
    model.kl_weight = Linear(1 / steps, 1.0, steps)
    return {"kl_weight": model.kl_weight}
