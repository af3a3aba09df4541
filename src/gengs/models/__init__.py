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

_HOMES = {
    "topics": "bag_encoder layers nvdm nvpdef topic_network topic_perplexity word_decoder",
    "vae": "autoencoder count_vae gaussian_vae networks",
}


def __getattr__(name: str) -> Any:
    """Import the models, and torch, when one is asked for: help shows defaults without them."""
    for folder, files in () if name.startswith("__") else _HOMES.items():
        for file in files.split():
            found = vars(import_module(f".{folder}.{file}", __name__))
            globals().update({n: found[n] for n in __all__ if n in found})
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]
