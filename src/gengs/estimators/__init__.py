"""One estimator, one file, one formula, one reference.

Every estimator answers the same call, ``expect(cost, q)``; :data:`ALL` lists them, and
:func:`catalogue` tells their facts.
"""

from . import temperature
from .base import BoundaryWarning, Cost, Estimator, Pathwise, StepCostWarning
from .catalogue import *  # noqa: F403
from .catalogue import __all__ as _listed

__all__ = [
    "BoundaryWarning",
    "Cost",
    "Estimator",
    "Pathwise",
    "StepCostWarning",
    "temperature",
    *_listed,
]
