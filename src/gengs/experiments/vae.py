"""A count-latent VAE on images: from the settings of ``gengs vae`` to what trains.

    images → model → task → what is measured and drawn at each evaluation

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

__all__ = ["PAPER_LEVELS", "Vae", "VaeConfig", "build"]

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..data import Batches, ImageSet
from ..distributions.truncation import truncate
from ..estimators.base import Estimator
from ..estimators.spec import parse_estimator, parse_law
from ..models import VAE, GaussianVAE
from ..models.vae.autoencoder import Autoencoder
from ..models.vae.networks import mlp_pair
from ..runs.random_state import seed_everything
from ..runs.training import Task, Training
from .annealing import anneal, warm_up
from .pictures import beside, grid
from .vae_command import Vae, VaeConfig

PAPER_LEVELS = {
    "poisson(2)": 12,
    "poisson(3)": 15,
    "geometric(0.25)": 25,
    "geometric(0.5)": 15,
    "negative-binomial(3,0.5)": 30,
    "negative-binomial(5,0.3)": 30,
}
"""The paper's truncation levels, by prior."""


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
        model = GaussianVAE(*networks, config.latents, config.gaussian_draws)
    else:
        estimator = parse_estimator(config.estimator)
        schedules = anneal([(config.estimator, estimator)], config.temperature, steps)
        model = _model(config, estimator, images.pixels)
    schedules |= warm_up(model, config.kl_warm_up)
    task = Task(
        modules={"model": model},
        step=lambda x: model.loss(x).mean(),
        data=batches,
        # fused: a quarter of the plain one's time, which is a third of a step
        optimizers=[torch.optim.Adam(model.parameters(), lr=config.learning_rate, fused=True)],
        schedules=schedules,
        evaluate=_evaluation(config, model, images),
        pictures=_pictures(config, model, images),
        find_unused_parameters=isinstance(model, VAE)
        and any(True for _ in model.estimator.parameters()),
    )
    every = None if config.evaluate_every is None else config.evaluate_every * len(batches)
    return task, Training(
        steps=steps, clip=config.clip, record_every=len(batches), evaluate_every=every
    )


def _model(config: VaeConfig, estimator: Estimator, pixels: int) -> VAE:
    prior = _prior(config.prior)
    level = _level(config, prior)
    if config.posterior != "explicit" and level == 0:
        raise ValueError(
            f"the {config.posterior} posterior needs a --level: it lives on the prior's atoms."
        )
    atoms = (level or truncate(prior).num_atoms) if config.posterior == "implicit" else 0
    width = {"explicit": 1, "implicit": atoms, "tilted": 2}[config.posterior]
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
        standardise=config.decoder_input == "standardised",
    )


def _level(config: VaeConfig, prior: Distribution) -> int | None:
    """How many atoms to keep; ``None`` where they are all there is, or follow from a mass."""
    if config.level is not None or config.mass is not None:
        return config.level
    levels = {_as_read(text): level for text, level in PAPER_LEVELS.items()}
    level = levels.get(_as_read(config.prior))
    if level is None and not prior.has_enumerate_support:
        raise ValueError(
            f"expected a --level for the prior {config.prior!r}: the paper has one for "
            f"{', '.join(PAPER_LEVELS)} only."
        )
    return level


def _as_read(prior: str) -> str:
    """A prior as its law and numbers, however it was typed: ``Poisson(rate: 2.0)``."""
    return repr(parse_law(prior)[0])


def _prior(text: str) -> Distribution:
    with torch.no_grad():  # the prior is fixed
        law, parameters = parse_law(text)
        for parameter in parameters.values():
            parameter.requires_grad_(False)
    return law


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
