"""The estimators that the synthetic experiment compares, under the names the paper gives them.

Each knows which law it sees: an estimator that needs a table of atoms gets a truncated law, any
other the law itself.
"""

from __future__ import annotations

__all__ = ["Contender", "contenders"]

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from torch.distributions import Distribution, Independent

from ..distributions.truncation import truncate
from ..estimators.base import Estimator
from ..estimators.spec import parse_estimator
from .quadratic import CountFamily

_TABLES = ("any law, as a table of atoms", "few joint outcomes")  # what an estimator may need


@dataclass(frozen=True)
class Contender:
    """An estimator in the comparison."""

    label: str
    """What the paper calls it."""
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
    chosen: dict[str, Contender] = {}
    for name in names:
        one = roster.get(name.lower()) or Contender(name, name)
        one.make()  # refuses a name that there is not
        if one.label in chosen:
            raise ValueError(f"expected each estimator once, but got {one.label} again.")
        chosen[one.label] = one
    return list(chosen.values())


def _roster(temperature: float, k: int, mass: float) -> list[Contender]:
    tau = temperature
    return [
        Contender("RF", "REINFORCE"),
        Contender("RF*", "RLOO"),
        # its division by a running standard deviation is a change of the step size, which Adam
        # undoes; left out, so that its gradients can be compared with the exact one
        Contender("NVIL", "NVIL(normalise=False)"),
        Contender("MuProp", "MuProp"),
        Contender("VIMCO", f"VIMCO({k})"),
        Contender("DetRB", f"DetRB({k})"),
        Contender("DetRB*", f"DetRB({k}, baseline=True)"),
        Contender("StoRB", f"StoRB({k})"),
        Contender("StoRB*", f"StoRB({k}, baseline=True)"),
        Contender("UnOrd", f"UnOrd({k})"),
        Contender("REBAR", f"REBAR({tau})"),
        Contender("RELAX", f"RELAX({tau})"),
        Contender("GenGS", f"GenGS({tau})"),
        Contender("GenGS ST", f"GenGS({tau}, hard=True)"),
        Contender("GenGS NP", f"GenGS({tau})", mass),
        Contender("IGR", "IGR"),
        Contender("Gumbel-Rao", f"GumbelRao({tau})"),
        Contender("ReinMax", "ReinMax"),
        Contender("EAT", f"ArrivalTimes({tau})"),
        Contender("Finite differences", "FiniteDifference"),
        Contender("mid-CDF", "MidCDF"),
    ]
