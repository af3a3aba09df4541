"""A training step early and late, with subnormal numbers and without.

Models train for 2,000 steps on 10,000 images of MNIST; some of their units die, and what Adam
remembers of those becomes subnormal. One process for each, as torch's threads keep the mode they
were started in.

    GENGS_DATA=... python -m benchmarks.subnormals
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
import warnings
from contextlib import nullcontext

import torch
from torch import nn

from benchmarks.timing import machine
from benchmarks.vae import ATOMS, BATCH, LATENTS, PIXELS, count_vae
from gengs import MidCDF, TruncationWarning
from gengs_experiments.data import Batches, load_images
from gengs_experiments.models import GaussianVAE
from gengs_experiments.models.networks import mlp_pair
from gengs_experiments.runs.machine import without_subnormals

STEPS, SHOWN = 2_000, 200


def model_named(name: str) -> nn.Module:
    if name == "Gaussian":
        return GaussianVAE(*mlp_pair("256-128", PIXELS, LATENTS, 2), LATENTS)
    return count_vae("256-128", MidCDF(), "explicit", ATOMS)


def train(name: str) -> None:
    """Print the milliseconds of a step, early and late."""
    warnings.simplefilter("ignore", TruncationWarning)
    torch.manual_seed(0)
    model = model_named(name)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)
    images = load_images("mnist").take(train=10_000, seed=0)
    batches = Batches(images.train, BATCH, binarise="threshold")
    times = []
    for step in range(STEPS):
        begin = time.perf_counter()
        optimizer.zero_grad()
        model(batches.at(step)).mean().backward()
        optimizer.step()
        times.append(1e3 * (time.perf_counter() - begin))
    print(statistics.median(times[20 : 20 + SHOWN]), statistics.median(times[-SHOWN:]))


def main() -> None:
    torch.set_num_threads(2)
    if len(sys.argv) > 1:
        name, mode = sys.argv[1:]
        with without_subnormals() if mode == "without" else nullcontext():
            train(name)
        return
    print(machine())
    print(f"batch {BATCH}, 256-128, fused Adam, {STEPS} steps\n")
    print("                             first steps   last steps   ratio")
    for name in ("Gaussian", "MidCDF"):
        for mode in ("with", "without"):
            command = [sys.executable, "-m", "benchmarks.subnormals", name, mode]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            first, last = map(float, done.stdout.split())
            label = f"{name}, {mode} subnormals"
            print(f"{label:28s} {first:8.2f} ms {last:9.2f} ms {last / first:7.2f}")


if __name__ == "__main__":
    main()
