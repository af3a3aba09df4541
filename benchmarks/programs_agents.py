"""Agents on a graph: what gradients cost, beside no gradients and beside autograd written by hand.

100,000 agents, each with about ten neighbours; in each of 50 steps an agent may be infected by its
neighbours and may recover. The same simulation three ways, in turn, one thread: without gradients;
with ``gengs.differentiable``; with an autograd function written by hand, as people do. Each way in
a process of its own for its peak memory, and all three interleaved in one process for their times.

    python -m benchmarks.programs_agents > results/programs/agents.md
"""

from __future__ import annotations

import argparse
import platform
import subprocess
import sys
import time
from typing import Any

import torch
from torch import Tensor

import gengs

from .timing import growth

AGENTS, NEIGHBOURS, STEPS = 100_000, 10, 50


class HandWritten(torch.autograd.Function):
    """A Bernoulli draw with its slope, as a user would write it for this one simulator."""

    @staticmethod
    def forward(ctx: Any, p: Tensor) -> Tensor:
        z = torch.bernoulli(p)
        ctx.save_for_backward(z, p)
        return z

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        z, p = ctx.saved_tensors
        slope = (z / p.clamp_min(1e-12) + (1 - z) / (1 - p).clamp_min(1e-12)) / 2
        return grad * slope.where((p > 0) & (p < 1), 1.0)


def graph(agents: int = AGENTS) -> tuple[Tensor, Tensor]:
    """Who infects whom: ``(edges,)`` twice."""
    generator = torch.Generator().manual_seed(0)
    half = agents * NEIGHBOURS // 2
    a, b = torch.randint(agents, (2, half), generator=generator)
    return torch.cat([a, b]), torch.cat([b, a])


def simulate(
    theta: Tensor,
    edges: tuple[Tensor, Tensor],
    bernoulli: Any = torch.bernoulli,
    shape: tuple[int, ...] = (AGENTS,),
    steps: int = STEPS,
) -> Tensor:
    """The share of agents that were ever infected, one number for each replicate before them."""
    source, target = edges
    infected = torch.zeros(shape)
    infected[..., : max(shape[-1] // 1000, 10)] = 1.0
    susceptible = 1 - infected
    recovery = (1 - torch.exp(-theta[1])).expand(shape)
    for _ in range(steps):
        pressure = torch.zeros(shape).index_add(-1, target, infected.index_select(-1, source))
        p = (1 - torch.exp(-theta[0] / NEIGHBOURS * pressure)) * susceptible
        new = bernoulli(p)
        recovered = bernoulli(recovery) * infected
        susceptible = susceptible - new
        infected = infected + new - recovered
    return 1 - susceptible.mean(-1)


def accuracy(
    steps: int, agents: int = 1000, batches: int = 20
) -> tuple[list[Tensor], list[Tensor]]:
    """Means and standard errors: of finite differences, and of the path."""
    edges, theta, width = graph(agents), torch.tensor([0.5, 0.15]), 0.05
    differences: list[Tensor] = []
    paths: list[Tensor] = []
    for batch in range(batches):
        row = []
        with torch.no_grad():
            for i in range(2):
                sides = []
                for sign in (1, -1):
                    torch.manual_seed(batch)
                    moved = theta.clone()
                    moved[i] *= 1 + sign * width
                    sides.append(simulate(moved, edges, shape=(50, agents), steps=steps).mean())
                row.append((sides[0] - sides[1]) / (2 * width * theta[i]))
        differences.append(torch.stack(row))
        leaf = theta.clone().requires_grad_()
        with gengs.differentiable() as program:
            share = simulate(leaf, edges, shape=(20, agents), steps=steps)
        paths += torch.autograd.grad(program.loss(share).mean(), leaf)
    found = [torch.stack(rows) for rows in (differences, paths)]
    return [x.mean(0) for x in found], [x.std(0) / len(x) ** 0.5 for x in found]


def run(way: str, edges: tuple[Tensor, Tensor]) -> float:
    """Seconds of one simulation, with the way back where there is one."""
    theta = torch.tensor([0.5, 0.15], requires_grad=True)
    torch.manual_seed(0)
    start = time.perf_counter()
    if way == "plain":
        with torch.no_grad():
            simulate(theta, edges)
    elif way == "gengs":
        with gengs.differentiable() as program:
            share = simulate(theta, edges)
        program.loss(share).backward()
    else:
        simulate(theta, edges, HandWritten.apply).backward()
    return time.perf_counter() - start


def peak(way: str) -> float:
    """Mebibytes that a process takes for this."""
    command = [sys.executable, "-m", "benchmarks.programs_agents", "--peak", way]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peak", choices=["plain", "gengs", "hand"])
    parser.add_argument("--repeats", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)
    edges = graph()
    if options.peak:
        print(growth(lambda: run(options.peak, edges)))
        return
    ways = {"plain": "without gradients", "gengs": "gengs.differentiable", "hand": "by hand"}
    times: dict[str, list[float]] = {way: [] for way in ways}
    for way in ways:
        run(way, edges)
    for _ in range(options.repeats):
        for way in ways:
            times[way].append(run(way, edges))

    def median(values: list[float]) -> float:
        return sorted(values)[len(values) // 2]

    print("# Agents on a graph: the price of gradients\n")
    print("`python -m benchmarks.programs_agents > results/programs/agents.md`\n")
    print(
        f"{AGENTS:,} agents, {len(edges[0]):,} directed edges, {STEPS} steps, {2 * STEPS} draws of "
        f"{AGENTS:,} numbers; forward and backward, one thread, {options.repeats} rounds in turn. "
        "Ratios are medians over rounds. Memory is how far the resident set rises during the first "
        f"run of a process of its own. torch {torch.__version__}, "
        f"gengs {gengs.__version__}, Python {platform.python_version()}.\n"
    )
    print("| simulation | best, s | time / without gradients | time / by hand | memory, MiB |")
    print("| --- | ---: | ---: | ---: | ---: |")
    for way, name in ways.items():
        ratios = [
            f"{median([a / b for a, b in zip(times[way], times[other], strict=True)]):.2f}"
            for other in ("plain", "hand")
        ]
        memory = f"{peak(way):.0f}"
        print(f"| {name} | {min(times[way]):.2f} | {' | '.join(ratios)} | {memory} |")
    print("\n## Is the gradient right?\n")
    print(
        "1,000 agents on such a graph, gradients of the mean share ever infected in the rates of "
        "infection and recovery, ± one standard error. A draw stands for one individual here, and "
        "most have a probability of exactly 0 (no neighbour is ill), where they move by the whole "
        "one-sided slope.\n"
    )
    print("| steps | finite differences | path |\n| ---: | --- | --- |")
    for steps in (5, 10, 20, 40):
        means, errors = accuracy(steps)
        cells = [
            ", ".join(f"{m:.3f} ± {e:.3f}" for m, e in zip(a.tolist(), b.tolist(), strict=True))
            for a, b in zip(means, errors, strict=True)
        ]
        print(f"| {steps} | {' | '.join(cells)} |", flush=True)
    print(
        "\nBy hand there is one autograd function, for one law in one parameter; "
        "`gengs.differentiable` runs the simulator as it stands, checks the domain of each draw, "
        "and watches for gradients that end."
    )


if __name__ == "__main__":
    main()
