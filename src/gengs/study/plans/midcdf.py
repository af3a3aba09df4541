"""The mid-CDF against its rivals in a VAE, at equal budgets: explicit and implicit posteriors.

The published comparison (``small``): 20,000 MNIST images, dynamic binarisation, 30 epochs of
batches of 100, 50 latents, Poisson(2) cut to 12 atoms, networks 784-256-128, Adam 1e-3, three
seeds. Rows are estimators, columns posteriors; the number is the negative ELBO of exact draws.
"""

from __future__ import annotations

__all__ = ["CASES", "plan"]

from dataclasses import replace

from ...experiments.vae import VaeConfig
from ..plan import Plan, Run

CASES = {
    "implicit": {
        "mid-CDF": "MidCDF",
        "GenGS": "GenGS",
        "ReinMax": "ReinMax",
        "GenGS ST": "GenGS(hard=True)",
        "RLOO(4)": "RLOO(4)",
        "plain ST": "StraightThroughMean",
    },
    "explicit": {
        "mid-CDF": "MidCDF",
        "GenGS": "GenGS",
        "EAT, cubic": "ArrivalTimes",
        "GenGS ST": "GenGS(hard=True)",
        "RLOO(4)": "RLOO(4)",
        "plain ST": "StraightThroughMean",
    },
}
"""Estimators by posterior and name."""

_SMALL = VaeConfig(
    data="mnist", images=20_000, epochs=30, evaluate_every=10, evaluation_images=10_000
)
# budget: settings of all runs, seeds
_BUDGETS = {
    "smoke": (
        VaeConfig(epochs=1, images=400, evaluation_images=100, network="64-32", latents=8),
        1,
    ),
    "small": (_SMALL, 3),
    "paper": (replace(_SMALL, images=None, epochs=100), 10),
}


def plan(budget: str = "small") -> Plan:
    """The runs of the comparison."""
    base, seeds = _BUDGETS[budget]
    runs = []
    for seed in range(seeds):
        for posterior in ("implicit", "explicit"):
            for name, estimator in CASES[posterior].items():
                # Arrival times know the Poisson law only, not a truncated one.
                level = 0 if estimator == "ArrivalTimes" else 12
                config = replace(
                    base, estimator=estimator, posterior=posterior, level=level, seed=seed
                )
                labels = {"table": "midcdf", "row": name, "column": posterior, "data": base.data}
                runs.append(Run("vae", config, labels))
    return Plan("midcdf", budget, tuple(runs))
