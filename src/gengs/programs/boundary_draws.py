"""Draws whose parameter lies on a boundary: a rate of 0, a probability of 0 or 1.

**Path: absorbing states.** Where draws have brought a rate to 0 (nobody is infected any more), one
more would start everything anew, and the linear path would let that grow without bound from step to
step. There a count stays put: the slope is left out. Where nothing is absorbing (somebody comes in
from outside, and the rate does not stay 0) that is an error, which the path cannot tell from the
other case while the program runs. So it is said how often it was done.

**Score.** From a value that is sure a draw never leaves. The one-sided derivative of an expectation
is a difference of costs, of which a draw at the boundary shows one side only: the score has no part
in it. That is an error only if the parameter would leave the boundary: a rate ``theta * infected``
stays 0 where nobody is infected, whatever ``theta``.
"""

from __future__ import annotations

__all__ = ["hold_at_zero", "keep_boundary", "warn_of_boundaries"]

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Binomial, Distribution, Poisson

from ..distributions.tracing import tensors_of
from ..draws.own_laws import is_the_law
from ..estimators import BoundaryWarning
from ..estimators.factors import Factors
from .cut_report import CutGradientWarning, nodes_behind
from .law_checks import base_of
from .sample_site import Site, by_line, warn_at

_SHARE = 0.01
"""Below this share of the counts at a line, their slope is left out without a word."""


def hold_at_zero(law: Any, comes_from_a_draw: Callable[[Tensor], bool], site: Site) -> Any:
    """The law, of whose counts those do not move that earlier draws have brought to a boundary.

    Only Poisson and Binomial laws with a rate or ``probs`` are changed.
    """
    law = base_of(law)
    if is_the_law(law, Poisson) and comes_from_a_draw(law.rate):
        return Poisson(_held(law.rate, law.rate == 0, site), validate_args=False)
    if is_the_law(law, Binomial) and "probs" in vars(law) and comes_from_a_draw(law.probs):
        p = law.probs
        return Binomial(law.total_count, _held(p, (p == 0) | (p == 1), site), validate_args=False)
    return law


def _held(parameter: Tensor, ended: Tensor, site: Site) -> Tensor:
    site.held = ended.float().mean()  # looked at when the loss is asked for
    return torch.where(ended, parameter.detach(), parameter)


def keep_boundary(site: Site, law: Distribution) -> None:
    """Keep a weighted sum of the parameters of a score draw that lie on a boundary."""
    edge = Factors(law, site.rule).boundary()
    if edge is None or not edge.any():
        return
    for _, _, parameter in tensors_of(law):
        if not parameter.requires_grad:
            continue
        mask = edge if edge.shape == parameter.shape else edge.any(-1)
        if mask.shape == parameter.shape:
            there = parameter[mask]  # no two weights are alike, so that nothing cancels
            weights = torch.linspace(1, 2, len(there), dtype=there.dtype, device=there.device)
            site.edge = there @ weights


def warn_of_boundaries(sites: Sequence[Site]) -> None:
    """Warn of lines where more than a few counts were held, or a score draw cannot leave."""
    for group in by_line(site for site in sites if site.held is not None):
        share = torch.stack([site.held for site in group if site.held is not None]).mean().item()
        if share >= _SHARE:
            warn_at(
                group[0],
                f"{share:.0%} of the counts of {group[0].law} stood at a rate of 0 (or a "
                "probability of 0 or 1) to which earlier draws had brought them, and their slope "
                "is left out, as for a population that has died out; where nothing dies out for "
                "good, gengs.differentiable(absorbing=False) keeps it.",
                CutGradientWarning,
            )
    for group in by_line(site for site in sites if site.edge is not None):
        total = torch.stack([site.edge for site in group if site.edge is not None]).sum()
        nodes = nodes_behind([total.grad_fn])
        leaves = [node.variable for node in nodes if hasattr(node, "variable")]
        slopes = torch.autograd.grad(total, leaves, retain_graph=True) if leaves else ()
        for site in group:
            site.edge = None
        if any(bool(slope.any()) for slope in slopes):
            warn_at(
                group[0],
                f"some parameter of {group[0].law} lies on a boundary (a rate of 0, a probability "
                "of 0 or 1), from which a draw never leaves: the score has no part of the "
                "one-sided derivative there; the path has it.",
                BoundaryWarning,
            )
