"""The estimators that the synthetic experiment compares, under the names the paper gives them.

Each knows which law it sees: an estimator that needs a table of atoms gets a truncated law, any
other the law itself.
"""

from __future__ import annotations

__all__ = ["Contender", "Group", "contenders"]

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from torch.distributions import Distribution, Independent

from ..distributions.truncation import truncate
from ..estimators.base import Estimator
from ..estimators.spec import parse_estimator
from .quadratic import CountFamily

Group = Literal["score function", "sums", "relaxed control", "GenGS", "relaxation", "steps"]

_TABLES = ("any law, as a table of atoms", "few joint outcomes")  # what an estimator may need


@dataclass(frozen=True)
class Contender:
    """An estimator in the comparison."""

    label: str
    """What the paper calls it."""
    group: Group
    """What kind of estimator it is."""
    call: str
    """The estimator with its settings."""
    mass: float | None = None
    """Cut the law anew at each step, to this mass (Algorithm 2, NP)."""

    def make(self) -> Estimator:
        """A fresh copy."""
        return parse_estimator(self.call)

    def law(self, law: Distribution, level: int | None) -> Distribution:
        """The law it sees: a vector of independent factors, truncated where it needs a table."""
        if self.mass is not None:
            law = truncate(law, mass=self.mass)
        elif self._needs_table:
            law = truncate(law, level)
        return Independent(law, 1, validate_args=False)

    @cached_property
    def _needs_table(self) -> bool:
        return self.make().needs in _TABLES


def contenders(
    names: Sequence[str], family: CountFamily, temperature: float, k: int, mass: float
) -> list[Contender]:
    """The estimators of these names: the paper's (``RF*``), or calls (``GenGS(0.1)``), or ``all``.

    Of a finite family, ``all`` leaves out a search for its range. Multi-sample estimators make
    ``k`` evaluations, GenGS NP keeps the mass.
    """
    roster = {contender.label.lower(): contender for contender in _roster(temperature, k, mass)}
    if list(names) == ["all"]:
        finite = family.level is None
        return [one for one in roster.values() if not (finite and one.mass is not None)]
    groups: dict[type, Group] = {type(one.make()): one.group for one in roster.values()}
    chosen: dict[str, Contender] = {}
    for name in names:
        one = roster.get(name.lower())
        if one is None:
            one = Contender(name, groups.get(type(parse_estimator(name)), "steps"), name)
        if one.label in chosen:
            raise ValueError(f"expected each estimator once, but got {one.label} again.")
        chosen[one.label] = one
    return list(chosen.values())


def _roster(temperature: float, k: int, mass: float) -> list[Contender]:
    tau = temperature
    return [
        Contender("RF", "score function", "REINFORCE"),
        Contender("RF*", "score function", "RLOO"),
        # its division by a running standard deviation is a change of the step size, which Adam
        # undoes; left out, so that its gradients can be compared with the exact one
        Contender("NVIL", "score function", "NVIL(normalise=False)"),
        Contender("MuProp", "score function", "MuProp"),
        Contender("VIMCO", "score function", f"VIMCO({k})"),
        Contender("DetRB", "sums", f"DetRB({k})"),
        Contender("DetRB*", "sums", f"DetRB({k}, baseline=True)"),
        Contender("StoRB", "sums", f"StoRB({k})"),
        Contender("StoRB*", "sums", f"StoRB({k}, baseline=True)"),
        Contender("UnOrd", "sums", f"UnOrd({k})"),
        Contender("REBAR", "relaxed control", f"REBAR({tau})"),
        Contender("RELAX", "relaxed control", f"RELAX({tau})"),
        Contender("GenGS", "GenGS", f"GenGS({tau})"),
        Contender("GenGS ST", "GenGS", f"GenGS({tau}, hard=True)"),
        Contender("GenGS NP", "GenGS", f"GenGS({tau})", mass),
        Contender("IGR", "relaxation", "IGR"),
        Contender("Gumbel-Rao", "relaxation", f"GumbelRao({tau})"),
        Contender("ReinMax", "relaxation", "ReinMax"),
        Contender("EAT", "relaxation", f"ArrivalTimes({tau})"),
        Contender("Finite differences", "steps", "FiniteDifference"),
        Contender("mid-CDF", "steps", "MidCDF"),
    ]
