"""Every estimator once, and the cost on which its mean gradient must be the exact one.

An unbiased estimator must be right for every cost; a biased one for costs that its page says are
exact (linear for the straight-through mean and the arrival times, quadratic for MidCDF and
ReinMax). Relaxations are never exact: at a low temperature and for a linear cost they must come
within the fraction that stands here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import gengs


@dataclass(frozen=True)
class Setting:
    """How to make an estimator, and how it is judged."""

    make: Callable[[], gengs.Estimator]
    cost: str = "quadratic"
    bias: float = 0.0
    replicates: int = 2000


SETTINGS = {
    "REINFORCE": Setting(gengs.REINFORCE, replicates=6000),
    "RLOO": Setting(lambda: gengs.RLOO(4)),
    "NVIL": Setting(gengs.NVIL, replicates=6000),
    "MuProp": Setting(lambda: gengs.MuProp(4)),
    "VIMCO": Setting(lambda: gengs.VIMCO(2)),
    "REBAR": Setting(gengs.REBAR),
    "RELAX": Setting(gengs.RELAX),
    "GenGS": Setting(lambda: gengs.GenGS(0.1), "linear", 0.1, 4000),
    "IGR": Setting(gengs.IGR, "linear", 0.5, 4000),
    "MidCDF": Setting(gengs.MidCDF),
    "StraightThroughMean": Setting(gengs.StraightThroughMean, "linear"),
    "Exact": Setting(gengs.Exact, replicates=1),
    "DetRB": Setting(gengs.DetRB),
    "StoRB": Setting(gengs.StoRB),
    "UnOrd": Setting(gengs.UnOrd),
    "FiniteDifference": Setting(gengs.FiniteDifference),
    "ReinMax": Setting(gengs.ReinMax),
    "GumbelRao": Setting(gengs.GumbelRao, "linear", 0.2),
    "ArrivalTimes": Setting(lambda: gengs.ArrivalTimes(arrivals=60), "linear"),
}

TABLES = ("GenGS", "IGR", "GumbelRao", "ReinMax", "REBAR", "RELAX", "DetRB", "StoRB", "UnOrd")
"""Those that need a table of atoms."""
SCORES = ("REINFORCE", "RLOO", "NVIL", "MuProp", "VIMCO")
"""Those that differentiate the logarithm of the probability of a draw."""


def draw(law, sample_shape=()):
    """A draw that moves with the parameters, under its present name."""
    function = gengs.rsample
    return function(law, sample_shape)
