"""How many outcomes there are, and a word where they are too many to list."""

__all__ = [
    "MOST_OUTCOMES",
    "NEED_NO_LIST",
    "log_choose",
    "log_orders",
    "refuse_many",
    "require_tensor",
]

import math
from typing import Any

from torch import Tensor

MOST_OUTCOMES = 100_000
"""Past this many outcomes enumeration refuses."""
NEED_NO_LIST = (
    "gengs.rsample, MidCDF, FiniteDifference, GenGS, RLOO and REINFORCE need no list of them."
)
"""What to take where outcomes cannot be listed."""


def log_choose(n: int, k: int) -> float:
    """The logarithm of the number of k-subsets of n."""
    return log_orders(n, k) - math.lgamma(k + 1)


def log_orders(n: int, k: int) -> float:
    """The logarithm of the number of orders of k out of n."""
    return math.lgamma(n + 1) - math.lgamma(n - k + 1)


def refuse_many(law: Any, log_number: float) -> None:
    """Raise a ``ValueError`` where a distribution has too many outcomes to list."""
    if log_number > math.log(MOST_OUTCOMES) + 1e-9:
        raise ValueError(
            f"{law!r} has about 1e{log_number / math.log(10):.0f} outcomes, too many to list (at "
            f"most {MOST_OUTCOMES:,}); {NEED_NO_LIST}"
        )


def require_tensor(owner: str, value: Any) -> None:
    """Raise a ``TypeError`` unless the value of a ``log_prob`` is a tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{owner}.log_prob expects `value` as a tensor, but got {type(value).__name__}."
        )
