"""``gengs measure``: the laboratory from the shell."""

from __future__ import annotations

__all__ = ["Measure", "write_measurement"]

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..distributions.truncate import truncate
from ..estimators.base import Cost, Estimator
from ..estimators.catalogue import ALL
from ..lab import Measurement, measure
from ..spec import parse_estimator, parse_law
from ..study.config import UNRECORDED
from ..study.records import RunFolder

CostName = Literal["quadratic", "exponential", "sigmoid", "network"]


@dataclass(frozen=True)
class Measure:
    """Measure bias, variance and cost of gradient estimators against the exact gradient."""

    law: str = "poisson(3)"
    """The law of the variable, such as poisson(3), binomial(20, 0.3), negative-binomial(3, 0.5),
    geometric(0.25), bernoulli(0.4), skellam(3, 1)."""
    level: int | None = None
    """Truncate the law to this many atoms, so that estimators see a table."""
    cost: CostName = "quadratic"
    """The cost: (z - target)^2, exp(-z / 2), a steep sigmoid 1 / (1 + exp(-4 (z - target))), or a
    small random network."""
    target: float = 2.6
    """Where the quadratic cost has its minimum and the sigmoid its step."""
    estimators: tuple[str, ...] = ("REINFORCE", "RLOO(4)", "GenGS(0.5)", "MidCDF")
    """Estimators with their settings, each in quotes; or the word all."""
    replicates: int = 20_000
    """The number of gradients per estimator."""
    warm_up: int = 0
    """Steps in which estimators that learn may train their own parts first."""
    seed: int = 0
    """The seed of the random generator."""
    plot: Path | None = field(default=None, metadata=UNRECORDED)
    """Write the bias-variance chart to this file (png or svg)."""
    json: bool = field(default=False, metadata=UNRECORDED)
    """Print JSON instead of a table."""
    out: Path | None = field(default=None, metadata=UNRECORDED)
    """Keep the result in this folder, for a report."""

    def run(self) -> Measurement:
        """Measure, print, and return the result."""
        if self.out is None:
            return self._run()
        with RunFolder.open(self.out, self) as folder:
            result = self._run()
            write_measurement(folder, result)
        return result

    def _run(self) -> Measurement:
        law, parameters = parse_law(self.law)
        if not parameters:
            raise ValueError(f"the law {self.law!r} has no parameter to differentiate.")
        q = law if self.level is None else truncate(law, self.level)
        cost = named_cost(self.cost, self.target, self.seed)
        result = measure(
            cost,
            q,
            self._estimators(cost, q),
            replicates=self.replicates,
            warm_up=self.warm_up,
            seed=self.seed,
        )
        if self.plot is not None:
            result.plot().savefig(self.plot, dpi=150)
        print(json.dumps(result.to_dict(), indent=2) if self.json else result)
        return result

    def _estimators(self, cost: Cost, q: Distribution) -> list[Estimator]:
        if self.estimators != ("all",):
            return [parse_estimator(text) for text in self.estimators]
        served = []
        for kind in ALL:
            try:
                kind().expect(cost, q)
            except TypeError as error:
                print(f"left out: {error}", file=sys.stderr)
            else:
                served.append(kind())
        return served


def write_measurement(folder: RunFolder, result: Measurement) -> None:
    """A record for each estimator; what the clock decides is no record, but a timing."""
    content = result.to_dict()
    for row in content.pop("rows"):
        times = {"estimator": row["estimator"], "milliseconds": row.pop("milliseconds")}
        folder.append_timing(times)
        folder.append({"kind": "measurement", "step": 0, **content, **row})


def named_cost(name: CostName, target: float, seed: int = 0) -> Cost:
    """A cost of scalar values, by name."""
    if name == "quadratic":
        return lambda z: (z - target).square()
    if name == "exponential":
        return lambda z: torch.exp(-z / 2)
    if name == "sigmoid":
        return lambda z: torch.sigmoid(4 * (z - target))
    generator = torch.Generator().manual_seed(seed)
    inner, outer = torch.randn(16, generator=generator), torch.randn(16, generator=generator)
    shift = 3 * torch.randn(16, generator=generator)

    def network(z: Tensor) -> Tensor:
        return (torch.tanh(z.unsqueeze(-1) * inner.to(z) + shift.to(z)) * outer.to(z)).sum(-1)

    return network
