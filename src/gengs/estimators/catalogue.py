"""All estimators, and their facts: the tables of the docs and of the command line."""

__all__ = ["ALL", "catalogue"]

from .arrival_times import ArrivalTimes
from .base import Estimator
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

ALL: tuple[type[Estimator], ...] = (
    *(REINFORCE, RLOO, NVIL, MuProp, VIMCO, REBAR, RELAX, GenGS, IGR, MidCDF, StraightThroughMean),
    *(Exact, DetRB, StoRB, UnOrd, FiniteDifference, ReinMax, GumbelRao, ArrivalTimes),
)


def catalogue() -> list[dict[str, object]]:
    """The facts of every estimator, one dictionary each, in the order of :data:`ALL`."""
    return [
        {
            "estimator": kind.__name__,
            "paper name": kind.paper_name,
            "unbiased": kind.unbiased,
            "needs cost gradient": kind.needs_cost_gradient,
            "evaluations": kind().evaluations,
            "learns": kind.learns,
            "objective": kind.objective,
            "needs": kind.needs,
            "vmap": kind.vmaps,
            "compile": kind.compiles,
            "boundary": kind.one_sided,
            "year": kind.year,
            "reference": kind.reference,
        }
        for kind in ALL
    ]
