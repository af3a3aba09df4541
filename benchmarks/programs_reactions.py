"""A reaction network by tau-leaping: three species, six rates, all sensitivities in one pass back.

Gene expression: messengers are made and decay, they make proteins, which decay and pair up, and the
pairs decay. The sensitivities of the mean counts of all three species at the end, in the logarithm
of each of the six rates: by one pass back for each species through the mid-CDF path, and by central
finite differences (twelve simulations) at the same cost.

    python -m benchmarks.programs_reactions > results/programs/reactions.md
"""

from __future__ import annotations

import argparse
import platform
import time

import torch
from torch import Tensor

import gengs

RATES = torch.tensor([20.0, 1.0, 4.0, 0.5, 0.01, 0.2])
NAMES = (
    "transcription",
    "messenger decay",
    "translation",
    "protein decay",
    "pairing",
    "pair decay",
)
SPECIES = ("messengers", "proteins", "pairs")
STEPS, TAU = 100, 0.05


def simulate(log_rates: Tensor, replicates: int) -> Tensor:
    """Counts of the three species at the end, ``(replicates, 3)``."""
    k = log_rates.exp()
    messengers, proteins, pairs = torch.zeros(3, replicates)
    for _ in range(STEPS):
        m, p, d = (x.clamp_min(0) for x in (messengers, proteins, pairs))
        speeds = torch.stack(
            [
                *(k[0].expand(replicates), k[1] * m, k[2] * m, k[3] * p),
                *(k[4] * p * (p - 1).clamp_min(0) / 2, k[5] * d),
            ]
        )
        made, lost, translated, decayed, paired, gone = torch.poisson(TAU * speeds)
        messengers = messengers + made - lost
        proteins = proteins + translated - decayed - 2 * paired
        pairs = pairs + paired - gone
    return torch.stack([messengers, proteins, pairs], -1)


def by_path(replicates: int) -> Tensor:
    """Sensitivities ``(species, rates)``, by one simulation and a pass back for each species."""
    log_rates = RATES.log().requires_grad_()
    with gengs.differentiable() as program:
        counts = simulate(log_rates, replicates)
    # the replicates are the last dimension of the draws here, which the path does not mind
    del program
    rows = [
        torch.autograd.grad(counts[:, i].mean(), log_rates, retain_graph=i < 2)[0] for i in range(3)
    ]
    return torch.stack(rows)


def by_differences(replicates: int, width: float = 0.1) -> Tensor:
    """The same by central differences, with common random numbers."""
    columns = []
    seed = int(torch.randint(2**31, ()))
    with torch.no_grad():
        for i in range(len(RATES)):
            sides = []
            for sign in (1, -1):
                torch.manual_seed(seed)
                moved = RATES.log()
                moved[i] += sign * width
                sides.append(simulate(moved, replicates).mean(0))
            columns.append((sides[0] - sides[1]) / (2 * width))
        torch.manual_seed(seed + 1)
    return torch.stack(columns, -1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=3000)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--reference", type=int, default=60_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    parts = [by_differences(options.reference // 20) for _ in range(20)]
    exact = torch.stack(parts).mean(0)
    exact_error = torch.stack(parts).std(0) / 20**0.5
    ways = {
        f"path, {options.replicates:,} simulations": lambda: by_path(options.replicates),
        f"differences, 12 × {options.replicates // 12:,}": lambda: by_differences(
            options.replicates // 12
        ),
        f"differences, 12 × {options.replicates // 4:,}": lambda: by_differences(
            options.replicates // 4
        ),
    }
    found: dict[str, list[Tensor]] = {name: [] for name in ways}
    times: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(options.repeats):
        for name, way in ways.items():
            start = time.perf_counter()
            found[name].append(way())
            times[name].append(time.perf_counter() - start)
    print("# A reaction network: eighteen sensitivities from one simulation\n")
    print("`python -m benchmarks.programs_reactions > results/programs/reactions.md`\n")
    print(
        f"Gene expression by tau-leaping, {STEPS} steps of {TAU}, rates "
        f"{', '.join(f'{n} {x:g}' for n, x in zip(NAMES, RATES.tolist(), strict=True))}. "
        "Sensitivities of the mean counts in the logarithm of each rate. Error: root mean square "
        "distance from the reference over all eighteen, and its bias (distance of "
        f"the mean of {options.repeats} repetitions), both in per cent of the reference's size, "
        f"which is a central difference of {options.reference:,} simulations on each side "
        f"(standard error {100 * float(exact_error.norm() / exact.norm()):.2f} %). Differences use "
        "common random numbers and steps of ± 0.1, whose own bias is in the reference too. "
        f"torch {torch.__version__}, gengs {gengs.__version__}, "
        f"Python {platform.python_version()}.\n"
    )
    print("| way | median time, ms | error, % | bias, % |")
    print("| --- | ---: | ---: | ---: |")
    for name in ways:
        rows = torch.stack(found[name])
        error = (rows - exact).square().sum((1, 2)).mean().sqrt() / exact.norm()
        bias = (rows.mean(0) - exact).norm() / exact.norm()
        spread = (rows.var(0).sum() / len(rows)).sqrt() / exact.norm()
        middle = 1e3 * sorted(times[name])[len(times[name]) // 2]
        print(
            f"| {name} | {middle:.0f} | {100 * error:.2f} | {100 * bias:.2f} ± {100 * spread:.2f} |"
        )
    print("\n| sensitivity of | " + " | ".join(NAMES) + " |")
    print("| --- |" + " ---: |" * len(NAMES))
    rows = torch.stack(next(iter(found.values())))
    mean, error = rows.mean(0), rows.std(0) / len(rows) ** 0.5
    for i, name in enumerate(SPECIES):
        print(f"| {name}, reference | " + " | ".join(f"{x:.1f}" for x in exact[i].tolist()) + " |")
        cells = [
            f"{m:.1f} ± {e:.1f}" for m, e in zip(mean[i].tolist(), error[i].tolist(), strict=True)
        ]
        print(f"| {name}, path | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
