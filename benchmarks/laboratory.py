"""Which estimator is closest, at equal cost? Four evaluations per gradient, laws by costs.

For each law and cost the error of one gradient, sqrt(bias² + variance) relative to the size of the
exact gradient, of every estimator with settings that evaluate the cost four times. Prints Markdown.

    python -m benchmarks.laboratory > results/midcdf/laboratory.md
"""

from __future__ import annotations

import math
import platform
from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.distributions import (
    Binomial,
    Distribution,
    Geometric,
    Independent,
    NegativeBinomial,
    Poisson,
)

import gengs
from gengs import Cost, Estimator, Finite, lab
from gengs_experiments.experiments.laboratory import CostName, named_cost

REPLICATES, SEED, WARM_UP = 20_000, 0, 300
LATENTS = 20


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
    lambda: gengs.MidCDF(4, antithetic=True),
    lambda: gengs.MidCDF(2, debias=1, antithetic=True),
    lambda: gengs.StraightThroughMean(4),
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
    lambda: gengs.FiniteDifference(1, samples=2),
)


Table = dict[str, dict[str, tuple[float, float]]]
"""For each cost, each estimator's relative error and relative bias."""


def errors(
    cost: Cost, law: Callable[[], Distribution], exact: Tensor | None = None
) -> dict[str, tuple[float, float]]:
    """Relative error and relative bias of every estimator that serves the law."""
    found = {}
    for make in ESTIMATORS:
        settings = {"gradients": REPLICATES, "warm_up": WARM_UP, "seed": SEED}
        try:
            result = lab.measure(cost, law(), [make()], exact=exact, **settings)  # type: ignore[arg-type]
        except TypeError:  # it declines the law
            continue
        row, size = result.rows[0], float(result.exact.norm())
        error = math.sqrt(max(row.bias**2 - row.bias_error**2, 0) + row.variance) / size
        found[row.estimator] = (error, row.bias / size)
    return found


def one_latent(law: str) -> Table:
    """The four costs under one law."""
    target = TARGETS.get(law, 2.6)
    return {cost: errors(named_cost(cost, target), LAWS[law]) for cost in COSTS}


def many_latents() -> Table:
    """A latent vector, as in a VAE; its exact gradients have closed forms."""
    weight = torch.linspace(-1.0, 1.5, LATENTS)
    target = float(2 * weight.sum()) + 1.5

    def law() -> Distribution:
        return Independent(Poisson(torch.full((1, LATENTS), 2.0, requires_grad=True)), 1)

    # E (w·z - t)² has the derivative w² + 2 w (w·rate - t) in each rate
    of_the_sum = weight.square() + 2 * weight * (2 * weight.sum() - target)
    network = named_cost("network", 0.0)
    rate = torch.tensor(2.0, requires_grad=True)
    (slope,) = torch.autograd.grad(gengs.Exact().expect(network, Poisson(rate)), rate)
    return {
        "quadratic in the sum": errors(lambda z: (z @ weight - target).square(), law, of_the_sum),
        "sum of networks": errors(lambda z: network(z).sum(-1), law, slope.expand(LATENTS)),
    }


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
    tables: dict[str, Callable[[], Table]] = {law: partial(one_latent, law) for law in LAWS}
    tables[f"{LATENTS} x Poisson(2)"] = many_latents
    for law, measured in tables.items():
        columns = measured()
        names = list(dict.fromkeys(name for column in columns.values() for name in column))
        print(
            f"## {law}\n\n| estimator | {' | '.join(columns)} |\n| --- |{' ---: |' * len(columns)}"
        )
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
            print(f"- {name}: {count} of {len(LAWS) * len(COSTS) + 2}")


if __name__ == "__main__":
    main()
