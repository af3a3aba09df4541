"""Parts for your own model: posteriors from a network's output, fixed priors, bounds."""

from .count_latents import CountLatents
from .fixed_prior import FixedPrior, Standardise
from .latent_model import LatentModel
from .subset_latents import SubsetLatents

__all__ = ["CountLatents", "FixedPrior", "LatentModel", "Standardise", "SubsetLatents"]
