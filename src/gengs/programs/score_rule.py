"""The score rule: a draw is a plain number, and its log-probability waits for the cost.

**Boundaries.** A draw never leaves a value that is sure (a rate of 0, a probability of 0 or 1). The
one-sided derivative of an expectation is a difference of costs there, of which a draw shows one
side only: the score has no part in it. That is an error only if the parameter would leave the
boundary: a rate ``theta * infected`` stays 0 where nobody is infected, whatever ``theta``.
"""

__all__ = ["ScoreRule", "say_what_never_leaves"]

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Binomial, Distribution, Poisson, TransformedDistribution

from ..distributions.tracing import tensors_of
from ..draws.own_laws import has_own_pmf, is_the_law
from ..estimators import RLOO, BoundaryWarning
from ..estimators.factors import Factors
from .cut_report import nodes_behind
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
        return not has_own_pmf(law)

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
    if not is_the_law(base, Poisson):
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
