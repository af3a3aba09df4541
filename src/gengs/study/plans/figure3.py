"""Figure 3: every estimator on E Σ (z - t)², whose loss and gradient have closed forms.

One run for each law. A run has all estimators and many seeds side by side, and draws its own panels
(:mod:`gengs.experiments.synthetic`).
"""

from __future__ import annotations

__all__ = ["plan"]

from dataclasses import replace
from typing import get_args

from ...experiments.quadratic import LawName
from ...experiments.synthetic import Synthetic
from ..plan import Plan, Run

_LAWS: tuple[LawName, ...] = get_args(LawName)
# budget: settings of all runs, laws
_BUDGETS: dict[str, tuple[Synthetic, tuple[LawName, ...]]] = {
    "smoke": (
        Synthetic(
            estimators=("RF*", "GenGS", "mid-CDF"),
            seeds=2,
            steps=20,
            every=10,
            gradients=10,
            final_gradients=100,
            window=5,
        ),
        ("poisson", "binomial"),
    ),
    "small": (Synthetic(), _LAWS),
    "paper": (Synthetic(steps=5_000, seeds=20, gradients=1_000), _LAWS),
}


def plan(budget: str = "small") -> Plan:
    """The runs of Figure 3."""
    base, laws = _BUDGETS[budget]
    runs = [
        Run(
            "synthetic",
            replace(base, law=law),
            {"table": "figure3", "row": law, "column": "all estimators", "data": "synthetic"},
        )
        for law in laws
    ]
    return Plan("figure3", budget, tuple(runs))
