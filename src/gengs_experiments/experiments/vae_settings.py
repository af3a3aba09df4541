"""The settings of ``gengs vae``: what is trained, and what a number may be."""

from __future__ import annotations

__all__ = ["VaeConfig"]

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ..runs.config import check_least, check_positive

if TYPE_CHECKING:
    from ..data import ImageSet


@dataclass(frozen=True)
class VaeConfig:
    """What is trained: everything here changes the numbers, and nothing else does."""

    data: str = "digits"
    """The images: digits (no download), mnist, fashion-mnist, static-mnist, omniglot or
    omniglot-burda; or your own: an .npz or .npy file, a folder of PNG files, idx files.
    The arrays in an .npz are named train and test, or x_train and x_test, or train_images and
    test_images. Of a single array (or folder, or idx file) a tenth is held out to test on."""
    images: int | None = None
    """Train on this many random images only."""
    binarise: Literal["dynamic", "static", "threshold", "none"] = "dynamic"
    """How grey values become black and white; static-mnist is so already."""
    prior: str = "poisson(2)"
    """The prior of each latent, such as poisson(2), geometric(0.25), negative-binomial(3, 0.5); or
    subset(20, 10): each latent is a group of 20 elements of which 10 are chosen, all sets alike; or
    gaussian: the usual VAE as a reference, without estimator, posterior and level."""
    level: int | None = None
    """Truncate prior and posterior to this many atoms; by default the paper's level for the prior,
    all atoms where they are finitely many; 0 for no truncation (explicit posteriors only)."""
    mass: float | None = None
    """Truncate to the window that holds this mass instead (the paper's NP; explicit posteriors
    only)."""
    posterior: Literal["tilted", "implicit", "explicit"] = "tilted"
    """The prior, moved and narrowed; any PMF on its atoms; or a distribution of its family."""
    decoder_input: Literal["standardised", "counts"] = "standardised"
    """Show the decoder counts in units of the prior's mean and deviation, or as they are."""
    estimator: str = "MidCDF(2, antithetic=True)"
    """The gradient estimator with its settings, such as MidCDF, "GenGS(samples=10)", "RLOO(4)"; the
    two antithetic draws of MidCDF by default, for subsets MidCDF(2): they have no order."""
    gaussian_draws: int = 1
    """Draws in a step of the Gaussian reference, in antithetic pairs."""
    temperature: tuple[float, float] = (1.0, 0.1)
    """From where to where the temperature of GenGS falls, by the same factor in each step; a
    temperature among the estimator's own settings is left alone."""
    latents: int = 50
    """The number of latent counts, or of groups of elements."""
    network: Literal["512-256", "256-128", "64-32"] = "256-128"
    """The hidden layers of the encoder; the decoder mirrors them."""
    batch_size: int = 100
    """Images in a step."""
    learning_rate: float = 1e-3
    """Of Adam."""
    epochs: int = 150
    """How often to go through the images."""
    evaluate_every: int | None = None
    """Evaluate after each so many epochs; by default at the end alone."""
    evaluation_images: int = 2000
    """How many training and test images an evaluation takes."""
    likelihood_samples: int = 0
    """Draws for the importance-sampled likelihood, on 500 test images; 0 for none."""
    kl_warm_up: int | None = None
    """Let the weight of the divergence rise from 0 to 1 over this many steps, so that no latent is
    switched off too early; by default a quarter of the training with tilted posteriors, else 0."""
    clip: float | None = None
    """Scale the gradient down to at most this norm."""
    seed: int = 0
    """Of weights, order of the images, and draws."""

    def __post_init__(self) -> None:
        """Subsets have no antithetic pair: what a run records is what it does."""
        usual = type(self).__dataclass_fields__["estimator"].default
        if self.is_subset and self.estimator == usual:
            object.__setattr__(self, "estimator", "MidCDF(2)")

    @property
    def is_gaussian(self) -> bool:
        """Whether this is the reference model."""
        return self.prior.strip().lower() == "gaussian"

    @property
    def is_subset(self) -> bool:
        """Whether latents are groups of elements."""
        return self.prior.strip().lower().startswith("subset")

    def check(self) -> None:
        """Numbers out of range, by the names of their options."""
        ones = ("images", "latents", "batch_size", "epochs", "evaluate_every", "gaussian_draws")
        zeros = ("likelihood_samples", "kl_warm_up", "seed", "level")
        least = {"evaluation_images": 2} | dict.fromkeys(ones, 1) | dict.fromkeys(zeros, 0)
        check_least(self, least)
        check_positive(self, "learning_rate", "clip")
        if not all(0 < tau < math.inf for tau in self.temperature):
            raise ValueError(
                "expected two positive, finite numbers for --temperature, but got "
                f"{' '.join(map(str, self.temperature))}."
            )
        if self.mass is not None and not 0 < self.mass < 1:
            raise ValueError(f"expected --mass between 0 and 1, but got {self.mass}.")
        if self.mass is not None and self.posterior != "explicit" and not self.is_gaussian:
            raise ValueError(
                f"--mass goes with --posterior explicit: the {self.posterior} posterior lives on "
                "the prior's atoms and needs a --level."
            )

    def load(self, data_dir: Path | None) -> ImageSet:
        """The images."""
        from ..data import load_images

        return load_images(self.data, data_dir)

    def remark(self, values: Mapping[str, Any]) -> str:
        """A posterior collapse: latents that do not depend on the image."""
        kl = values.get("kl_test", math.inf)
        if kl >= 0.5:
            return ""
        return (
            f"posterior collapse: the latents say almost nothing of an image (KL {kl:.2g} nats); "
            "train for more --epochs, with a longer --kl-warm-up or a wider --network."
        )
