"""The built-in studies by name, and the two that are short.

==========  ======================================================================================
figure3     every estimator on a problem with a known answer (the paper's Figure 3)
table1      count-latent VAEs on MNIST and OMNIGLOT (Table 1), and estimators of today beside them
table2      Poisson topic models with one and two layers on 20 Newsgroups and Reuters (Table 2)
midcdf      the mid-CDF estimator against its rivals in a VAE, at equal budgets
==========  ======================================================================================

A budget is ``smoke`` (seconds, embedded data: does it run?), ``small`` (hours on one machine: is
the ranking right?) or ``paper`` (the published setting as far as it is known).
"""

from __future__ import annotations

__all__ = ["PLANS", "built_in", "figure3", "midcdf"]

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import get_args

from ..experiments.synthetic import LawName, Synthetic
from ..experiments.vae import VaeConfig
from ..runs.config import nearest
from .plan import Plan, PlannedRun
from .study_command import Budget
from .table1 import TINY, table1
from .table2 import table2

_CLOSED_FORMS = {
    "smoke": Synthetic(
        estimators=("RF*", "GenGS", "mid-CDF"),
        seeds=2,
        steps=20,
        every=10,
        gradients=10,
        final_gradients=100,
        window=5,
    ),
    "small": Synthetic(),
    "paper": Synthetic(steps=5_000, seeds=20, gradients=1_000),
}


def figure3(budget: str = "small") -> Plan:
    """Figure 3: every estimator on E Σ (z - t)², whose loss and gradient have closed forms.

    One run for each law. A run has all estimators and many seeds side by side, and draws its own
    panels (:mod:`gengs.experiments.synthetic`).
    """
    laws: tuple[LawName, ...] = ("poisson", "binomial") if budget == "smoke" else get_args(LawName)
    runs = []
    for law in laws:
        labels = {"table": "figure3", "row": law, "column": "all estimators", "data": "synthetic"}
        runs.append(PlannedRun("synthetic", replace(_CLOSED_FORMS[budget], law=law), labels))
    return Plan("figure3", budget, tuple(runs))


_RIVALS = {
    "mid-CDF": "MidCDF",
    "GenGS": "GenGS",
    "ReinMax": "ReinMax",
    "EAT, cubic": "ArrivalTimes",
    "GenGS ST": "GenGS(hard=True)",
    "RLOO(4)": "RLOO(4)",
    "plain ST": "StraightThroughMean",
}
_ONLY_IN = {"ReinMax": "implicit", "EAT, cubic": "explicit"}
_PUBLISHED = VaeConfig(
    data="mnist",
    images=20_000,
    decoder_input="counts",
    epochs=30,
    evaluate_every=10,
    evaluation_images=10_000,
)
# budget: settings of all runs, seeds
_EQUAL_BUDGETS = {
    "smoke": (TINY, 1),
    "small": (_PUBLISHED, 3),
    "paper": (replace(_PUBLISHED, images=None, epochs=100), 10),
}


def midcdf(budget: str = "small") -> Plan:
    """The mid-CDF against its rivals in a VAE, at equal budgets: explicit and implicit posteriors.

    The published comparison (``small``): 20,000 MNIST images, dynamic binarisation, 30 epochs of
    batches of 100, 50 latents, Poisson(2) cut to 12 atoms, networks 784-256-128, Adam 1e-3, three
    seeds. Rows are estimators, columns posteriors; the number is the negative ELBO of exact draws.
    """
    base, seeds = _EQUAL_BUDGETS[budget]
    runs = []
    for seed, posterior, name in product(range(seeds), ("implicit", "explicit"), _RIVALS):
        if _ONLY_IN.get(name, posterior) == posterior:
            # Arrival times know the Poisson law only, not a truncated one.
            level = 0 if _RIVALS[name] == "ArrivalTimes" else 12
            settings = {"estimator": _RIVALS[name], "posterior": posterior, "level": level}
            config = replace(base, seed=seed, **settings)  # type: ignore[arg-type]
            labels = {"table": "midcdf", "row": name, "column": posterior, "data": base.data}
            runs.append(PlannedRun("vae", config, labels))
    return Plan("midcdf", budget, tuple(runs))


PLANS: dict[str, Callable[[Budget], Plan]] = {
    "figure3": figure3,
    "table1": table1,
    "table2": table2,
    "midcdf": midcdf,
}
"""The built-in studies by name."""


def built_in(name: str, budget: Budget = "small") -> Plan:
    """The built-in study of this name; ``ValueError`` if there is none."""
    if name not in PLANS:
        raise ValueError(f"there is no study {name!r}{nearest(name, PLANS)}")
    return PLANS[name](budget)
