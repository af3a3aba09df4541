"""Numbers for people: as many digits as the error allows."""

from __future__ import annotations

__all__ = ["number", "places", "signed", "with_error"]

import math


def number(value: float) -> str:
    """Three digits, all before the point.

    Example:
        >>> number(12345.6), number(0.012345), number(float("nan"))
        ('12,346', '0.0123', 'nan')
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"


def places(error: float) -> int:
    """Digits after the point for one digit of the error, two if it begins with 1 or 2."""
    exponent = math.floor(math.log10(error))
    return max(0, (1 if error < 3 * 10.0**exponent else 0) - exponent)


def with_error(value: float, error: float | None, digits: int | None = None) -> str:
    """A value and its error, to the same place.

    Args:
        value: The value.
        error: Its standard error, where there is one.
        digits: Digits after the point where there is none; by default three significant ones.

    Example:
        >>> with_error(117.4512, 0.5234), with_error(117.4512, None, 2)
        ('117.5 ± 0.5', '117.45')
    """
    if error is None or not 0 < error < math.inf:
        return f"{value:.3g}" if digits is None else f"{value:,.{digits}f}"
    shown = places(error)
    return f"{round(value, shown) + 0.0:,.{shown}f} ± {error:,.{shown}f}"  # no -0.0


def signed(value: float) -> str:
    """With its sign, a real minus.

    Example:
        >>> signed(-3.456), signed(12.0)
        ('−3.46', '+12.00')
    """
    return f"{value:+,.2f}".replace("-", "−") if abs(value) < 100 else f"{value:+,.0f}"
