"""A mean and its standard error, as tables print them."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import mean, stdev


def spread(values: Sequence[float], digits: int = 2) -> str:
    """``mean ± standard error``; the mean alone of one value, nothing of none."""
    if not values:
        return ""
    error = f" ± {stdev(values) / len(values) ** 0.5:.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{error}"
