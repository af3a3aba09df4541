"""``gengs measure``: the laboratory from the shell.

Estimators are measured one after the other, each with the same seed, so that the numbers of one do
not depend on which others there are; with a folder, each is kept as soon as it is done.
"""

from __future__ import annotations

__all__ = ["Measure"]

import json
import math
import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ..runs.command_options import OUT, require_out
from ..runs.config import UNRECORDED, check_least
from ..runs.interruption import Interrupted
from ..runs.manifest import resume_command
from ..runs.records import RunFolder
from ..runs.sanitise import say

if TYPE_CHECKING:
    from torch import Tensor
    from torch.distributions import Distribution

    from gengs.estimators.base import Cost, Estimator
    from gengs.lab import Measurement, Row

CostName = Literal["quadratic", "exponential", "sigmoid", "network"]

_LONG = 5.0  # seconds


@dataclass(frozen=True)
class Measure:
    """Measure bias, variance and cost of gradient estimators against the exact gradient."""

    law: str = "poisson(3)"
    """The distribution, such as poisson(3), binomial(20, 0.3), negative-binomial(3, 0.5),
    geometric(0.25), bernoulli(0.4), categorical([0.2, 0.3, 0.5]), skellam(3, 1), subset(10, 3),
    ranking(10)."""
    level: int | None = None
    """Truncate the distribution to this many atoms, so that estimators see a table."""
    cost: CostName = "quadratic"
    """The cost: (z - target)^2, exp(-z / 2), a steep sigmoid 1 / (1 + exp(-4 (z - target))), or a
    small random network. Of subsets and rankings, the cost of a sum of random weights (of their
    elements; of items, with the discounts of DCG)."""
    target: float = 2.6
    """Where the quadratic cost has its minimum and the sigmoid its step."""
    estimators: tuple[str, ...] = ("REINFORCE", "RLOO(4)", "GenGS(0.5)", "MidCDF")
    """Estimators with their settings, each in quotes; or the word all."""
    gradients: int = 20_000
    """The number of gradients per estimator."""
    warm_up: int = 0
    """Steps in which estimators that learn may train their own parts first."""
    seed: int = 0
    """The seed of the random generator."""
    plot: Path | None = field(default=None, metadata=UNRECORDED)
    """Write the bias-variance chart to this file (png or svg)."""
    json: bool = field(default=False, metadata=UNRECORDED)
    """Print JSON instead of a table."""
    out: Annotated[Path | None, OUT] = field(default=None, metadata=UNRECORDED)
    """Keep the result in this folder, for a report."""
    resume: bool = field(default=False, metadata=UNRECORDED)
    """Take up a run in its folder: estimators that are done are not measured again."""

    def run(self) -> Measurement:
        """Measure, print, and return the result."""
        from gengs.estimators.spec import parse_law
        from gengs.lab import measure
        from gengs.tables.truncation import truncate

        self._check()
        law, parameters = parse_law(self.law)
        if not parameters:
            raise ValueError(f"the distribution {self.law!r} has no parameter to differentiate.")
        q = law if self.level is None else truncate(law, self.level)
        cost = named_cost(self.cost, self.target, self.seed)
        if len(q.event_shape):
            cost = of_a_projection(cost, q, self.seed)
        estimators = self._estimators(cost, q)
        result = measure(cost, q, [], gradients=self.gradients, seed=self.seed)  # the exact one
        opened = RunFolder.open(self.out, self, resume=self.resume) if self.out else nullcontext()
        with opened as folder:
            if folder is not None:
                result = replace(result, rows=_kept_rows(folder))
            try:
                for estimator in estimators[len(result.rows) :]:
                    row = self._measure(cost, q, estimator, result.exact)
                    result = replace(result, rows=(*result.rows, row))
                    if folder is not None:
                        _keep(folder, result)
            except KeyboardInterrupt:
                self._print(result)
                if folder is not None:
                    say(f"{len(result.rows)} estimators are kept; to go on: {resume_command()}")
                raise Interrupted from None
            if folder is not None:
                folder.finish()
        self._print(result)
        if self.plot is not None:
            result.plot(f"{self.law}, {self.cost} cost").savefig(self.plot, dpi=150)
        return result

    def _check(self) -> None:
        check_least(self, {"gradients": 2, "warm_up": 0, "seed": 0})
        if not self.estimators:
            raise ValueError("expected estimators after --estimators, or the word all.")
        require_out(self.out, self.resume)
        if self.plot is not None:
            from matplotlib.figure import Figure

            known = Figure().canvas.get_supported_filetypes()
            if self.plot.suffix[1:].lower() not in known:
                raise ValueError(f"expected --plot with .png, .svg or .pdf, but got {self.plot}.")
            if not self.plot.parent.is_dir():
                raise ValueError(f"there is no folder {self.plot.parent} for --plot.")

    def _measure(self, cost: Cost, q: Distribution, estimator: Estimator, exact: Tensor) -> Row:
        """One estimator; where it took long, it is said that it is done."""
        from gengs.lab import measure

        begin, n = time.monotonic(), self.gradients
        (row,) = measure(
            cost, q, estimator, gradients=n, exact=exact, warm_up=self.warm_up, seed=self.seed
        )
        if time.monotonic() - begin > _LONG:
            say(f"measured {row.estimator}", error=True)
        return row

    def _print(self, result: Measurement) -> None:
        say(json.dumps(result.to_dict(), indent=2) if self.json else result)

    def _estimators(self, cost: Cost, q: Distribution) -> list[Estimator]:
        from gengs.estimators.catalogue import ALL
        from gengs.estimators.spec import parse_estimator

        if self.estimators != ("all",):
            return [parse_estimator(text) for text in self.estimators]
        served = []
        for kind in ALL:
            try:
                kind().expect(cost, q)
            except TypeError as error:
                say(f"left out: {error}", error=True)
            else:
                served.append(kind())
        return served


def _keep(folder: RunFolder, result: Measurement) -> None:
    """A record of the last estimator; what the clock decides is no record, but a timing."""
    content = result.to_dict()
    row = content.pop("rows")[-1]
    times = {"estimator": row["estimator"], "milliseconds": row.pop("milliseconds")}
    folder.timings.append(times)
    folder.records.append({"kind": "measurement", "step": 0, **content, **row})


def _kept_rows(folder: RunFolder) -> tuple[Row, ...]:
    """The estimators that a folder has, in the order in which they were measured."""
    from gengs.lab import Row

    times = {time["estimator"]: time["milliseconds"] for time in folder.timings}
    rows = []
    for record in folder.records:
        found = {**record, "milliseconds": times.get(record["estimator"])}
        values: dict[str, Any] = {name: found[name] for name in Row.__dataclass_fields__}
        values |= {name: math.nan for name, value in values.items() if value is None}
        rows.append(Row(**values))
    return tuple(rows)


def named_cost(name: CostName, target: float, seed: int = 0) -> Cost:
    """A cost of scalar values, by name."""
    import torch

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


def of_a_projection(cost: Cost, q: Distribution, seed: int = 0) -> Cost:
    """The cost of a linear function of vectors or orders.

    Elements have standard normal weights; places of an order count as in DCG, 1 / log2(2 + place).
    """
    import torch

    generator = torch.Generator().manual_seed(seed + 1)
    weights = torch.randn(q.event_shape[-1], generator=generator)
    if len(q.event_shape) == 2:
        places = torch.arange(q.event_shape[0])
        weights = (weights / torch.log2(2.0 + places).unsqueeze(-1)).flatten()
    dims = len(q.event_shape)
    return lambda z: cost(z.flatten(z.dim() - dims) @ weights.to(z))
