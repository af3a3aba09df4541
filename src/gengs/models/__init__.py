"""Models with discrete latent variables, ready to train or to build on."""

from .autoencoder import Autoencoder
from .gaussian_vae import GaussianVAE
from .networks import PRESETS, Preset, mlp, mlp_pair
from .vae import VAE

__all__ = ["PRESETS", "VAE", "Autoencoder", "GaussianVAE", "Preset", "mlp", "mlp_pair"]
