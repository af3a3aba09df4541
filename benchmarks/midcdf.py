"""The cost of a draw that carries the mid-CDF gradient: 128 x 200 Poisson latents.

Compared with plain straight-through (an exact draw that moves as its mean), at small and at large
rates: there is no table, so the rate should not matter.

    python -m benchmarks.midcdf
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.distributions import Independent, Poisson

from benchmarks.timing import aim, machine, medians
from gengs import Estimator, GenGS, MidCDF, StraightThroughMean

BATCH, LATENTS = 128, 200


def step(estimator: Estimator, rate: Tensor) -> None:
    rate = rate.clone().requires_grad_()
    q = Independent(Poisson(rate), 1)
    estimator.expect(lambda z: z.square().sum(-1), q).sum().backward()


def main() -> None:
    torch.set_num_threads(1)
    print(f"{machine()}\n{BATCH} x {LATENTS} Poisson latents, one expect and backward\n")
    scales = (3.0, 1e6)
    rates = {scale: torch.full((BATCH, LATENTS), scale) for scale in scales}
    kinds = {"MidCDF": MidCDF(), "straight-through": StraightThroughMean()}
    times = medians(
        {
            f"{name}, rate {scale:g}": (lambda e=estimator, r=rate: step(e, r))
            for name, estimator in kinds.items()
            for scale, rate in rates.items()
        }
        | {"GenGS, rate 3": lambda: step(GenGS(0.5), rates[3.0])},
        rounds=30,
    )
    for name, milliseconds in times.items():
        print(f"{name:28s} {milliseconds:7.2f} ms")
    print()
    for scale in scales:
        ratio = times[f"MidCDF, rate {scale:g}"] / times[f"straight-through, rate {scale:g}"]
        shown = aim(1.2, False)
        print(f"beside straight-through, rate {scale:<6g} {ratio:5.2f} x   {shown}")
    ratio = times["MidCDF, rate 1e+06"] / times["MidCDF, rate 3"]
    print(f"rate 1e6 beside rate 3               {ratio:5.2f} x   {aim(1.3, False)}")


if __name__ == "__main__":
    main()
