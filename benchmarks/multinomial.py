"""The multinomial form of the mid-CDF rule, beside what else serves multinomials.

The paper's problem: counts of N draws in three boxes, squared distance from a target; and two costs
that are not quadratic. No table of outcomes is made by MidCDF.

    python -m benchmarks.multinomial > results/midcdf/multinomial.md
"""

from __future__ import annotations

import argparse
import platform

import torch
from torch import Tensor
from torch.distributions import Multinomial

import gengs

TARGET = torch.tensor([0.5, 0.3, 0.2])
ESTIMATORS = [
    gengs.MidCDF(samples=4),
    gengs.ReinMax(samples=4),
    gengs.GenGS(0.5, samples=4),
    gengs.GenGS(0.5, samples=4, hard=True),
    gengs.StraightThroughMean(samples=4),
    gengs.RLOO(4),
    gengs.UnOrd(4),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=10_000)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print("# Multinomial counts: error of one gradient at four evaluations of the cost\n")
    print("`python -m benchmarks.multinomial > results/midcdf/multinomial.md`\n")
    print(
        f"{options.replicates:,} gradients per cell in the logits, seed 0. Each cell: the variance "
        "of a gradient, and in brackets the size of its bias ± one standard error where that "
        f"exceeds three of them. gengs {gengs.__version__}, torch {torch.__version__}, "
        f"Python {platform.python_version()}.\n"
    )
    for n in (5, 20):

        def quadratic(z: Tensor, n: int = n) -> Tensor:
            return (z - n * TARGET).square().sum(-1)

        def cubic(z: Tensor, n: int = n) -> Tensor:
            return (z / n).pow(3).sum(-1) * n

        def entropy(z: Tensor, n: int = n) -> Tensor:
            share = (z + 0.5) / (n + 1.5)
            return (share * share.log()).sum(-1) * n

        costs = {"squared distance": quadratic, "cubic": cubic, "negative entropy": entropy}
        logits = torch.tensor([0.8, 0.0, -0.5], dtype=torch.float64, requires_grad=True)
        rows: dict[str, list[str]] = {}
        sizes = []
        for cost in costs.values():
            law = Multinomial(n, logits=logits)
            result = gengs.lab.measure(cost, law, ESTIMATORS, gradients=options.replicates)
            sizes.append(f"{float(result.exact.norm()):.3g}")
            for row in result:
                far = abs(row.bias) > 3 * row.bias_error
                bias = f" ({row.bias:.2g} ± {row.bias_error:.1g})" if far else ""
                rows.setdefault(row.estimator, []).append(f"{row.variance:.3g}{bias}")
        print(f"## {n} draws\n")
        print("| estimator | " + " | ".join(costs) + " |")
        print("| --- |" + " ---: |" * len(costs))
        print("| *size of the exact gradient* | " + " | ".join(sizes) + " |")
        for name, cells in rows.items():
            print(f"| {name} | {' | '.join(cells)} |")
        print(flush=True)


if __name__ == "__main__":
    main()
