"""Parts for your own model: posteriors from a network's output, fixed priors, bounds."""

from .count_latents import CountLatents
from .fixed_prior import FixedPrior, Standardise
from .latent_model import LatentModel

__all__ = ["CountLatents", "FixedPrior", "LatentModel", "Standardise"]
