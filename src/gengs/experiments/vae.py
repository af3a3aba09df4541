"""``gengs vae``: a count-latent VAE on images, with any estimator.

    load images → build the model → train → evaluate with exact draws

What is recorded at each evaluation, on the same images for all estimators:

==============  ===================================================================================
nelbo_train     the negative ELBO of exact draws on (some) training images
nelbo_test      the same on (some) test images
relaxed_train   the value the estimator itself trains on: relaxed, for a relaxation; no bound then
kl_test         the divergence's part of the negative ELBO
active_units    latents whose posterior mean varies over the test images
nll_test        the importance-sampled negative log-likelihood (at the end, where asked for)
==============  ===================================================================================
"""

from __future__ import annotations

__all__ = ["PAPER_LEVELS", "Vae", "VaeConfig"]

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..data import Batches, ImageSet, load_images
from ..distributions.families import detached, tensors_of
from ..distributions.temperature import Linear
from ..distributions.truncate import truncate
from ..estimators.base import Estimator
from ..models import VAE, GaussianVAE
from ..models.autoencoder import Autoencoder
from ..models.networks import mlp_pair
from ..spec import parse_estimator, parse_law
from ..study.random_state import seed_everything
from ..subnormals import without_subnormals
from .annealing import anneal
from .options import check_least, check_positive
from .pictures import beside, grid
from .task import Task, Training
from .training import Machine, train

PAPER_LEVELS = {
    "poisson(2)": 12,
    "poisson(3)": 15,
    "geometric(0.25)": 25,
    "geometric(0.5)": 15,
    "negative-binomial(3,0.5)": 30,
    "negative-binomial(5,0.3)": 30,
}
"""The paper's truncation levels, by prior."""


@dataclass(frozen=True)
class VaeConfig:
    """What is trained: everything here changes the numbers, and nothing else does."""

    data: Literal["digits", "mnist", "static-mnist", "omniglot", "omniglot-burda"] = "digits"
    """The images: scikit-learn's digits need no download."""
    images: int | None = None
    """Train on this many random images only."""
    binarise: Literal["dynamic", "static", "threshold", "none"] = "dynamic"
    """How grey values become black and white; static-mnist is so already."""
    prior: str = "poisson(2)"
    """The prior of each latent, such as poisson(2), geometric(0.25), negative-binomial(3, 0.5); or
    gaussian: the usual VAE as a reference, without estimator, posterior and level."""
    level: int | None = None
    """Truncate prior and posterior to this many atoms; by default the paper's level for the prior,
    all atoms where they are finitely many; 0 for no truncation (explicit posteriors only)."""
    mass: float | None = None
    """Truncate to the window that holds this mass instead (the paper's NP; explicit posteriors
    only)."""
    posterior: Literal["explicit", "implicit"] = "implicit"
    """A law of the prior's family, or any PMF on its atoms."""
    estimator: str = "MidCDF"
    """The gradient estimator with its settings, such as MidCDF, "GenGS(samples=10)", "RLOO(4)"."""
    temperature: tuple[float, float] = (1.0, 0.1)
    """From where to where the temperature of GenGS falls, by the same factor in each step; a
    temperature among the estimator's own settings is left alone."""
    latents: int = 50
    """The number of latent counts."""
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
    kl_warm_up: int = 0
    """Let the weight of the divergence rise from 0 to 1 over this many steps."""
    clip: float | None = None
    """Scale the gradient down to at most this norm."""
    seed: int = 0
    """Of weights, order of the images, and draws."""

    @property
    def is_gaussian(self) -> bool:
        """Whether this is the reference model."""
        return self.prior.strip().lower() == "gaussian"

    def check(self) -> None:
        """Numbers out of range, by the names of their options."""
        least = {"images": 1, "latents": 1, "batch_size": 1, "epochs": 1, "evaluate_every": 1}
        least |= {"evaluation_images": 2, "likelihood_samples": 0, "kl_warm_up": 0, "seed": 0}
        least |= {"level": 0}
        check_least(self, least)
        check_positive(self, "learning_rate", "clip")
        if not all(0 < tau < math.inf for tau in self.temperature):
            raise ValueError(
                "expected two positive, finite numbers for --temperature, but got "
                f"{' '.join(map(str, self.temperature))}."
            )
        if self.mass is not None and not 0 < self.mass < 1:
            raise ValueError(f"expected --mass between 0 and 1, but got {self.mass}.")
        if self.mass is not None and self.posterior == "implicit" and not self.is_gaussian:
            raise ValueError(
                "--mass goes with --posterior explicit: an implicit posterior needs a --level, as "
                "it has a logit for each atom."
            )


@dataclass(frozen=True)
class Vae:
    """Train a count-latent variational autoencoder on images, with any estimator."""

    config: VaeConfig = field(default_factory=VaeConfig)
    out: Path = Path("runs/vae")
    """The folder of the run."""
    data_dir: Path | None = None
    """Where the images are; by default $GENGS_DATA, or the download cache."""
    machine: Machine = field(default_factory=Machine)

    @without_subnormals()
    def run(self) -> list[dict[str, Any]]:
        """Train, record, and print the last evaluation."""
        self.machine.check()
        self.config.check()
        task, training = build(self.config, load_images(self.config.data, self.data_dir))
        records = train(task, self.out, self.config, training, self.machine, seed=self.config.seed)
        evaluations = [record for record in records if record["kind"] == "evaluation"]
        if evaluations:
            shown = {k: v for k, v in evaluations[-1].items() if k not in ("kind", "step")}
            print("  ".join(f"{name} {value:.2f}" for name, value in shown.items()))
            print(f"records: {self.out / 'records.jsonl'}")
        return records


def build(config: VaeConfig, images: ImageSet) -> tuple[Task, Training]:
    """The task and its length: one function from the configuration to everything that trains."""
    images = images.take(train=config.images, seed=config.seed)
    seed_everything(config.seed)
    batches = Batches(images.train, config.batch_size, config.seed, config.binarise)
    steps = config.epochs * len(batches)
    schedules: dict[str, Any] = {}
    model: Autoencoder
    if config.is_gaussian:
        networks = mlp_pair(config.network, images.pixels, config.latents, 2)
        model = GaussianVAE(*networks, config.latents)
    else:
        estimator, schedules = _estimator(config, steps)
        model = _model(config, estimator, images.pixels)
    if config.kl_warm_up:
        # a schedule's values are positive; the weight starts at one step's worth
        weight = Linear(1 / config.kl_warm_up, 1.0, config.kl_warm_up)
        model.kl_weight = schedules["kl_weight"] = weight
    task = Task(
        modules={"model": model},
        step=lambda x: model.loss(x).mean(),
        data=batches,
        # fused: a quarter of the plain one's time, which is a third of a step
        optimizers=[torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)],
        schedules=schedules,
        evaluate=_evaluation(config, model, images),
        pictures=_pictures(config, model, images),
        some_may_rest=isinstance(model, VAE) and any(True for _ in model.estimator.parameters()),
    )
    every = None if config.evaluate_every is None else config.evaluate_every * len(batches)
    return task, Training(
        steps=steps, clip=config.clip, record_every=len(batches), evaluate_every=every
    )


def _estimator(config: VaeConfig, steps: int) -> tuple[Estimator, dict[str, Any]]:
    estimator = parse_estimator(config.estimator)
    return estimator, anneal([(config.estimator, estimator)], config.temperature, steps)


def _model(config: VaeConfig, estimator: Estimator, pixels: int) -> VAE:
    prior = _prior(config.prior)
    level = _level(config, prior)
    width = 1
    if config.posterior == "implicit":
        if level == 0:
            raise ValueError("an implicit posterior needs a --level: it has a logit for each atom.")
        width = level or truncate(prior).num_atoms
    encoder, decoder = mlp_pair(config.network, pixels, config.latents, width)
    return VAE(
        encoder,
        decoder,
        prior,
        estimator,
        config.posterior,
        level=level or None,
        mass=config.mass,
        latents=config.latents,
    )


def _level(config: VaeConfig, prior: Distribution) -> int | None:
    """How many atoms to keep; ``None`` where they are all there is, or follow from a mass."""
    if config.level is not None or config.mass is not None:
        return config.level
    levels = {_as_read(prior): level for prior, level in PAPER_LEVELS.items()}
    level = levels.get(_as_read(config.prior))
    if level is None and not prior.has_enumerate_support:
        raise ValueError(
            f"expected a --level for the prior {config.prior!r}: the paper has one for "
            f"{', '.join(PAPER_LEVELS)} only."
        )
    return level


def _as_read(prior: str) -> tuple[object, ...]:
    """A prior as its law and numbers, however it was typed."""
    law, _ = parse_law(prior)
    return type(law), *(tuple(t.flatten().tolist()) for _, _, t in tensors_of(law))


def _prior(text: str) -> Distribution:
    return detached(parse_law(text)[0])  # the prior is fixed


def _evaluation(
    config: VaeConfig, model: Autoencoder, images: ImageSet
) -> Callable[[], dict[str, float]]:
    """The same images and pixels for every run with these settings, whatever its seed."""
    some = images.take(
        train=min(config.evaluation_images, len(images.train)),
        test=min(config.evaluation_images, len(images.test)),
        seed=0,
    )

    pixels = [_pixels(config, part) for part in (some.train, some.test)]

    def evaluate() -> dict[str, float]:
        train_images, test_images = (part.to(_device(model)) for part in pixels)
        values = {
            "nelbo_train": model.negative_elbo(train_images).mean(),
            "nelbo_test": model.negative_elbo(test_images).mean(),
            "relaxed_train": model.training_value(train_images).mean(),
            "kl_test": model.kl(test_images).mean(),
            "active_units": model.active_units(test_images).sum(),
        }
        if config.likelihood_samples:
            draws = config.likelihood_samples
            values["nll_test"] = -model.log_likelihood(test_images[:500], draws).mean()
        return {name: float(value) for name, value in values.items()}

    return evaluate


def _pictures(
    config: VaeConfig, model: Autoencoder, images: ImageSet
) -> Callable[[], dict[str, Tensor]]:
    """Test images over their reconstructions, and images decoded from the prior."""
    some = _pixels(config, images.take(test=min(30, len(images.test)), seed=0).test)

    def square(pixels: Tensor) -> Tensor:
        return pixels.reshape(-1, *images.shape).cpu()

    def pictures() -> dict[str, Tensor]:
        again = model.reconstruct(some.to(_device(model)))
        return {
            "reconstructions": grid(beside(square(some), square(again))),
            "samples": grid(square(model.sample_prior(60))),
        }

    return pictures


def _pixels(config: VaeConfig, part: Tensor) -> Tensor:
    """The same black and white for every run with these settings, whatever its seed."""
    return Batches(part, len(part), 0, config.binarise, shuffle=False).at(0)


def _device(model: Autoencoder) -> torch.device:
    return next(model.parameters()).device
