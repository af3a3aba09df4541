"""Models with discrete latent variables, ready to train or to build on."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .topics.bag_encoder import BagEncoder
    from .topics.layers import PositiveLinear
    from .topics.nvdm import NVDM
    from .topics.nvpdef import NVPDEF
    from .topics.topic_network import TopicNetwork
    from .topics.topic_perplexity import Perplexity, perplexity
    from .topics.word_decoder import WordDecoder
    from .vae.autoencoder import Autoencoder
    from .vae.count_vae import VAE
    from .vae.gaussian_vae import GaussianVAE
    from .vae.networks import PRESETS, Preset, mlp, mlp_pair

__all__ = [
    "NVDM",
    "NVPDEF",
    "PRESETS",
    "VAE",
    "Autoencoder",
    "BagEncoder",
    "GaussianVAE",
    "Perplexity",
    "PositiveLinear",
    "Preset",
    "TopicNetwork",
    "WordDecoder",
    "mlp",
    "mlp_pair",
    "perplexity",
]

_HOMES = (
    ".topics.bag_encoder",
    ".topics.layers",
    ".topics.nvdm",
    ".topics.nvpdef",
    ".topics.topic_network",
    ".topics.topic_perplexity",
    ".topics.word_decoder",
    ".vae.autoencoder",
    ".vae.count_vae",
    ".vae.gaussian_vae",
    ".vae.networks",
)


def __getattr__(name: str) -> Any:
    """Import the models, and torch, when one is asked for: help shows defaults without them."""
    for home in () if name.startswith("__") else _HOMES:
        module = import_module(home, __name__)
        globals().update({n: vars(module)[n] for n in __all__ if n in vars(module)})
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]
