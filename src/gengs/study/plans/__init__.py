"""The built-in studies: each module has ``plan(budget)``.

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

__all__ = ["BUDGETS", "PLANS", "Budget", "built_in"]

from collections.abc import Callable
from typing import Literal, get_args

from ..config import nearest
from ..plan import Plan
from . import figure3, midcdf, table1, table2

Budget = Literal["smoke", "small", "paper"]
BUDGETS: tuple[Budget, ...] = get_args(Budget)

PLANS: dict[str, Callable[[Budget], Plan]] = {
    "figure3": figure3.plan,
    "table1": table1.plan,
    "table2": table2.plan,
    "midcdf": midcdf.plan,
}
"""The built-in studies by name."""


def built_in(name: str, budget: Budget = "small") -> Plan:
    """The built-in study of this name.

    Raises:
        ValueError: If there is no such study or budget.
    """
    if name not in PLANS:
        raise ValueError(f"there is no study {name!r}{nearest(name, PLANS)}")
    if budget not in BUDGETS:
        raise ValueError(f"there is no budget {budget!r}{nearest(budget, BUDGETS)}")
    return PLANS[name](budget)
