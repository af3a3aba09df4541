"""One estimator, one file, one formula, one reference.

Every estimator answers the same call, ``expect(cost, q)``. The tests, the table in the docs and the
command line enumerate :data:`ALL`: a new estimator is tested, documented and listed the moment it
stands here. ``ALL`` and the base class ``Pathwise`` are names of this module only; what ``__all__``
lists is at the top of the package too.
"""

__all__ = [
    "IGR",
    "NVIL",
    "REBAR",
    "REINFORCE",
    "RELAX",
    "RLOO",
    "VIMCO",
    "ArrivalTimes",
    "BoundaryWarning",
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
    "StepCostWarning",
    "StoRB",
    "StraightThroughMean",
    "UnOrd",
    "catalogue",
    "temperature",
]

from . import temperature
from .arrival_times import ArrivalTimes
from .base import Cost, Estimator
from .base import Pathwise as Pathwise  # for estimators of your own; not at the top level
from .catalogue import ALL as ALL  # for listings; not at the top level
from .catalogue import catalogue
from .checked_cost import StepCostWarning
from .exact import Exact
from .factors import BoundaryWarning
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
