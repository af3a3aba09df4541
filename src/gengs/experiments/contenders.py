"""The estimators that the synthetic experiment compares, under the names the paper gives them.

Each has a copy of its own settings and knows which law it sees: an estimator that needs a table of
atoms gets a truncated law, any other the law itself.
"""

from __future__ import annotations

__all__ = ["Contender", "Group", "contenders"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Literal

from torch.distributions import Distribution, Independent

from ..distributions.truncate import truncate
from ..estimators.arrival_times import ArrivalTimes
from ..estimators.base import Estimator
from ..estimators.finite_difference import FiniteDifference
from ..estimators.gengs import GenGS
from ..estimators.gumbel_rao import GumbelRao
from ..estimators.igr import IGR
from ..estimators.midcdf import MidCDF
from ..estimators.muprop import MuProp
from ..estimators.nvil import NVIL
from ..estimators.rao_blackwell import DetRB, StoRB
from ..estimators.rebar import REBAR
from ..estimators.reinforce import REINFORCE, RLOO
from ..estimators.reinmax import ReinMax
from ..estimators.relax import RELAX
from ..estimators.unordered import UnOrd
from ..estimators.vimco import VIMCO
from ..spec import parse_estimator
from .quadratic import Family

Group = Literal["score function", "sums", "relaxed control", "GenGS", "relaxation", "steps"]

# These work on a law with infinitely many values as it is.
_UNCUT = (REINFORCE, RLOO, NVIL, MuProp, VIMCO, MidCDF, FiniteDifference, ArrivalTimes)


@dataclass(frozen=True)
class Contender:
    """An estimator in the comparison."""

    label: str
    """What the paper calls it."""
    group: Group
    """What kind of estimator it is."""
    make: Callable[[], Estimator]
    """A fresh copy."""
    mass: float | None = None
    """Cut the law anew at each step, to this mass (Algorithm 2, NP)."""

    def law(self, law: Distribution, level: int | None) -> Distribution:
        """The law it sees: a vector of independent factors, truncated where it needs a table."""
        if self.mass is not None:
            law = truncate(law, mass=self.mass)
        elif self._needs_table:
            law = truncate(law, level)
        return Independent(law, 1, validate_args=False)

    @cached_property
    def _needs_table(self) -> bool:
        return not isinstance(self.make(), _UNCUT)


def contenders(
    names: Sequence[str], family: Family, temperature: float, k: int, mass: float
) -> list[Contender]:
    """The estimators of these names: the paper's (``RF*``), or calls (``GenGS(0.1)``), or ``all``.

    Args:
        names: The names.
        family: The law's; ``all`` leaves out a search for the range of a finite one.
        temperature: Of the Gumbel-softmax relaxations.
        k: The evaluations of the multi-sample estimators.
        mass: What GenGS NP keeps.
    """
    roster = {contender.label.lower(): contender for contender in _roster(temperature, k, mass)}
    if list(names) == ["all"]:
        finite = family.level is None
        return [one for one in roster.values() if not (finite and one.mass is not None)]
    chosen = [roster.get(name.lower()) or _custom(name) for name in names]
    labels = [one.label for one in chosen]
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(f"expected each estimator once, but got {label} again.")
    return chosen


def _custom(name: str) -> Contender:
    estimator = parse_estimator(name)
    known = {type(one.make()): one.group for one in _roster(0.5, 4, 0.999)}
    return Contender(name, known.get(type(estimator), "steps"), partial(parse_estimator, name))


def _roster(temperature: float, k: int, mass: float) -> list[Contender]:
    return [
        Contender("RF", "score function", REINFORCE),
        Contender("RF*", "score function", RLOO),
        # its division by a running standard deviation is a change of the step size, which Adam
        # undoes; left out, so that its gradients can be compared with the exact one
        Contender("NVIL", "score function", partial(NVIL, normalise=False)),
        Contender("MuProp", "score function", MuProp),
        Contender("VIMCO", "score function", partial(VIMCO, k)),
        Contender("DetRB", "sums", partial(DetRB, k)),
        Contender("DetRB*", "sums", partial(DetRB, k, baseline=True)),
        Contender("StoRB", "sums", partial(StoRB, k)),
        Contender("StoRB*", "sums", partial(StoRB, k, baseline=True)),
        Contender("UnOrd", "sums", partial(UnOrd, k)),
        Contender("REBAR", "relaxed control", partial(REBAR, temperature)),
        Contender("RELAX", "relaxed control", partial(RELAX, temperature)),
        Contender("GenGS", "GenGS", partial(GenGS, temperature)),
        Contender("GenGS ST", "GenGS", partial(GenGS, temperature, hard=True)),
        Contender("GenGS NP", "GenGS", partial(GenGS, temperature), mass),
        Contender("IGR", "relaxation", IGR),
        Contender("Gumbel-Rao", "relaxation", partial(GumbelRao, temperature)),
        Contender("ReinMax", "relaxation", ReinMax),
        Contender("EAT", "relaxation", partial(ArrivalTimes, temperature)),
        Contender("Finite differences", "steps", FiniteDifference),
        Contender("mid-CDF", "steps", MidCDF),
    ]
