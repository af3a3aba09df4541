"""What a block costs on a small simulator, where each call to torch counts.

A chain-binomial epidemic of 35 steps and 70 draws: processor time of forward and backward over that
of the simulation without gradients.

    python -m benchmarks.programs_overhead > results/programs/overhead.md
"""

from __future__ import annotations

import platform
import time
import warnings
from collections.abc import Callable

import torch
from torch import Tensor

import gengs

STEPS = 35


def simulate(theta: Tensor, replicates: int, people: float = 1000.0) -> Tensor:
    infected = torch.full((replicates,), 50.0)
    susceptible = people - infected
    recovery = (1 - torch.exp(-theta[1])).expand(replicates)
    for _ in range(STEPS):
        new = torch.binomial(susceptible, 1 - torch.exp(-theta[0] * infected / people))
        gone = torch.binomial(infected, recovery)
        susceptible, infected = susceptible - new, infected + new - gone
    return 1 - susceptible / people


def least(run: Callable[[], object], rounds: int = 20) -> float:
    """The least processor time of a call, in milliseconds: others use the machine, too."""
    times = []
    for _ in range(rounds + 3):
        start = time.process_time()
        run()
        times.append(time.process_time() - start)
    return 1e3 * min(times[3:])


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    theta = torch.tensor([0.5, 0.2], requires_grad=True)

    def plain(n: int) -> None:
        with torch.no_grad():
            simulate(theta, n)

    def block(n: int, by: object) -> None:
        with gengs.differentiable(by=by) as program:
            share = simulate(theta, n)
        program.loss(share).mean().backward()

    print("# What a block costs on a small simulator\n")
    print("`python -m benchmarks.programs_overhead > results/programs/overhead.md`\n")
    print(
        f"{STEPS} steps, {2 * STEPS} draws; processor time, forward and backward, over that of the "
        "simulation without gradients; the least of 20 runs, one thread. "
        f"torch {torch.__version__}, gengs {gengs.__version__}, "
        f"Python {platform.python_version()}.\n"
    )
    rules = {"path": None, "RLOO": gengs.RLOO(), "FittedScore": gengs.FittedScore()}
    print(f"| replicates | without gradients, ms | {' | '.join(rules)} |")
    print("| ---: |" + " ---: |" * (1 + len(rules)))
    for n in (500, 5000, 50_000):
        base = least(lambda n=n: plain(n))  # type: ignore[misc]
        ratios = [least(lambda n=n, by=by: block(n, by)) / base for by in rules.values()]  # type: ignore[misc]
        print(f"| {n:,} | {base:.1f} | {' | '.join(f'{r:.1f}' for r in ratios)} |", flush=True)


if __name__ == "__main__":
    main()
