"""The cost of a relaxed draw: ``rsample_value`` and ``backward`` of Poisson latents.

Work: 128 x 200 latents, 30 atoms, temperature 0.5, float32, one thread. Compared with the
composition a user would write, with the package relaxit, and with merely drawing the uniforms.

    python -m benchmarks.sampler
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Poisson

from benchmarks.timing import aim, growth, machine, medians, peak_mebibytes
from gengs import Relaxed, truncate

BATCH, LATENTS, ATOMS, TAU = 128, 200, 30, 0.5
RELAXIT_VALUES, ETA = 101, 0.999


def rates(scale: float = 5.0, batch: int = BATCH) -> Tensor:
    torch.manual_seed(0)
    return scale * torch.rand(batch, LATENTS) + 0.1


def ours(rate: Tensor) -> None:
    rate = rate.clone().requires_grad_()
    Relaxed(TAU, truncate(Poisson(rate), ATOMS)).rsample_value().sum().backward()


def ours_by_mass(rate: Tensor) -> None:
    rate = rate.clone().requires_grad_()
    Relaxed(TAU, truncate(Poisson(rate), mass=ETA)).rsample_value().sum().backward()


def composition(rate: Tensor) -> None:
    rate = rate.clone().requires_grad_()
    k = torch.arange(float(ATOMS))
    log_pmf = Poisson(rate.unsqueeze(-1)).log_prob(k)
    ((F.gumbel_softmax(log_pmf, tau=TAU) * k).sum(-1)).sum().backward()


def relaxit(rate: Tensor) -> None:
    from relaxit.distributions import GeneralizedGumbelSoftmax

    rate = rate.clone().requires_grad_()
    k = torch.arange(float(RELAXIT_VALUES))
    probs = Poisson(rate.unsqueeze(-1)).log_prob(k).exp()
    law = GeneralizedGumbelSoftmax(values=k, probs=probs, tau=torch.tensor(TAU))
    law.rsample_value().sum().backward()


MEMORY: dict[str, Callable[[Tensor], None]] = {"ours": ours, "composition": composition}


def tolerance_step(rate: float) -> None:
    parameter = torch.full((32,), rate, requires_grad=True)
    Relaxed(TAU, truncate(Poisson(parameter), tolerance=1e-6)).rsample_value().sum().backward()


def main() -> None:
    torch.set_num_threads(1)
    print(f"{machine()}\n{BATCH} x {LATENTS} Poisson latents, {ATOMS} atoms, temperature {TAU}\n")
    rate = rates()
    candidates: dict[str, Callable[[], object]] = {
        "ours": lambda: ours(rate),
        "torch.rand": lambda: torch.rand(BATCH, LATENTS, ATOMS),
        "composition": lambda: composition(rate),
        f"ours, mass={ETA}": lambda: ours_by_mass(rate),
    }
    try:
        relaxit(rate)
        candidates["relaxit"] = lambda: relaxit(rate)
    except ImportError:
        print("relaxit is not installed: pip install -e '.[bench]'\n")
    times = medians(candidates)
    for name, milliseconds in times.items():
        print(f"{name:18s} {milliseconds:8.2f} ms   {milliseconds / times['ours']:6.2f} x ours")

    print()
    ratio = times["composition"] / times["ours"]
    print(f"faster than the composition       {ratio:6.2f} x   {aim(4, True)}")
    ratio = times["ours"] / times["torch.rand"]
    print(f"time of the uniforms alone        {ratio:6.2f} x   {aim(2.5, False)}")
    if "relaxit" in times:
        ratio = times["relaxit"] / times["ours"]
        print(f"faster than relaxit, 101 values   {ratio:6.2f} x   {aim(10, True)}")
    peak = {name: peak_mebibytes("benchmarks.sampler", name) for name in MEMORY}
    ratio = peak["ours"] / peak["composition"]
    shown = f"{peak['ours']:.0f} of {peak['composition']:.0f} MiB, 8 x the batch"
    print(f"peak memory of the composition's  {ratio:6.2f} x   {aim(0.5, False)}; {shown}")

    print(
        "\ntolerance 1e-6, 32 elements: time should grow no faster than the square root of the rate"
    )
    scales = (1e1, 1e2, 1e3, 1e4, 1e5)
    steps = medians({f"{s:g}": partial(tolerance_step, s) for s in scales}, rounds=6)
    for scale in scales:
        atoms = truncate(Poisson(torch.tensor(scale)), tolerance=1e-6).num_atoms
        print(f"rate {scale:<8g} {atoms:6d} atoms {steps[f'{scale:g}']:8.2f} ms")
    exponent = torch.log10(torch.tensor(steps["100000"] / steps["10"])).item() / 4
    print(f"time grows like rate ** {exponent:.2f}   {aim(0.5, False)}")


if __name__ == "__main__":
    if "--memory" in sys.argv:
        torch.set_num_threads(1)
        work = MEMORY[sys.argv[-1]]
        work(rates(batch=4))  # what torch allocates once is not the candidate's
        large = rates(batch=8 * BATCH)
        print(growth(lambda: work(large)))
    else:
        main()
