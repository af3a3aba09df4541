r"""The score rule: a draw is a plain number, and its log-probability waits for the costs.

For replicate r, a draw whose log-probability is :math:`\ell_r` and the costs :math:`R_r` that came
after it,

.. math:: \nabla \ell_r \Big( R_r - \frac{1}{m - 1} \sum_{s \ne r} R_s \Big)

is unbiased: what was paid before the draw does not depend on it, and neither do other replicates. A
draw that all replicates share moves all of their costs, so it is credited with their mean and has
no baseline.

**Boundaries.** A draw never leaves a value that is sure (a rate of 0, a probability of 0 or 1). The
one-sided derivative of an expectation is a difference of costs there, of which a draw shows one
side only: the score has no part in it. That is an error only if the parameter would leave the
boundary: a rate ``theta * infected`` stays 0 where nobody is infected, whatever ``theta``.
"""

from __future__ import annotations

__all__ = ["ScoreRule", "warn_boundary"]

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from ..estimators import RLOO, BoundaryWarning
from ..estimators.checked_cost import graph_of
from ..laws.score_limits import missing_score
from ..numerics.tracing import tensors_of
from .block_stack import outermost
from .fitted_score import FittedScore
from .known_laws import boundary_of, sees_through, values_of
from .law_checks import base_of, depends_on_parameters
from .sample_site import Plain, Site, by_line, warn_at


class ScoreRule:
    """The draws of ``RLOO()``, ``REINFORCE()`` and ``FittedScore()``."""

    exact = True  # it keeps the draws of the program
    scored = True

    def __init__(self, by: Any) -> None:
        self.name = type(by).__name__
        self.fitted = by if isinstance(by, FittedScore) else None
        self.baseline = isinstance(by, RLOO | FittedScore)

    @staticmethod
    def sees_through(law: Any) -> bool:
        """Whether the draw is made of others, which have a log-probability."""
        return sees_through(law, scored=True)

    def draw(self, site: Site, law: Any, plain: Plain, shape: torch.Size) -> Tensor:
        """A draw as the program makes it."""
        with torch.no_grad():
            z = plain()
        base = base_of(law)
        if (why := missing_score(base)) is not None:
            raise TypeError(f"{site.place}: {why}")
        self.mark(site)
        outermost().keep(site, law, z.clone())  # the program may change its draw in place
        return values_of(base, z)

    def mark(self, site: Site) -> None:
        """The site's gradient is that of this rule."""
        site.scored, site.baseline, site.fitted = True, self.baseline, self.fitted


def _edge(site: Site) -> Tensor | None:
    """The parameters that lie on a boundary, weighted."""
    law = base_of(site.drawn_from)
    if not site.may_be_sure or not depends_on_parameters(law):
        return None
    edge = boundary_of(law)
    if edge is None or not edge.any():
        return None
    for _, _, parameter in tensors_of(law):
        if parameter.requires_grad:
            mask = edge if edge.shape == parameter.shape else edge.any(-1)
            if mask.shape == parameter.shape:
                there = parameter[mask]  # no two weights are alike, so that nothing cancels
                weights = torch.linspace(1, 2, len(there), dtype=there.dtype, device=there.device)
                return there * weights
    return None


def _leaves(slope: Tensor, parameter: Tensor, rounding: float) -> bool:
    """Whether a small step of a parameter moves what lies on the boundary."""
    step = torch.where(parameter == 0, 1.0, parameter.detach())
    return bool((slope * step).abs().max() > rounding) if slope.numel() else False


def warn_boundary(sites: Sequence[Site]) -> None:
    """Warn of lines whose parameters would leave a boundary, if the draws could."""
    for group in by_line(site for site in sites if site.scored and site.drawn_from is not None):
        edges = [edge for site in group if (edge := _edge(site)) is not None]
        if not edges:
            continue
        total = torch.stack([edge.sum() for edge in edges]).sum()
        leaves = [node.variable for node in graph_of(total) if hasattr(node, "variable")]
        slopes = torch.autograd.grad(total, leaves, retain_graph=True) if leaves else ()
        rounding = 64 * torch.finfo(total.dtype).eps * sum(edge.numel() for edge in edges)
        if any(_leaves(*pair, rounding) for pair in zip(slopes, leaves, strict=True)):
            warn_at(
                group[0],
                f"some parameter of {group[0].law} lies on a boundary (a rate of 0, a probability "
                "of 0 or 1), from which a draw never leaves: the score has no part of the "
                "one-sided derivative there; the path has it.",
                BoundaryWarning,
            )
