"""Calibration on real counts: influenza in a boarding school of 763, January 1978.

A stochastic model (chain-binomial, six steps a day) with four parameters: how fast infection
spreads, how long one is infectious before bed, how long one stays in bed, and how many were
infected on the first day. The loss is the energy score of the counts in bed, a proper score: the
mean distance of simulations from the data, less half the mean distance of simulations from each
other. Gradient descent through the simulator, beside Nelder–Mead and differential evolution, at
equal numbers of simulations.

    python -m benchmarks.programs_influenza > results/programs/influenza.md   # and influenza.png

Data: British Medical Journal, 4 March 1978, p. 587.
"""

from __future__ import annotations

import argparse
import platform
from pathlib import Path

import numpy as np
import scipy
import scipy.optimize
import torch
from torch import Tensor

import gengs

IN_BED = torch.tensor([3, 8, 26, 76, 225, 298, 258, 233, 189, 128, 68, 29, 14, 4.0])
BOYS, STEPS_A_DAY, REPLICATES = 763, 6, 64
START = torch.log(torch.tensor([1.0, 1.0, 2.0, 5.0]))
NAMES = ("infection rate, per day", "days until bed", "days in bed", "infected at first")
LOW, HIGH = np.log([0.2, 0.2, 0.5, 0.5]), np.log([6.0, 4.0, 6.0, 40.0])


def simulate(theta: Tensor, replicates: int) -> Tensor:
    """Boys in bed on days 1 to 14, ``(replicates, 14)``."""
    rate, until_bed, in_bed, first = theta.exp()
    up = 1 - torch.exp(-1 / (until_bed * STEPS_A_DAY))
    out = 1 - torch.exp(-1 / (in_bed * STEPS_A_DAY))
    infectious = torch.poisson(first.expand(replicates))
    susceptible = BOYS - infectious
    bed = torch.zeros(replicates)
    days = []
    for _ in range(len(IN_BED)):
        for _ in range(STEPS_A_DAY):
            risk = 1 - torch.exp(-rate * infectious.clamp_min(0) / (BOYS * STEPS_A_DAY))
            new = torch.binomial(susceptible, risk)
            to_bed = torch.binomial(infectious, up.expand(replicates))
            recovered = torch.binomial(bed, out.expand(replicates))
            susceptible = susceptible - new
            infectious = infectious + new - to_bed
            bed = bed + to_bed - recovered
        days.append(bed)
    return torch.stack(days, -1)


def energy_score(paths: Tensor) -> Tensor:
    """One number per replicate, whose mean is the energy score."""
    to_data = (paths - IN_BED).square().sum(-1).add(1e-6).sqrt()
    apart = (paths - paths.roll(1, 0)).square().sum(-1).add(1e-6).sqrt()
    return to_data - apart / 2


def by_gradient(simulations: int, seed: int) -> list[tuple[int, np.ndarray]]:
    """Adam through the simulator: after how many simulations, which parameters."""
    torch.manual_seed(seed)
    theta = START.clone().requires_grad_()
    steps = simulations // REPLICATES
    optimiser = torch.optim.Adam([theta], lr=0.1)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps)
    path = []
    for step in range(steps):
        with gengs.differentiable() as program:
            cost = energy_score(simulate(theta, REPLICATES))
        optimiser.zero_grad()
        program.loss(cost).mean().backward()
        torch.nn.utils.clip_grad_norm_([theta], 200.0)
        optimiser.step()
        schedule.step()
        path.append(((step + 1) * REPLICATES, theta.detach().numpy().copy()))
    return path


def gradient_free(method: str, simulations: int, seed: int) -> list[tuple[int, np.ndarray]]:
    """A method of scipy's on the same noisy score."""
    torch.manual_seed(seed)
    path: list[tuple[int, np.ndarray]] = []
    best = [np.inf]

    class Enough(Exception):
        pass

    def score(x: np.ndarray) -> float:
        if len(path) * REPLICATES >= simulations:
            raise Enough
        with torch.no_grad():
            paths = simulate(torch.tensor(np.clip(x, LOW, HIGH), dtype=torch.float32), REPLICATES)
            value = float(energy_score(paths).mean())
        current = x if value < best[0] or not path else path[-1][1]
        best[0] = min(best[0], value)
        path.append(((len(path) + 1) * REPLICATES, np.array(current)))
        return value

    try:
        if method == "Nelder–Mead":
            while True:  # it stops at once in noise: start again from the best point
                at = path[-1][1] if path else START.numpy()
                options = {"initial_simplex": at + np.vstack([np.zeros(4), 0.4 * np.eye(4)])}
                scipy.optimize.minimize(score, at, method="Nelder-Mead", options=options)
        else:
            scipy.optimize.differential_evolution(
                score, list(zip(LOW, HIGH, strict=True)), x0=START.numpy(), rng=seed, maxiter=10**6
            )
    except Enough:
        pass
    return path


def score_of(x: np.ndarray, seed: int = 12345, number: int = 2000) -> float:
    """The score of parameters, on simulations of their own."""
    torch.manual_seed(seed)
    with torch.no_grad():
        paths = simulate(torch.tensor(np.clip(x, LOW, HIGH), dtype=torch.float32), number)
        return float(energy_score(paths).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--simulations", type=int, default=6_400)
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(1)
    methods = {
        "gradient, mid-CDF path": by_gradient,
        "Nelder–Mead, restarted": lambda n, s: gradient_free("Nelder–Mead", n, s),
        "differential evolution": lambda n, s: gradient_free("differential evolution", n, s),
    }
    marks = [options.simulations // 16, options.simulations // 4, options.simulations]
    table: dict[str, np.ndarray] = {}
    curves: dict[str, list[list[tuple[int, float]]]] = {}
    best: tuple[float, np.ndarray] = (np.inf, START.numpy())
    for name, method in methods.items():
        scores = np.zeros((options.seeds, len(marks)))
        for seed in range(options.seeds):
            path = method(options.simulations, seed)
            for m, mark in enumerate(marks):
                x = next((x for n, x in reversed(path) if n <= mark), START.numpy())
                scores[seed, m] = score_of(x)
            curve = [(n, score_of(x, number=300)) for n, x in path[:: max(1, len(path) // 12)]]
            curves.setdefault(name, []).append(curve)
            if name.startswith("gradient") and scores[seed, -1] < best[0]:
                best = (scores[seed, -1], path[-1][1])
        table[name] = scores
    print("# Calibration on real counts: a boarding school of 763, 1978\n")
    print("`python -m benchmarks.programs_influenza > results/programs/influenza.md`\n")
    print(
        f"A chain-binomial model with four parameters, {STEPS_A_DAY} steps a day for 14 days; the "
        "loss is the energy score of the counts in bed. Scores are those of 2,000 simulations of "
        f"their own; mean ± one standard error of {options.seeds} seeds, {REPLICATES} simulations "
        "for each gradient or evaluation. A gradient takes about three times the time of an "
        "evaluation. "
        f"torch {torch.__version__}, scipy {scipy.__version__}, gengs {gengs.__version__}, "
        f"Python {platform.python_version()}.\n"
    )
    print("| method | " + " | ".join(f"after {mark:,} simulations" for mark in marks) + " |")
    print("| --- |" + " ---: |" * len(marks))
    print("| at the start | " + " | ".join([f"{score_of(START.numpy()):.1f}"] * len(marks)) + " |")
    for name, scores in table.items():
        mean, error = scores.mean(0), scores.std(0, ddof=1) / len(scores) ** 0.5
        cells = [f"{m:.1f} ± {e:.1f}" for m, e in zip(mean, error, strict=True)]
        print(f"| {name} | {' | '.join(cells)} |")
    found = np.exp(best[1])
    shown = ", ".join(f"{name} {x:.2f}" for name, x in zip(NAMES, found, strict=True))
    torch.manual_seed(0)
    with torch.no_grad():
        paths = simulate(torch.tensor(best[1]), 4000)
    low, high = paths.quantile(0.025, 0), paths.quantile(0.975, 0)
    inside = int(((low <= IN_BED) & (high >= IN_BED)).sum())
    print(f"\nThe best seed of the gradient found: {shown}.")
    print(f"Of the 14 counts, {inside} lie inside the pointwise 95 % band.\n\n![](influenza.png)")
    picture(paths, curves, Path("results/programs/influenza.png"))


def picture(paths: Tensor, curves: dict[str, list[list[tuple[int, float]]]], target: Path) -> None:
    """The data in the predictive bands, and the scores on the way."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 4.5), layout="constrained")
    days = range(1, 15)
    for share, shade in ((0.95, 0.2), (0.5, 0.4)):
        band = paths.quantile(torch.tensor([(1 - share) / 2, (1 + share) / 2]), 0)
        left.fill_between(
            days, *band, color="#1b6ca8", alpha=shade, lw=0, label=f"{share:.0%} band"
        )
    left.plot(days, paths.median(0).values, color="#1b6ca8", label="median of simulations")
    left.plot(days, IN_BED, "o", color="black", label="boys in bed, 1978")
    left.set(xlabel="day", ylabel="in bed", title="The calibrated model")
    left.legend(frameon=False)
    colours = ("#1b6ca8", "#d1495b", "#66803d")
    for (name, runs), colour in zip(curves.items(), colours, strict=True):
        for k, run in enumerate(runs):
            label = name if k == 0 else None
            right.plot(*zip(*run, strict=True), color=colour, alpha=0.7, lw=1, label=label)
    right.set(xlabel="simulations", ylabel="energy score", yscale="log", title="On the way there")
    right.legend(frameon=False)
    figure.savefig(target, dpi=110)


if __name__ == "__main__":
    main()
