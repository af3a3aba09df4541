"""The built-in studies, each a study file in ``tables/``.

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

__all__ = ["STUDIES", "built_in"]

from importlib.resources import files

from ..runs.config import nearest
from .plan import Plan
from .study_file import read_study

STUDIES = ("figure3", "table1", "table2", "midcdf")
"""Their names."""


def built_in(name: str, budget: str = "small") -> Plan:
    """The built-in study of this name; ``ValueError`` if there is none."""
    if name not in STUDIES:
        raise ValueError(f"there is no study {name!r}{nearest(name, STUDIES)}")
    return read_study(files(__package__) / "tables" / f"{name}.toml", budget)
