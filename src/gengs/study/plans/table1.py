"""Table 1: VAEs with six count priors, trained by every estimator, on MNIST and OMNIGLOT.

Rows are priors, columns estimators, as in the paper. Ours stand beside them: the mid-CDF on both
kinds of posterior, ReinMax, exponential arrival times (Poisson priors only), and leave-one-out with
four draws. ``Imp`` is an implicit posterior (any PMF on the prior's atoms), ``NP`` truncates each
batch to the window that holds nearly all mass, a number in brackets is that of draws.

What the paper does not say (networks, batch, binarisation) is the setting that came closest to its
numbers: pixels cut at one half, 784-512-256, batches of 200, Adam 1e-3, 50 latents.
"""

from __future__ import annotations

__all__ = ["BUDGETS", "COLUMNS", "Column", "Size", "plan"]

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from ...experiments.vae import VaeConfig
from ..paper import ROWS
from ..plan import Plan, Run

Data = Literal["digits", "mnist", "omniglot"]
MASS = 0.999
"""What NP keeps of the posterior."""


@dataclass(frozen=True)
class Column:
    """An estimator and the posterior it trains."""

    estimator: str
    posterior: Literal["explicit", "implicit"] = "explicit"
    mass: float | None = None
    level: int | None = None
    rows: tuple[str, ...] = tuple(ROWS)
    prior: str | None = None


COLUMNS = {
    "RF*": Column("RLOO"),
    "NVIL": Column("NVIL(normalise=False)"),
    "MuProp": Column("MuProp"),
    "REBAR": Column("REBAR"),
    "RELAX": Column("RELAX"),
    "GenGS": Column("GenGS"),
    "GenGS Imp": Column("GenGS", "implicit"),
    "GenGS NP": Column("GenGS", mass=MASS),
    "VIMCO(10)": Column("VIMCO(10)"),
    "StoRB*(10)": Column("StoRB(10, baseline=True)"),
    "UnOrd(10)": Column("UnOrd(10)"),
    "GenGS(10)": Column("GenGS(samples=10)"),
    "GenGS Imp(10)": Column("GenGS(samples=10)", "implicit"),
    "GenGS NP(10)": Column("GenGS(samples=10)", mass=MASS),
    "MidCDF": Column("MidCDF"),
    "MidCDF Imp": Column("MidCDF", "implicit"),
    "MidCDF Imp(10)": Column("MidCDF(10)", "implicit"),
    "ReinMax Imp": Column("ReinMax", "implicit"),
    "EAT": Column("ArrivalTimes", level=0, rows=("Pois(2)", "Pois(3)")),
    "RLOO(4)": Column("RLOO(4)"),
    "Gaussian": Column("MidCDF", prior="gaussian", rows=("Pois(2)",)),
}
"""Estimators by the names in the table's head; the last six are not in the paper."""


@dataclass(frozen=True)
class Size:
    """How much of the table to compute, and for how long to train."""

    base: VaeConfig
    data: tuple[Data, ...]
    seeds: int
    rows: tuple[str, ...] = tuple(ROWS)
    columns: tuple[str, ...] = tuple(COLUMNS)
    briefly: tuple[str, ...] = ()
    """Rows beside these, with one seed on the first data set."""


_BASE = VaeConfig(binarise="threshold", network="512-256", batch_size=200)

BUDGETS: Mapping[str, Size] = {
    "smoke": Size(
        VaeConfig(epochs=1, images=400, evaluation_images=100, network="64-32", latents=8),
        data=("digits",),
        seeds=1,
        rows=("Pois(2)",),
        columns=("RF*", "GenGS", "GenGS Imp", "MidCDF Imp"),
    ),
    # Two hours and a half on two cores: a part of the images, the smaller network, one prior in
    # full and the others briefly.
    "small": Size(
        replace(
            _BASE,
            network="256-128",
            batch_size=100,
            images=10_000,
            epochs=30,
            evaluate_every=10,
            evaluation_images=5_000,
            likelihood_samples=100,
        ),
        data=("mnist", "omniglot"),
        seeds=2,
        rows=("Pois(2)",),
        briefly=tuple(row for row in ROWS if row != "Pois(2)"),
    ),
    "paper": Size(
        replace(
            _BASE,
            epochs=100,
            evaluate_every=10,
            evaluation_images=10_000,
            likelihood_samples=1_000,
        ),
        data=("mnist", "omniglot"),
        seeds=10,
    ),
}


def plan(budget: str = "small") -> Plan:
    """The runs of Table 1: first seeds of all cells, then second ones."""
    size = BUDGETS[budget]
    cells = [(row, d, seed) for seed in range(size.seeds) for d in size.data for row in size.rows]
    cells += [(row, size.data[0], 0) for row in size.briefly]
    runs = [
        Run(
            "vae",
            replace(
                size.base,
                data=data,
                prior=COLUMNS[column].prior or ROWS[row],
                estimator=COLUMNS[column].estimator,
                posterior=COLUMNS[column].posterior,
                mass=COLUMNS[column].mass,
                level=COLUMNS[column].level,
                seed=seed,
            ),
            {"table": "table1", "row": row, "column": column, "data": data},
        )
        for row, data, seed in cells
        for column in size.columns
        if row in COLUMNS[column].rows
    ]
    return Plan("table1", budget, tuple(runs))
