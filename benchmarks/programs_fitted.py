"""The fitted score beside the path and RLOO, on all programs of these benchmarks.

RLOO is unbiased, and so is the fitted score: how far their means are apart, in standard errors of
the difference, is a test. The path's bias is measured against the fitted score's mean.

    python -m benchmarks.programs_fitted --gradients 30 > results/programs/fitted.md
"""

from __future__ import annotations

import argparse
import platform
import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

import gengs

from . import programs_agents, programs_influenza, programs_reactions, programs_sir

Simulation = Callable[[Tensor, int], Tensor]


def sir(people: int, cost: str) -> Simulation:
    return lambda theta, n: programs_sir.COSTS[cost](programs_sir.simulate(theta, people, n))


def influenza(theta: Tensor, n: int) -> Tensor:
    """The distance of the counts in bed from the data: one number for each replicate alone."""
    apart = programs_influenza.simulate(theta, n) - programs_influenza.IN_BED
    return apart.square().sum(-1).add(1e-6).sqrt()


_EDGES = programs_agents.graph(200)


def agents(theta: Tensor, n: int) -> Tensor:
    return programs_agents.simulate(theta, _EDGES, shape=(n, 200), steps=20)


def reactions(species: int) -> Simulation:
    return lambda theta, n: programs_reactions.simulate(theta, n)[:, species]


def ising(theta: Tensor, n: int, side: int = 8, sweeps: int = 8) -> Tensor:
    """Squared magnetisation of spins on a torus, updated in two colours."""
    x = 2 * (torch.rand(n, side, side) < 0.5).float() - 1
    even = (torch.arange(side).unsqueeze(-1) + torch.arange(side)) % 2 == 0
    for _ in range(sweeps):
        for colour in (even, ~even):
            around = sum(x.roll(by, dim) for by in (1, -1) for dim in (1, 2))
            up = torch.bernoulli(torch.sigmoid(2 * (theta[0] * around + theta[1])))
            x = torch.where(colour, 2 * up - 1, x)
    return x.mean((1, 2)).square()


_GRAPH = torch.rand(100, 100, generator=torch.Generator().manual_seed(1)) < 0.05
_GRAPH = (_GRAPH | _GRAPH.T).float()


def rumour(theta: Tensor, n: int) -> Tensor:
    """The share of 100 people who talk of it after 20 days; one hears it, one forgets it."""
    x = torch.zeros(n, 100)
    x[:, :3] = 1
    for _ in range(20):
        hears = 1 - torch.exp(-theta[0] * (x @ _GRAPH))
        x = torch.bernoulli((hears * (1 - x) + torch.exp(-theta[1]) * x).clamp(1e-6, 1 - 1e-6))
    return x.mean(1)


def programs() -> dict[str, tuple[Simulation, list[float], int]]:
    """By name: from parameters and replicates to costs, where, and the replicates' dimension."""
    found: dict[str, tuple[Simulation, list[float], int]] = {}
    for people in (10, 100, 1000):
        for cost in programs_sir.COSTS:
            found[f"SIR of {people:,}: {cost}"] = sir(people, cost), [0.5, 0.2], 0
    for k, name in enumerate(programs_reactions.SPECIES):
        rates = programs_reactions.RATES.log().tolist()
        found[f"reactions: {name}"] = reactions(k), rates, 1
    found["influenza: distance from the data"] = influenza, programs_influenza.START.tolist(), 0
    found["200 agents on a graph: ever infected"] = agents, [0.5, 0.15], 0
    found["rumour among 100"] = rumour, [0.05, 0.3], 0
    found["Ising, 8 × 8, 8 sweeps: squared magnetisation"] = ising, [0.2, 0.05], 0
    return found


def gradients(
    simulate: Simulation, at: list[float], dim: int, rule: object, n: int, number: int
) -> tuple[Tensor, float]:
    """Independent gradients, one a row, and the median processor time of one, in ms."""
    rows: list[Tensor] = []
    times: list[float] = []
    for seed in range(number):
        torch.manual_seed(seed)
        theta = torch.tensor(at, requires_grad=True)
        start = time.process_time()
        with gengs.differentiable(by=rule, dim=dim) as program:
            cost = simulate(theta, n)
        loss = program.loss(cost).mean()
        if loss.requires_grad:
            rows += torch.autograd.grad(loss, theta, materialize_grads=True)
        else:
            rows.append(torch.zeros_like(theta))
        times.append(1e3 * (time.process_time() - start))
    return torch.stack(rows).double(), sorted(times)[len(times) // 2]


def _two(ratio: Tensor) -> str:
    """Two digits, without powers of ten."""
    return f"{float(f'{float(ratio):.2g}'):,g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=500)
    parser.add_argument("--gradients", type=int, default=40)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    n, number = options.replicates, options.gradients
    print("# The score with a fitted control variate, on every program here\n")
    print("`python -m benchmarks.programs_fitted --gradients 30 > results/programs/fitted.md`\n")
    print(
        f"{number} gradients of {n:,} replicates for each rule, seeds 0 to {number - 1}, the same "
        "draws for all. *Quieter*: the variance of RLOO's gradient (summed over parameters) over "
        "that of the rule. *Apart*: the mean of the fitted gradients from RLOO's, in standard "
        "errors of the difference, the largest over parameters; both are unbiased, so about 1 to "
        "3 is expected. *Path off by*: its mean's distance from the fitted one's, in per cent of "
        "the gradient, ± one standard error. *Time*: processor time over RLOO's. With memory: one "
        "rule for all gradients, which remembers its earlier regressions, as between steps of an "
        f"optimiser. torch {torch.__version__}, gengs {gengs.__version__}, "
        f"Python {platform.python_version()}.\n"
    )
    print("| program | path: quieter | path off by, % | fitted: quieter | apart | time |", end="")
    print(" with memory: quieter |\n| --- |" + " ---: |" * 6)
    for name, (simulate, at, dim) in programs().items():
        plain, milliseconds = gradients(simulate, at, dim, gengs.RLOO(), n, number)
        path, _ = gradients(simulate, at, dim, gengs.MidCDF(), n, number)
        fitted, more = gradients(simulate, at, dim, gengs.FittedScore(memory=0.0), n, number)
        kept, _ = gradients(simulate, at, dim, gengs.FittedScore(), n, number)
        kept = kept[5:]  # it has to see a few first
        total = plain.var(0).sum()
        apart = (fitted - plain).mean(0) / ((fitted - plain).std(0) / number**0.5)
        size = fitted.mean(0).norm()
        off = (path - fitted).mean(0).norm() / size
        error = ((path - fitted).var(0).sum() / number).sqrt() / size
        quieter = f"{_two(total / path.var(0).sum())}" if path.any() else "no slope"
        print(
            f"| {name} | {quieter} | {100 * off:.0f} ± {100 * error:.0f} "
            f"| {_two(total / fitted.var(0).sum())} | {apart.abs().max():.1f} "
            f"| {more / milliseconds:.2f} | {_two(total / kept.var(0).sum())} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
