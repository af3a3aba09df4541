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

__all__ = ["PAPER_LEVELS", "build", "is_worse_than_untrained"]

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.nn.functional import pad

from gengs import Subset
from gengs.estimators.base import Estimator
from gengs.estimators.spec import parse_estimator, parse_law
from gengs.nn.count_latents import posterior_width
from gengs.tables.truncation import truncate

from ..data import IMAGE_SETS, Batches, ImageSet
from ..models import VAE, GaussianVAE
from ..models.autoencoder import Autoencoder
from ..models.networks import mlp_pair
from ..runs.random_state import seed_everything
from ..runs.training import Task, Training
from .annealing import anneal, warm_up
from .vae_settings import VaeConfig

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
    usual = 0 if config.is_gaussian or config.posterior != "tilted" else steps // 4
    schedules |= warm_up(model, usual if config.kl_warm_up is None else config.kl_warm_up)
    if images.name not in IMAGE_SETS:
        schedules["data"] = SameImages(images.checksum)
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


def is_worse_than_untrained(config: VaeConfig, images: ImageSet, nelbo: float) -> bool:
    """Whether the negative ELBO is NaN, or twice what it was before the first step.

    The untrained model is built only where tossing a coin for each pixel would be better.
    """
    if nelbo < images.pixels * math.log(2):
        return False
    model: Any = build(config, images)[0].modules["model"].eval()
    pixels = _some(config, images, "test", config.evaluation_images)
    with torch.no_grad():
        return not nelbo < 2 * model.negative_elbo(pixels).mean()


@dataclass(frozen=True)
class SameImages:
    """In a checkpoint, the checksum of somebody's own images: a run goes on with the same."""

    checksum: str

    def step(self) -> None:
        """They stay as they are."""

    def state_dict(self) -> dict[str, Any]:
        return {"sha256": self.checksum}

    def load_state_dict(self, state_dict: dict[str, Any], /) -> None:
        if state_dict["sha256"] != self.checksum:
            raise ValueError("the images of --data are not those that the run began with")


def _model(config: VaeConfig, estimator: Estimator, pixels: int) -> VAE:
    with torch.no_grad():
        prior, parameters = parse_law(config.prior)
        for parameter in parameters.values():
            parameter.requires_grad_(False)  # it is fixed
    if isinstance(prior, Subset):
        return _subset_model(config, estimator, prior, pixels)
    if prior.event_shape:
        raise ValueError(
            f"expected a --prior of counts, subset(n, k) or gaussian, but got {config.prior!r}."
        )
    level = _level(config, prior)
    if config.posterior != "explicit" and level == 0:
        raise ValueError(
            f"the {config.posterior} posterior needs a --level: it lives on the prior's atoms."
        )
    atoms = (level or truncate(prior).num_atoms) if config.posterior == "implicit" else 0
    width = posterior_width(config.posterior, atoms)
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


def _subset_model(config: VaeConfig, estimator: Estimator, prior: Subset, pixels: int) -> VAE:
    """Groups of k-of-n elements, with the uniform distribution of them as prior."""
    if config.posterior == "implicit" or config.level is not None or config.mass is not None:
        raise ValueError(
            f"--posterior implicit, --level and --mass do not go with the prior {config.prior!r}: "
            "its posterior is the subset distribution of the encoder's logits."
        )
    n = prior.event_shape[0]
    encoder, decoder = mlp_pair(config.network, pixels, config.latents * n)
    return VAE(
        encoder,
        decoder,
        Subset(prior.k, torch.zeros(n)),
        estimator,
        latents=config.latents,
        standardise=config.decoder_input == "standardised",
    )


def _level(config: VaeConfig, prior: Distribution) -> int | None:
    """How many atoms to keep; ``None`` where they are all there is, or follow from a mass."""
    if config.level is not None or config.mass is not None:
        return config.level
    # a prior as its law and numbers, however it was typed: Poisson(rate: 2.0)
    levels = {repr(parse_law(text)[0]): level for text, level in PAPER_LEVELS.items()}
    level = levels.get(repr(prior))
    if level is None and not prior.has_enumerate_support:
        raise ValueError(
            f"expected a --level for the prior {config.prior!r}: the paper has one for "
            f"{', '.join(PAPER_LEVELS)} only."
        )
    return level


def _evaluation(
    config: VaeConfig, model: Autoencoder, images: ImageSet
) -> Callable[[], dict[str, float]]:
    pixels = [_some(config, images, part, config.evaluation_images) for part in ("train", "test")]

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
    some = _some(config, images, "test", 30)

    def rows(pixels: Tensor) -> tuple[Tensor, ...]:
        return pixels.reshape(-1, *images.shape).cpu().split(_COLUMNS)

    def pictures() -> dict[str, Tensor]:
        again = model.reconstruct(some.to(_device(model)))
        pairs = zip(rows(some), rows(again), strict=True)
        return {
            "reconstructions": _grid(torch.cat([row for pair in pairs for row in pair])),
            "samples": _grid(torch.cat(rows(model.sample_prior(60)))),
        }

    return pictures


_COLUMNS, _LINE, _GREY = 10, 2, 0.5
_LEAST_SIDE = 56  # pixels on the screen


def _grid(images: Tensor) -> Tensor:
    """Images ``(N, height, width)`` as one picture, ``uint8``, with a line of grey between them.

    Small ones are enlarged by a whole factor, each pixel a square: nothing is blurred.
    """
    columns = min(_COLUMNS, len(images))
    rows = -(-len(images) // columns)
    factor = max(1, -(-_LEAST_SIDE // max(images.shape[1:])))
    tiles = images.repeat_interleave(factor, 1).repeat_interleave(factor, 2)
    missing = rows * columns - len(images)
    tiles = pad(tiles, (0, _LINE, 0, _LINE, 0, missing), value=_GREY)
    tiles = tiles.unflatten(0, (rows, columns)).movedim(2, 1)  # rows, height, columns, width
    canvas = tiles.flatten(2).flatten(0, 1)[:-_LINE, :-_LINE]
    return (canvas.clamp(0, 1) * 255).round().to(torch.uint8)


def _some(config: VaeConfig, images: ImageSet, part: str, most: int) -> Tensor:
    """The same images and pixels for every run with these settings, whatever its seed."""
    number = min(most, len(getattr(images, part)))
    some = getattr(images.take(**{part: number}, seed=0), part)
    return Batches(some, number, 0, config.binarise, shuffle=False).at(0)


def _device(model: Autoencoder) -> torch.device:
    return next(model.parameters()).device
