"""Models with discrete latent variables, ready to train or to build on."""

from .autoencoder import Autoencoder
from .bag_of_words import BagEncoder, WordDecoder
from .gaussian_vae import GaussianVAE
from .networks import PRESETS, Preset, mlp, mlp_pair
from .nvdm import NVDM
from .nvpdef import NVPDEF
from .positive import PositiveLinear
from .topic_network import Perplexity, TopicNetwork, perplexity
from .vae import VAE

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
