"""Programs: the discrete draws inside somebody's simulator carry gradients.

:func:`differentiable` is a block in which torch's own random functions and every ``Law.sample()``
draw by :func:`gengs.rsample`, or by the score function.
"""

__all__ = ["CutGradientWarning", "Program", "differentiable"]

from .cut_report import CutGradientWarning
from .program import Program, differentiable
from .sample_site import Site as Site  # the type of what Program.sites holds
