"""How many outcomes there are, and a word where they are too many to list."""

__all__ = ["MOST_OUTCOMES", "log_choose", "log_orders", "refuse_many"]

import math
from typing import Any

MOST_OUTCOMES = 100_000
"""Past this many outcomes enumeration refuses."""


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
            f"most {MOST_OUTCOMES:,}); gengs.rsample, MidCDF, FiniteDifference, GenGS, RLOO and "
            "REINFORCE need no list of them."
        )
