"""Topic models with Poisson topics, and the commands that fit them to text.

>>> from gengs_topics import TopicModel
>>> TopicModel(20)
TopicModel(n_components=20)
"""

__all__ = [
    "NVDM",
    "NVPDEF",
    "BagEncoder",
    "Perplexity",
    "PositiveLinear",
    "TopicModel",
    "TopicNetwork",
    "WordDecoder",
    "perplexity",
]

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .model.bag_encoder import BagEncoder
    from .model.layers import PositiveLinear
    from .model.nvdm import NVDM
    from .model.nvpdef import NVPDEF
    from .model.topic_model import TopicModel
    from .model.topic_network import TopicNetwork
    from .model.topic_perplexity import Perplexity, perplexity
    from .model.word_decoder import WordDecoder

_HOMES = {
    "NVDM": "nvdm",
    "NVPDEF": "nvpdef",
    "BagEncoder": "bag_encoder",
    "Perplexity": "topic_perplexity",
    "PositiveLinear": "layers",
    "TopicModel": "topic_model",
    "TopicNetwork": "topic_network",
    "WordDecoder": "word_decoder",
    "perplexity": "topic_perplexity",
}


def __getattr__(name: str) -> Any:
    """Import the models, and torch, when one is asked for: help shows defaults without them."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        module = import_module(f".model.{_HOMES[name]}", __name__)
    except ImportError as error:
        raise ImportError(
            f"gengs_topics.{name} needs more packages ({error.name}): pip install 'gengs[apps]' "
            "(in a clone: pip install '.[apps]')"
        ) from error
    return getattr(module, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
