r"""The weight of the inflow in the mid rule of one-hot vectors and tables of vectors.

There probability flows from every atom to every other. At the drawn atom b, the gradient in the
logits is a mixture of two halves,

.. math::
    (1 - w)\, p \odot (G - \bar G) + w\, (z - p)(G_b - \bar G),

what flows *out* of the draw, to all K atoms at once, and what flows *into* it, of which one draw
sees one atom. Both have the right mean for linear costs, whatever w. With :math:`w = 1/2` the mean
is exact for quadratic costs too; with :math:`w = 0` the rule is plain straight-through. The inflow
is noisy: for a flat law its variance is about K times the squared size of the outflow. So the
weight trades bias for variance, and the more categories there are, the less of the inflow is worth
its noise. :func:`inflow_weight` is 1/2, exact, up to 32 categories, and falls beyond as
:math:`144 / (256 + K)`, a compromise found by training (``results/categories``).
"""

__all__ = ["check_weight", "inflow_weight"]

from numbers import Real


def inflow_weight(categories: int) -> float:
    """The default weight for so many categories.

    Example:
        >>> [round(inflow_weight(k), 3) for k in (2, 32, 128, 1024, 8192)]
        [0.5, 0.5, 0.375, 0.113, 0.017]
    """
    return min(0.5, 144 / (256 + categories))


def check_weight(owner: str, weight: float | None) -> None:
    """Raise unless ``weight`` is a number from 0 to 1, or ``None`` for the default."""
    if weight is None:
        return
    if isinstance(weight, bool) or not isinstance(weight, Real):
        raise TypeError(f"{owner} expects a number as `weight`, but got {weight!r}.")
    if not 0 <= weight <= 1:
        raise ValueError(f"{owner} expects a `weight` from 0 to 1, but got {weight!r}.")
