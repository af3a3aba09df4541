"""Backpropagate through any discrete distribution, in PyTorch."""

__version__ = "0.1.0"

from . import lab, models
from .distributions import *  # noqa: F403
from .distributions import __all__ as _laws
from .estimators import *  # noqa: F403
from .estimators import __all__ as _estimators

__all__ = ["__version__", "lab", "models", *_laws, *_estimators]
