"""Programs: the discrete draws inside a simulator carry gradients.

:func:`differentiable` is a block in which torch's own random functions and every ``Law.sample()``
draw by :func:`gengs.rsample`, or by the score function.
"""

__all__ = [
    "Check",
    "CutGradientWarning",
    "FittedScore",
    "Program",
    "ProgramWarning",
    "differentiable",
]

from .check import Check
from .fitted_score import FittedScore
from .program import Program, differentiable
from .sample_site import CutGradientWarning, ProgramWarning
from .sample_site import Site as Site  # the type of what Program.sites holds
