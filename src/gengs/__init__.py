"""Backpropagate through any discrete distribution, in PyTorch."""

__version__ = "0.1.0"

from typing import TYPE_CHECKING, Any

from . import lab, models
from .distributions import *  # noqa: F403
from .distributions import __all__ as _laws
from .estimators import *  # noqa: F403
from .estimators import __all__ as _estimators

__all__ = ["__version__", "lab", "models", *_laws, *_estimators]

if TYPE_CHECKING:
    from .models.topic_model import TopicModel as TopicModel


def __getattr__(name: str) -> Any:
    """``gengs.TopicModel``, imported when it is asked for: it needs scikit-learn."""
    if name != "TopicModel":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        from .models.topic_model import TopicModel
    except ImportError as error:
        raise ImportError(
            f"gengs.TopicModel needs more packages ({error.name}): pip install 'gengs[apps]'"
        ) from error
    return TopicModel
