r"""Is the path right here? The path against the score, on the same draws.

A block keeps the distribution and the value of each draw, and the way back through a draw has a
gate. With open gates the graph of the cost has the gradient of the path. With closed gates it has
:math:`\nabla \log p` of each draw at fixed past, and so the gradient of the score: here with the
fitted control variate of :class:`~gengs.FittedScore`, which is unbiased. Both are taken in groups
of replicates, whose spread gives standard errors: ten backward passes in all.

The difference of a group is projected on the mean difference of the other groups, which is
independent of it: a mean of these projections that is many standard errors above 0 is a bias of the
path. The standard error is that of five numbers, so that this quotient has the heavy tails of
Student's t with four degrees of freedom: 9 of these errors are about as rare as 3 of a normal
number. What is printed, "74% ± 3% (z = 4.3)", is translated: twice the error holds 95 %, and z is
the normal number that chance exceeds as rarely. A bias is said to be found where chance does that
in one of 1,000 programs; what lies between is said to be unknown.

If fewer than ten replicates make up the variance of the cost, no error of it is known: then no bias
is found.

**Measured**, on the squares of negative binomial and Poisson counts, whose path is exact, with 100
to 3,000 replicates: found in 16 of 15,200 checks, 1.05 of 1,000, and in no case in more than 1.7.
With many parameters of the same noise it is more, by simulation of normal noise: 1.5 of 1,000 with
five, 2.7 with a hundred.

What neither of the two knows (a parameter that lost its gradient, random numbers that were not
seen) makes them agree on a wrong number: then they are not said to agree.
"""

from __future__ import annotations

__all__ = ["Check", "check_path", "is_freed"]

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..estimators.checked_cost import nodes_behind
from ..laws.score_limits import missing_score
from .block_stack import quiet
from .credit import Credit, evaluate
from .fitted_score import FittedScore
from .law_checks import base_of
from .program_warnings import missing, why_biased
from .sample_site import Site

if TYPE_CHECKING:
    from .program import Program

_GROUPS = 5
_DOUBTFUL, _CERTAIN = 2.58, 3.29
"""Normal standard errors: one in 100 and one in 1,000 by chance."""
_T = 2.776
"""Standard errors of five groups in which 95 % lie; 1.96 are normal ones."""
_FEW = 10
"""With so few effective replicates the groups' errors mean nothing."""
_SMALL, _VAGUE = 0.03, 0.15
"""A bias below the first is not worth a word; one above the second has to be ruled out."""


@dataclass(frozen=True)
class Check:
    """What a comparison of path and score found; prints as a verdict."""

    verdict: str
    agrees: bool | None
    """Whether path and score agree; ``None`` if that cannot be told here."""
    path: Tensor
    """The gradient of the path, in all parameters."""
    path_error: Tensor
    score: Tensor
    """The gradient of the score."""
    score_error: Tensor
    off: float
    """Their distance, as a share of the score's gradient."""
    off_error: float
    z: float
    """How many standard errors the bias is from 0: of a normal number, as rare by chance."""

    @property
    def seems_off(self) -> bool:
        """Whether the path is off, or perhaps."""
        return self.agrees is False or (self.z > _DOUBTFUL and self.off > _SMALL)

    def __str__(self) -> str:
        return self.verdict


def check_path(program: Program, cost: Tensor) -> Check:
    """Compare the path's gradient of the mean cost with the score's."""
    sites = [site for site in program.sites if site.node is not None or site.scored]
    if not sites:
        raise ValueError("program.check found no draw whose parameters require a gradient.")
    if cost.dim() != 1 or len(cost) < 4 * _GROUPS:
        remedy = (
            "; check one of them, program.check(x[:, 0]), or their sum, program.check(x.sum(1))"
        )
        raise ValueError(
            f"program.check expects one cost for each of at least {4 * _GROUPS} replicates, but "
            f"got shape {tuple(cost.shape)}{remedy if cost.dim() == 2 else ''}."
        )
    if (unknown := int((~cost.isfinite()).sum())) > 0:
        what = "NaN" if bool(cost.isnan().any()) else "infinite"
        return _nothing(f"this cannot be checked: the cost is {what} in {unknown} replicates.")
    for site in sites:
        _require_score(program, site)
    with quiet():
        evaluate(sites)
        known = [s for s in sites if s.log_prob is not None]
        rule = FittedScore(memory=0.0)
        as_scored = [replace(s, scored=True, baseline=True, fitted=rule) for s in known]
        as_scored += [replace(s, fitted=rule) for s in program.sites if s.node is None]
        credit = Credit(as_scored, len(cost), program.dim, program.mode.branched)
        surrogate = credit.surrogate(credit.inputs, [cost.detach()] * (1 + len(program.costs)))
        own = surrogate + cost if cost.requires_grad else surrogate
        leaves = _leaves([cost, *credit.inputs])
        path = _by_groups(cost, leaves) if cost.requires_grad else None
        program.gate[0] = False
        try:
            score = _by_groups(own, leaves)
        finally:
            program.gate[0] = True
    if not score.any() and (path is None or not path.any()):
        return _nothing(
            "this cannot be checked: the cost carries no gradient, neither by the path nor by the "
            "score; it is the same in all replicates, or was made apart from the draws."
        )
    found = _compare(torch.zeros_like(score) if path is None else path, score, cost, program)
    if found.seems_off and bool((cost == cost[0]).all()):  # as where a rare event did not happen
        return _nothing(
            "this cannot be checked: the cost is the same in all replicates, and tells the score "
            "nothing; check with more replicates."
        )
    shared = [site for site in as_scored if site.scored and site.shared]
    return _doubted(found, [*map(_shared, shared[:1]), *missing(program, cost)])


def _shared(site: Site) -> str:
    return (
        f"{site.place}: {site.law} of shape {site.shape} is shared by all replicates, so that its "
        "part has no standard error; if one of its dimensions counts them, say "
        "gengs.differentiable(..., dim=)."
    )


def _nothing(verdict: str) -> Check:
    """What is said where there are no gradients to compare."""
    none, nan = torch.empty(0), float("nan")
    return Check(verdict, None, none, none, none, none, nan, nan, nan)


def _doubted(found: Check, doubts: Sequence[str]) -> Check:
    """The same, where a comparison of path and score is not the whole of it."""
    if not doubts:
        return found
    doubt = " ".join(doubts[:2])
    if found.agrees is False and "shared by all" not in doubt:
        return replace(found, verdict=f"{found.verdict} Besides: {doubt}")
    return replace(found, agrees=None, verdict=f"this cannot be checked: {doubt}")


def is_freed(cost: Tensor) -> bool:
    """Whether a ``backward()`` has freed the graph behind a cost."""
    if not cost.requires_grad:
        return False
    try:
        torch.autograd.grad(cost.sum(), _leaves([cost]), retain_graph=True, allow_unused=True)
    except RuntimeError as error:
        return "second time" in str(error)
    return False


def _require_score(program: Program, site: Site) -> None:
    if site.drawn_from is None and site.log_prob is None:
        raise TypeError(f"{site.place}: {site.law} has no log-probability that is known here.")
    law = base_of(site.drawn_from)
    known = isinstance(law, Distribution)
    if known and (why := missing_score(law, partial(_is_learned, program))) is not None:
        raise TypeError(f"{site.place}: {why}")


def _is_learned(program: Program, tensor: Tensor) -> bool:
    """Whether a tensor depends on a parameter other than by draws, whose path is shut."""
    if tensor.grad_fn is None:
        return tensor.requires_grad
    behind = nodes_behind([tensor.grad_fn], program.report.draws())
    return any(hasattr(node, "variable") for node in behind)


def _leaves(tensors: Sequence[Tensor]) -> list[Tensor]:
    nodes = nodes_behind([t.grad_fn for t in tensors if t.grad_fn is not None])
    return [node.variable for node in nodes if hasattr(node, "variable")]


def _by_groups(values: Tensor, leaves: list[Tensor]) -> Tensor:
    """Gradients of group means, one a row."""
    rows = []
    for k in range(_GROUPS):
        found = torch.autograd.grad(
            values[k::_GROUPS].mean(), leaves, retain_graph=True, allow_unused=True
        )
        parts = [
            torch.zeros_like(leaf) if g is None else g
            for leaf, g in zip(leaves, found, strict=True)
        ]
        rows.append(torch.cat([p.flatten().double() for p in parts]))
    return torch.stack(rows)


def _error(rows: Tensor) -> Tensor:
    return rows.std(0) / len(rows) ** 0.5


def _as_normal(t: float) -> float:
    """The standard errors of a normal number that are as rare as ``t`` of five groups."""
    if not t > 0:  # also where it is not a number
        return 0.0
    e = 4 / (4 + t * t + t * math.sqrt(4 + t * t))  # 1 - t / sqrt(4 + t²), without cancellation
    return -NormalDist().inv_cdf(max(0.75 * e**2 - 0.25 * e**3, 1e-300))


def _effective(cost: Tensor) -> float:
    """How many replicates make up the variance of the cost: one, where a single one stands out."""
    square = (cost.detach().double() - cost.detach().double().mean()).square()
    return float(square.sum() ** 2 / square.square().sum())


def _compare(path: Tensor, score: Tensor, cost: Tensor, program: Program) -> Check:
    apart = path - score
    size = float(score.mean(0).norm()) or float(path.mean(0).norm()) or 1.0
    others = (apart.sum(0) - apart) / (_GROUPS - 1)
    along = (apart * others).sum(1) / others.norm(dim=1).clamp_min(1e-300)
    t = float(along.mean() / _error(along.unsqueeze(1)).clamp_min(1e-300))
    z = _as_normal(t)
    noise = float(_error(apart).norm()) / size * _T / 1.96
    off = float(apart.mean(0).norm()) / size
    numbers = f"{off:.0%} ± {noise:.0%} (z = {z:.1f})" if off < 10 else f"a factor of {off:.0f}"
    agrees: bool | None = None
    if not bool(torch.isfinite(path).all()):
        agrees = False
        verdict = (
            f"the path's gradient is not finite{why_biased(program)}: some function has an "
            "infinite slope at a value that was drawn, as sqrt(x) has at 0; use "
            "by=gengs.FittedScore() or RLOO()."
        )
    elif z > _CERTAIN and off > _SMALL and _effective(cost) > _FEW:
        agrees = False
        why = why_biased(program)
        verdict = f"the path is off by {numbers}{why}; use by=gengs.FittedScore() or RLOO()."
    elif z > _DOUBTFUL and off > _SMALL:
        verdict = f"perhaps the path is off, by {numbers}; check with more replicates."
    elif not off + 2 * noise <= _VAGUE:
        verdict = (
            f"the score varies too much to tell whether the path is right: they differ by "
            f"{off:.0%} ± {noise:.0%} of the gradient; check with more replicates."
        )
    else:
        agrees = True
        verdict = f"path and score agree within {max(off + 2 * noise, 0.01):.0%} of the gradient."
    return Check(
        verdict, agrees, path.mean(0), _error(path), score.mean(0), _error(score), off, noise, z
    )
