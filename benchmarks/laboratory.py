"""Which estimator is closest, at equal cost? Four evaluations per gradient, laws by costs.

For each law and cost the error of one gradient, sqrt(bias² + variance) relative to the size of the
exact gradient, of every estimator with settings that evaluate the cost four times. Prints Markdown.

    python -m benchmarks.laboratory > results/midcdf/laboratory.md
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributions import Binomial, Distribution, Geometric, NegativeBinomial, Poisson

import gengs
from gengs import Estimator, Finite, lab
from gengs.experiments.measure import CostName, named_cost

REPLICATES, SEED, WARM_UP = 20_000, 0, 300


def parameter(*numbers: float) -> Tensor:
    return torch.tensor(numbers, requires_grad=True)


LAWS: dict[str, Callable[[], Distribution]] = {
    "Poisson(3)": lambda: Poisson(parameter(3.0)),
    "Poisson(20)": lambda: Poisson(parameter(20.0)),
    "Binomial(20, .3)": lambda: Binomial(20, parameter(0.3)),
    "NegativeBinomial(3, .5)": lambda: NegativeBinomial(3.0, parameter(0.5)),
    "Geometric(.25)": lambda: Geometric(parameter(0.25)),
    "implicit, 12 atoms": lambda: Finite(
        torch.arange(12),
        logits=torch.randn(1, 12, generator=torch.Generator().manual_seed(0)).requires_grad_(),
    ),
}
TARGETS = {"Poisson(20)": 18.6, "Binomial(20, .3)": 5.6}
COSTS: tuple[CostName, ...] = ("quadratic", "exponential", "sigmoid", "network")
ESTIMATORS: tuple[Callable[[], Estimator], ...] = (
    lambda: gengs.MidCDF(4),
    lambda: gengs.MidCDF(2, debias=1),
    lambda: gengs.REINFORCE(4),
    lambda: gengs.RLOO(4),
    lambda: gengs.NVIL(4, normalise=False),
    lambda: gengs.MuProp(3),
    lambda: gengs.REBAR(),
    lambda: gengs.RELAX(),
    lambda: gengs.DetRB(4),
    lambda: gengs.StoRB(4),
    lambda: gengs.UnOrd(4),
    lambda: gengs.GenGS(0.5, 4),
    lambda: gengs.GenGS(0.5, 4, hard=True),
    lambda: gengs.IGR(0.1, 4),
    lambda: gengs.ReinMax(1.0, 4),
    lambda: gengs.GumbelRao(0.5, samples=4),
    lambda: gengs.ArrivalTimes(samples=4),
    lambda: gengs.FiniteDifference(samples=2),
)


def errors(law: str, cost: CostName) -> dict[str, tuple[float, float]]:
    """Relative error and relative bias of every estimator that serves the law."""
    found = {}
    for make in ESTIMATORS:
        estimator, q = make(), LAWS[law]()
        try:
            result = lab.measure(
                named_cost(cost, TARGETS.get(law, 2.6)),
                q,
                [estimator],
                replicates=REPLICATES,
                warm_up=WARM_UP,
                seed=SEED,
            )
        except TypeError:  # it declines the law
            continue
        row, size = result.rows[0], float(result.exact.norm())
        error = math.sqrt(max(row.bias**2 - row.bias_error**2, 0) + row.variance) / size
        found[row.estimator] = (error, row.bias / size)
    return found


def main() -> None:
    torch.set_num_threads(1)
    print("# Error of one gradient at four evaluations of the cost\n")
    print("`python -m benchmarks.laboratory > results/midcdf/laboratory.md`\n")
    print(
        f"{REPLICATES} gradients per cell, seed {SEED}, {WARM_UP} warm-up steps for estimators "
        f"that learn; gengs {gengs.__version__}, torch {torch.__version__}, Python "
        f"{platform.python_version()}. Each cell: sqrt(bias² + variance) of one gradient divided "
        "by the size of the exact gradient; in brackets the relative bias where it exceeds three "
        "standard errors. The smallest of a column is bold. REBAR and RELAX evaluate the cost "
        "twice (they have no multi-sample form here), all others four times.\n"
    )
    wins: dict[str, int] = {}
    for law in LAWS:
        columns = {cost: errors(law, cost) for cost in COSTS}
        names = list(dict.fromkeys(name for column in columns.values() for name in column))
        print(f"## {law}\n\n| estimator | {' | '.join(COSTS)} |\n| --- |{' ---: |' * len(COSTS)}")
        best = {cost: min(column, key=lambda n: column[n][0]) for cost, column in columns.items()}
        for name in names:
            cells = []
            for cost, column in columns.items():
                if name not in column:
                    cells.append("")
                    continue
                error, bias = column[name]
                noise = 3 * error / math.sqrt(REPLICATES)
                cell = f"{error:.2f}" + (f" ({bias:+.2f})" if abs(bias) > max(noise, 0.005) else "")
                cells.append(f"**{cell}**" if best[cost] == name else cell)
                wins[name] = wins.get(name, 0) + (best[cost] == name)
            print(f"| {name} | {' | '.join(cells)} |")
        print(flush=True)
    print("## Columns won\n")
    for name, count in sorted(wins.items(), key=lambda item: -item[1]):
        if count:
            print(f"- {name}: {count} of {len(LAWS) * len(COSTS)}")


if __name__ == "__main__":
    main()
