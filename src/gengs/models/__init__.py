"""Models with discrete latent variables, ready to train or to build on."""

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
