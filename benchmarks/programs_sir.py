"""A stochastic epidemic, five costs from smooth to a step: bias, variance and time of each rule.

A chain-binomial SIR model of N people and 40 steps. The reference is a finite difference of a large
mean, with its standard error; the rules are those of ``gengs.differentiable``.

    python -m benchmarks.programs_sir > results/programs/sir.md      # and results/programs/sir.png
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from pathlib import Path

import torch
from torch import Tensor

import gengs

THETA, STEPS = (0.5, 0.2), 40
COSTS = {
    "attack rate": lambda path: 1 - path[0][-1],
    "distance of the curve from 0.2": lambda path: (path[1] - 0.2).square().mean(0),
    "height of the peak": lambda path: path[1].amax(0),
    "sigmoid, 0.05 wide, of the attack rate": lambda path: torch.sigmoid(
        (0.5 - path[0][-1]) / 0.05
    ),
    "step: is the peak above 0.3": lambda path: (path[1].amax(0) > 0.3).to(path[1].dtype),
}
_WIDTH = {10: 0.1, 100: 0.05, 1000: 0.02}  # where many people make a step, it is narrow
RULES: dict[str, object] = {
    "mid-CDF path": gengs.MidCDF(),
    "straight-through": gengs.StraightThroughMean(),
    "score, leave-one-out": gengs.RLOO(),
    "score, fitted": gengs.FittedScore(memory=0.0),  # several costs of one program
}


def simulate(theta: Tensor, people: int, replicates: int) -> tuple[Tensor, Tensor]:
    """Shares of the susceptible and the infected, ``(steps, replicates)`` each."""
    first = max(1, people // 20)
    infected = torch.full((replicates,), float(first))
    susceptible = people - infected
    recovery = (1 - torch.exp(-theta[1])).expand(replicates)
    path = []
    for _ in range(STEPS):
        risk = 1 - torch.exp(-theta[0] * infected / people)
        new = torch.binomial(susceptible, risk)
        recovered = torch.binomial(infected, recovery)
        susceptible, infected = susceptible - new, infected + new - recovered
        path.append((susceptible / people, infected / people))
    return torch.stack([s for s, _ in path]), torch.stack([i for _, i in path])


def costs_of(path: tuple[Tensor, Tensor]) -> Tensor:
    """All costs, ``(costs, replicates)``."""
    return torch.stack([cost(path) for cost in COSTS.values()])


def finite_differences(people: int, number: int, batches: int = 20) -> tuple[Tensor, Tensor]:
    """Gradients ``(costs, parameters)`` and their standard errors."""
    theta = torch.tensor(THETA)
    found = torch.zeros(batches, len(COSTS), len(theta), dtype=torch.float64)
    with torch.no_grad():
        for batch in range(batches):
            for i in range(len(theta)):
                width, sides = _WIDTH[people] * theta[i], []
                for far in (1, -1, 2, -2):
                    torch.manual_seed(1000 + batch)
                    moved = theta.clone()
                    moved[i] += far * width
                    sides.append(
                        costs_of(simulate(moved, people, number // batches)).double().mean(1)
                    )
                near, wide = sides[0] - sides[1], sides[2] - sides[3]
                found[batch, :, i] = (4 * near / (2 * width) - wide / (4 * width)) / 3
    return found.mean(0), found.std(0) / batches**0.5


def gradients_of(rule: object, people: int, replicates: int, number: int) -> tuple[Tensor, float]:
    """Independent gradients ``(number, costs, parameters)``, and the milliseconds of one."""
    rows, times = [], []
    for _ in range(number):
        theta = torch.tensor(THETA, requires_grad=True)
        start = time.process_time()  # others use the machine too
        with gengs.differentiable(by=rule) as program:
            path = simulate(theta, people, replicates)
        row: list[Tensor] = []
        for k, cost in enumerate(COSTS.values()):
            loss = program.loss(cost(path)).mean()
            if loss.requires_grad:
                row += torch.autograd.grad(loss, theta, retain_graph=True)
            else:
                row.append(torch.zeros_like(theta))
            if k == 0:
                times.append(time.process_time() - start)
        rows.append(torch.stack(row))
    return torch.stack(rows).double(), 1e3 * sorted(times)[len(times) // 2]


def picture(found: dict[tuple[int, str], dict[str, list[float]]], target: Path) -> None:
    """Relative bias and variance against the number of people."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, len(COSTS), figsize=(15, 6), sharex=True, layout="constrained")
    colours = dict(zip(RULES, ("#1b6ca8", "#d1495b", "#66803d", "#8d6cab"), strict=True))
    for k, name in enumerate(COSTS):
        for rule, colour in colours.items():
            people = sorted({n for n, r in found if r == rule})
            bias = [found[n, rule]["bias"][k] for n in people]
            error = [2 * found[n, rule]["error"][k] for n in people]
            axes[0, k].errorbar(
                people, bias, error, color=colour, marker="o", capsize=3, label=rule
            )
            variance = [found[n, rule]["variance"][k] for n in people]
            axes[1, k].plot(people, [v or float("nan") for v in variance], color=colour, marker="o")
        axes[0, k].set(title=name.replace(", 0.05 wide,", ""), xscale="log")
        axes[0, k].title.set_fontsize(9)
        axes[0, k].axhline(0, color="0.6", lw=0.8)
        axes[0, k].set_yscale("symlog", linthresh=10)
        axes[0, k].set_ylim(-1, 400)
        axes[1, k].set(xscale="log", yscale="log", xlabel="people")
    axes[0, 0].set_ylabel("bias, % of the gradient")
    axes[1, 0].set_ylabel("variance of one replicate's gradient\n/ size of the gradient squared")
    figure.legend(*axes[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=4)
    figure.savefig(target, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reference", type=int, default=150_000)
    parser.add_argument("--gradients", type=int, default=50)
    parser.add_argument("--replicates", type=int, default=1000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", gengs.CutGradientWarning)
    print("# A stochastic epidemic: where the path is right, and where it is not\n")
    print("`python -m benchmarks.programs_sir > results/programs/sir.md`\n")
    print(
        f"Chain-binomial SIR, infection rate {THETA[0]}, recovery {THETA[1]}, {STEPS} steps, one "
        "person in twenty infected at first (one of ten). Gradients in both rates, "
        f"{options.gradients} of {options.replicates:,} replicates per rule; the reference is a "
        f"central finite difference of fourth order, {options.reference:,} simulations on each "
        "side. Bias: distance of the mean gradient from the reference, in per cent of its size, ± "
        "one standard error (of both). Variance: of one replicate's gradient over the squared size "
        f"of the gradient. torch {torch.__version__}, gengs {gengs.__version__}, "
        f"Python {platform.python_version()}.\n\n![](sir.png)\n"
    )
    found = {}
    for people in (10, 100, 1000):
        torch.manual_seed(people)
        exact, reference_error = finite_differences(people, options.reference)
        size = exact.norm(dim=-1)
        print(f"## {people:,} people\n")
        print("| cost | gradient | " + " | ".join(f"{r}: bias, % | variance" for r in RULES) + " |")
        print("| --- | --- |" + " ---: | ---: |" * len(RULES))
        times = {}
        for rule, estimator in RULES.items():
            torch.manual_seed(0)
            rows, times[rule] = gradients_of(
                estimator, people, options.replicates, options.gradients
            )
            variance = rows.var(0)  # (costs, parameters)
            error = (variance / len(rows) + reference_error.square()).sum(-1).sqrt()
            found[people, rule] = {
                "bias": (100 * (rows.mean(0) - exact).norm(dim=-1) / size).tolist(),
                "error": (100 * error / size).tolist(),
                "variance": (options.replicates * variance.sum(-1) / size.square()).tolist(),
            }
        for k, name in enumerate(COSTS):
            cells = []
            for rule in RULES:
                row = found[people, rule]
                cells.append(
                    f"{row['bias'][k]:.1f} ± {row['error'][k]:.1f} | {row['variance'][k]:.3g}"
                )
            shown = f"({exact[k, 0]:.3f}, {exact[k, 1]:.3f})"
            print(f"| {name} | {shown} | {' | '.join(cells)} |")
        shown = ", ".join(f"{rule} {ms:.0f} ms" for rule, ms in times.items())
        print(f"\nProcessor time of one gradient of the first cost: {shown}.\n", flush=True)
    print(
        "**What to take from it.** With a thousand people the path is within the error of the "
        "reference on all costs that have a slope, at a variance 35 to 700 times below the "
        "plain score; the fitted score, which has no bias, is as quiet there, but for the "
        "height of the peak. With a hundred the path is off by up to 5 % on smooth costs and by "
        "half on the steep sigmoid; with ten, where one person more or less is no small step "
        "and many epidemics die out at once, by a third to all of the gradient. It sees nothing "
        "of a step, whatever the number of people. Both scores are unbiased throughout, and the "
        "fitted one varies up to 700 times less. Straight-through, which moves each count as its "
        "mean, is as good as the path where the counts are large, and varies up to thirty times "
        "more where they are not."
    )
    picture(found, Path("results/programs/sir.png"))


if __name__ == "__main__":
    main()
