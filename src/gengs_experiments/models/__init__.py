"""Variational autoencoders with discrete latent variables, ready to train or to build on."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .autoencoder import Autoencoder
    from .count_vae import VAE
    from .gaussian_vae import GaussianVAE
    from .networks import PRESETS, Preset, mlp, mlp_pair

__all__ = ["PRESETS", "VAE", "Autoencoder", "GaussianVAE", "Preset", "mlp", "mlp_pair"]


def __getattr__(name: str) -> Any:
    """Import the models, and torch, when one is asked for: help shows defaults without them."""
    files = ("autoencoder", "count_vae", "gaussian_vae", "networks")
    for file in () if name.startswith("__") else files:
        found = vars(import_module(f".{file}", __name__))
        globals().update({n: found[n] for n in __all__ if n in found})
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]
