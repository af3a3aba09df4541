"""A training step of the count-latent VAE beside the Gaussian one's: batch 100, 50 latents.

A step is the batch, the loss, its gradient, and Adam as torch makes it by default. The input
pipeline (order, binarisation) is timed on its own as well. Processor time of one thread, in ratios
to the Gaussian model's; each model takes three turns, so a cell goes from least to greatest.

The models are in training, 300 steps from their beginning, on digits enlarged to 28 x 28 pixels.
The first table has them as they are made, with a step size of zero: that is cheaper, as no rate
exceeds the atoms yet and no PMF has valleys.

An implicit posterior has a last layer that is six times as wide. *Gaussian, wide* is the Gaussian
model with such a layer, most of which it does not use, and *to wide* the ratio to that one: what
counts cost beside the same network.

``gengs vae`` takes torch's fused Adam, a quarter of the plain one's time. The last table has it:
the same excess over a shorter step.

    python -m benchmarks.vae
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.distributions import Poisson
from torch.nn.functional import interpolate

from benchmarks.timing import machine, medians
from gengs import Estimator, GenGS, MidCDF, TruncationWarning
from gengs.nn.count_latents import PosteriorKind
from gengs_experiments.data import Batches, load_images
from gengs_experiments.models import VAE, GaussianVAE
from gengs_experiments.models.networks import mlp_pair
from gengs_experiments.runs.machine import without_subnormals

BATCH, LATENTS, ATOMS, SIDE = 100, 50, 12, 28
PIXELS = SIDE * SIDE
STEPS_BEFORE, TURNS = 300, 3
TABLES = (
    ("512-256, as made", "512-256", None, False),
    ("512-256", "512-256", None, True),
    ("256-128", "256-128", None, True),
    ("512-256, fused", "512-256", True, True),
)
"""Title, network, fused Adam, whether in training."""


def enlarged_digits() -> Tensor:
    """Scikit-learn's digits, ``(images, 784)`` grey values."""
    digits = load_images("digits")
    grey = digits.train.view(-1, 1, *digits.shape).float()
    large = interpolate(grey, size=(SIDE, SIDE), mode="bilinear")
    return large.round().to(torch.uint8).flatten(1)


def count_vae(
    network: str, estimator: Estimator, posterior: PosteriorKind, level: int | None
) -> VAE:
    width = {"implicit": ATOMS, "tilted": 2}.get(str(posterior), 1)
    encoder, decoder = mlp_pair(network, PIXELS, LATENTS, width)
    return VAE(encoder, decoder, Poisson(2.0), estimator, posterior, level=level, latents=LATENTS)


class Narrow(nn.Module):
    """The first outputs of an encoder; the others are computed and not used."""

    def __init__(self, encoder: nn.Module, outputs: int) -> None:
        super().__init__()
        self.encoder, self.outputs = encoder, outputs

    def forward(self, x: Tensor) -> Tensor:
        return self.encoder(x)[:, : self.outputs]


def models(network: str) -> dict[str, nn.Module]:
    wide, decoder = mlp_pair(network, PIXELS, LATENTS, ATOMS)
    return {
        "Gaussian": GaussianVAE(*mlp_pair(network, PIXELS, LATENTS, 2), LATENTS),
        "Gaussian, a pair": GaussianVAE(*mlp_pair(network, PIXELS, LATENTS, 2), LATENTS, 2),
        "Gaussian, wide": GaussianVAE(Narrow(wide, 2 * LATENTS), decoder, LATENTS),
        "GenGS, explicit": count_vae(network, GenGS(0.5), "explicit", ATOMS),
        "GenGS, implicit": count_vae(network, GenGS(0.5), "implicit", ATOMS),
        "MidCDF, explicit": count_vae(network, MidCDF(), "explicit", ATOMS),
        "MidCDF, implicit": count_vae(network, MidCDF(), "implicit", ATOMS),
        "MidCDF, tilted": count_vae(network, MidCDF(), "tilted", ATOMS),
        "MidCDF(2), tilted": count_vae(network, MidCDF(2, antithetic=True), "tilted", ATOMS),
        "MidCDF, whole Poisson": count_vae(network, MidCDF(), "explicit", None),
    }


def stepper(
    model: nn.Module, batches: Batches, fused: bool | None, trains: bool
) -> Callable[[], None]:
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3 if trains else 0.0, fused=fused)
    done = iter(range(10**9))

    def step() -> None:
        optimizer.zero_grad()
        model(batches.at(next(done))).mean().backward()
        optimizer.step()

    for _ in range(STEPS_BEFORE if trains else 0):
        step()
    return step


@without_subnormals()
def ratios(batches: Batches, network: str, fused: bool | None, trains: bool) -> dict[str, str]:
    """Each model's time over the Gaussian's, in three turns; the Gaussian's milliseconds."""
    numbers = iter(range(10**9))
    steps: dict[str, Callable[[], object]] = {
        name: stepper(model, batches, fused, trains) for name, model in models(network).items()
    }
    steps["input pipeline"] = lambda: batches.at(next(numbers))
    turns = [medians(steps, rounds=10) for _ in range(TURNS)]
    cells = {name: spread([turn[name] / turn["Gaussian"] for turn in turns]) for name in steps}
    wide = spread([turn["MidCDF, implicit"] / turn["Gaussian, wide"] for turn in turns])
    milliseconds = spread([turn["Gaussian"] for turn in turns])
    return cells | {
        "Gaussian": f"{milliseconds} ms",
        "to the wide Gaussian: MidCDF, implicit": wide,
    }


def spread(values: list[float]) -> str:
    low, high = f"{min(values):.2f}", f"{max(values):.2f}"
    return low if low == high else f"{low} to {high}"


def main() -> None:
    warnings.simplefilter("ignore", TruncationWarning)  # said once is enough
    torch.set_num_threads(1)
    torch.manual_seed(0)
    print(machine())
    print(f"batch {BATCH}, {LATENTS} latents, {ATOMS} atoms, Poisson(2), {PIXELS} pixels\n")
    batches = Batches(enlarged_digits(), BATCH)
    columns = {title: ratios(batches, *settings) for title, *settings in TABLES}
    print("| |", " | ".join(columns), "|")
    print("| --- |", " | ".join("---:" for _ in columns), "|")
    for name in next(iter(columns.values())):
        print(f"| {name} |", " | ".join(column[name] for column in columns.values()), "|")


if __name__ == "__main__":
    main()
