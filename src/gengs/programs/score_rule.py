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

__all__ = ["ScoreRule", "credited", "require_replicates", "say_what_never_leaves"]

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Binomial, Distribution, TransformedDistribution

from ..estimators import RLOO, BoundaryWarning
from ..estimators.checked_cost import graph_of
from ..estimators.factors import Factors
from ..laws.law import law_of
from ..laws.poisson import PoissonLaw
from ..numerics.once_differentiable import OnceDifferentiable
from ..numerics.tracing import tensors_of
from .law_checks import base_of, depends_on_parameters
from .sample_site import Plain, Site, by_line, warn_at


class ScoreRule:
    """The draws of ``RLOO()`` and ``REINFORCE()``."""

    exact = True  # it keeps the draws of the program

    def __init__(self, by: Any, validate: bool) -> None:
        self.name, self.baseline, self.validate = type(by).__name__, isinstance(by, RLOO), validate

    @staticmethod
    def looks_into(law: Distribution) -> bool:
        """Whether the draw is made of others, which have a log-probability."""
        return not law_of(law).has_pmf

    def draw(self, site: Site, law: Any, plain: Plain, shape: torch.Size) -> Tensor:
        """A draw as the program makes it."""
        with torch.no_grad():
            z = plain()
        base = base_of(law)
        _require_score(base, site)
        if self.validate:
            _keep_boundary(site, base)
        self.keep(site, _log_prob(law, z.clone()))  # the program may change its draw in place
        return z

    def keep(self, site: Site, log_prob: Tensor) -> None:
        """Keep a log-probability, ``(replicates, ...)``, until the cost is known."""
        site.baseline = self.baseline
        site.log_prob = log_prob.flatten(1).sum(1) if log_prob.dim() > 1 else log_prob


def _require_score(law: Any, site: Site) -> None:
    """Raise a ``TypeError`` where the score lacks the derivative in a parameter with a gradient."""
    if isinstance(law, Binomial) and law.total_count.requires_grad:
        raise TypeError(
            f"{site.place}: the score of a Binomial has no derivative in `total_count`, which "
            "carries a gradient here; make the draws that it comes from by the same rule."
        )
    transforms = law.transforms if isinstance(law, TransformedDistribution) else ()
    if transforms and not law.has_rsample and any(map(depends_on_parameters, transforms)):
        raise TypeError(
            f"{site.place}: the score of {site.law} has no derivative in its transforms, which "
            "carry a gradient here: they move its values; apply them to the draw instead."
        )


def _log_prob(law: Any, z: Tensor) -> Tensor:
    """``law.log_prob(z)``, whose gradient at a rate of 0 is not 0/0."""
    base = base_of(law)
    if type(law_of(base)) is not PoissonLaw:
        log_prob: Tensor = law.log_prob(z)
        return log_prob
    rate, events = base.rate, len(law.event_shape)
    log_rate = torch.where(rate == 0, torch.ones_like(rate), rate).log()
    joint = z * log_rate - rate - torch.lgamma(z + 1)
    return joint.flatten(joint.dim() - events).sum(-1) if events else joint


def _keep_boundary(site: Site, law: Distribution) -> None:
    """Keep a weighted sum of the parameters that lie on a boundary until the loss is asked for."""
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


def say_what_never_leaves(sites: Sequence[Site]) -> None:
    """Warn of lines whose parameters would leave a boundary, if the draws could."""
    for group in by_line(site for site in sites if site.edge is not None):
        total = torch.stack([site.edge for site in group if site.edge is not None]).sum()
        leaves = [node.variable for node in graph_of(total) if hasattr(node, "variable")]
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


def credited(costs: Sequence[Tensor], last: Tensor | None, sites: Sequence[Site]) -> Tensor:
    """The sum of all costs, one number per replicate, with the gradient of the score draws.

    ``costs`` arrived while the program ran, ``last`` in the end.
    """
    parts = [*costs, *([last] if last is not None else [])]
    parts = [p if p.is_floating_point() else p.to(torch.get_default_dtype()) for p in parts]
    total = torch.stack(parts).sum(0) if len(parts) > 1 else parts[0]
    returns = list(accumulate(part.detach() for part in reversed(parts)))[::-1]  # from each on
    alone = total.numel() == 1  # one run of the program: nothing to share, nothing to compare
    groups: dict[Any, list[Tensor]] = {}  # draws that have the same costs to their credit
    for site in sites:
        site.shared = not alone and (not site.shape or site.shape[0] != len(total))
        if site.log_prob is not None and site.epoch < len(returns):  # else nothing was paid after
            score = site.log_prob.sum() if site.shared or alone else site.log_prob
            groups.setdefault((site.epoch, site.baseline, site.shared), []).append(score)
    terms = []
    for (epoch, baseline, shared), scores in groups.items():
        after = returns[epoch]
        if shared:
            after = after.mean()
        elif baseline:
            after = after - (after.sum() - after) / (len(after) - 1)
        terms.append(torch.stack(scores).sum(0) * after)
    return total + _Score.apply(sum(terms[1:], terms[0])) if terms else total


class _Score(torch.autograd.Function):
    """Zero, whose gradient is that of the surrogate: once, as it is no estimate of the second."""

    generate_vmap_rule = True

    @staticmethod
    def forward(surrogate: Tensor) -> Tensor:
        return torch.zeros_like(surrogate)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        result: Tensor = OnceDifferentiable.apply(grad, _NOT_TWICE, *ctx.saved_tensors)
        return result


_NOT_TWICE = (
    "the score rule of gengs.differentiable has no second derivative: that of its estimate is no "
    "estimate of the second; the path has one, where its draws have closed forms."
)


def require_replicates(
    name: str, values: Any, costs: Sequence[Tensor], sites: Sequence[Site]
) -> None:
    """Raise where a cost, given to the method ``name``, is not one number per replicate."""
    if not isinstance(values, Tensor):
        raise TypeError(f"program.{name} expects a tensor, but got {type(values).__name__}.")
    firsts = {site.shape[0] for site in sites if site.shape}
    known = f", {min(firsts)} by its draws" if len(firsts) == 1 else ""
    expected = (
        f"program.{name} expects one number per replicate, shape (replicates,){known}, but got "
        f"shape {tuple(values.shape)}"
    )
    if values.dim() > 1:
        raise ValueError(f"{expected}; average or sum the other dimensions.")
    alone = values.numel() == 1
    if not alone and len(firsts) == 1 and len(values) not in firsts:
        raise ValueError(f"{expected}; the first dimension of a draw counts the replicates.")
    if costs and values.shape != costs[0].shape:
        raise ValueError(f"{expected}; earlier costs had {tuple(costs[0].shape)}.")
    if alone and any(site.baseline for site in sites):
        raise ValueError(f"{expected}: RLOO needs at least two, REINFORCE() does with one.")
