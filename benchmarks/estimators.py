"""The cost of a gradient: one ``expect`` and ``backward`` through a VAE's decoder.

Work: decoder 50-256-512-784, batch 100, 50 Poisson latents truncated to 12 atoms, one thread. Each
estimator is compared with REINFORCE at the same number of cost evaluations.

    python -m benchmarks.estimators
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor, nn
from torch.distributions import Independent, Poisson
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.timing import aim, machine, medians
from gengs import REBAR, REINFORCE, RELAX, RLOO, Estimator, GenGS, MidCDF, StoRB, UnOrd, truncate

BATCH, LATENTS, ATOMS, PIXELS = 100, 50, 12, 784

# estimator, REINFORCE with how many draws, at most how many times its cost
CASES: tuple[tuple[Estimator, int, float], ...] = (
    (GenGS(0.5), 1, 1.3),
    (MidCDF(), 1, 1.3),
    (RLOO(10), 10, 1.1),
    (StoRB(10), 10, 2.0),
    (UnOrd(10), 10, 2.0),
    (REBAR(), 1, 8.0),
    (RELAX(), 1, 8.0),
)


class Model:
    """A decoder, and rates that require a gradient."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.decoder = nn.Sequential(
            nn.Linear(LATENTS, 256),
            nn.ReLU(),
            nn.Linear(256, 512),
            nn.ReLU(),
            nn.Linear(512, PIXELS),
        )
        self.images = (torch.rand(BATCH, PIXELS) < 0.2).float()
        self.log_rate = torch.randn(BATCH, LATENTS).mul(0.5).requires_grad_()

    def cost(self, z: Tensor) -> Tensor:
        logits = self.decoder(z)
        images = self.images.expand_as(logits)
        return binary_cross_entropy_with_logits(logits, images, reduction="none").sum(-1)

    def step(self, estimator: Estimator) -> None:
        q = truncate(Poisson(self.log_rate.exp()), ATOMS)
        estimator.expect(self.cost, Independent(q, 1)).mean().backward()


def main() -> None:
    torch.set_num_threads(1)
    print(f"{machine()}\nbatch {BATCH}, {LATENTS} latents, {ATOMS} atoms, decoder 50-256-512-784\n")
    model = Model()
    baselines = {f"REINFORCE({m})": REINFORCE(m) for m in (1, 10)}
    estimators = {type(e).__name__ + f"({e.samples})" * (e.samples > 1): e for e, _, _ in CASES}
    candidates = {name: partial(model.step, e) for name, e in {**baselines, **estimators}.items()}
    times = medians(candidates, rounds=12)
    for name, milliseconds in times.items():
        print(f"{name:14s} {milliseconds:8.2f} ms")
    print()
    for (_, draws, limit), name in zip(CASES, estimators, strict=True):
        ratio = times[name] / times[f"REINFORCE({draws})"]
        print(f"{name:14s} {ratio:5.2f} x REINFORCE({draws:<2d})   {aim(limit, False)}")


if __name__ == "__main__":
    main()
