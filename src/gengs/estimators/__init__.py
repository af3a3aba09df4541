"""One estimator, one file, one formula, one reference.

Every estimator answers the same call, ``expect(cost, q)``; :data:`ALL` lists them, and
:func:`catalogue` tells their facts.
"""

__all__ = [
    "ALL",
    "IGR",
    "NVIL",
    "REBAR",
    "REINFORCE",
    "RELAX",
    "RLOO",
    "VIMCO",
    "ArrivalTimes",
    "Cost",
    "DetRB",
    "Estimator",
    "Exact",
    "FiniteDifference",
    "GenGS",
    "GumbelRao",
    "MidCDF",
    "MuProp",
    "ReinMax",
    "StoRB",
    "StraightThroughMean",
    "UnOrd",
    "catalogue",
]

from .arrival_times import ArrivalTimes
from .base import Cost, Estimator
from .catalogue import ALL, catalogue
from .exact import Exact
from .finite_difference import FiniteDifference
from .gengs import GenGS
from .gumbel_rao import GumbelRao
from .igr import IGR
from .midcdf import MidCDF
from .muprop import MuProp
from .nvil import NVIL
from .rao_blackwell import DetRB, StoRB
from .rebar import REBAR
from .reinforce import REINFORCE, RLOO
from .reinmax import ReinMax
from .relax import RELAX
from .straight_through_mean import StraightThroughMean
from .unordered import UnOrd
from .vimco import VIMCO
