"""What a draw asks of its law: is it in its domain, does it carry a gradient, how likely was it."""

from __future__ import annotations

__all__ = [
    "as_categorical",
    "base_of",
    "depends_on_parameters",
    "is_continuous",
    "log_prob_of",
    "require_domain",
    "require_reverse_mode",
    "require_score",
    "require_whole_trials",
]

import math
from typing import Any

import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.distributions import (
    Binomial,
    Categorical,
    Distribution,
    Independent,
    Poisson,
    Transform,
    TransformedDistribution,
)

from ..distributions.tracing import inside_vmap
from ..draws.own_laws import is_the_law
from .sample_site import Site

_POSITIVE = ("rate", "total_count", "concentration", "concentration0", "concentration1")
_HIGHEST = dict.fromkeys(_POSITIVE, math.inf) | {"probs": 1.0}
"""Parameters that are at least 0, and what they are at most."""


def base_of(law: Any) -> Any:
    """The law itself, without the dimensions that ``Independent`` declares as an event."""
    while isinstance(law, Independent):
        law = law.base_dist
    return law


def require_domain(law: Any, site: Site) -> None:
    """Raise a ``ValueError`` that names the line where a parameter has left its domain."""
    for name, top in _HIGHEST.items():
        value = vars(law).get(name)
        if not isinstance(value, Tensor) or not value.numel():
            continue
        value = value.detach()
        low, high = value.aminmax()  # NaN if there is one
        if not (low >= 0 and high <= top and high < math.inf):
            wrong = value[~((value >= 0) & (value <= top) & (value < math.inf))]
            raise ValueError(
                f"{site.place}: {site.law} expects `{name}` of at least 0"
                f"{' and at most 1' if top == 1 else ''}, but {wrong.numel()} of {value.numel()} "
                f"are not; the first is {wrong.flatten()[0].item():.6g}."
            )


def require_reverse_mode() -> None:
    """Raise a ``RuntimeError`` under transforms through which a draw does not see its parameters.

    Forward mode (``torch.func.jvp``) asks for tangents, which a draw does not have. Under
    ``torch.vmap`` a tensor does not show whether it requires a gradient.
    """
    if forward_ad._current_level >= 0:
        raise RuntimeError(
            "gengs.differentiable has reverse-mode gradients only, and a draw in forward mode "
            "(torch.func.jvp, jacfwd, a dual level) would have a tangent of 0; use backward() "
            "or torch.func.grad."
        )
    if inside_vmap():
        raise RuntimeError(
            "a draw in torch.vmap does not see whether its parameters require a gradient, which "
            "would be lost; gengs.differentiable draws all replicates side by side: give the draw "
            "a first dimension that counts them."
        )


def require_whole_trials(law: Any, site: Site) -> None:
    """Raise a ``ValueError`` where a relaxed draw is taken for a number of trials."""
    count = law.total_count.detach() if isinstance(law, Binomial) else torch.zeros(())
    if not torch.equal(count, count.round()):
        raise ValueError(
            f"{site.place}: {site.law} expects a whole number of trials, but got a relaxed draw; "
            "take a rule whose draws are whole: MidCDF(), GenGS(..., hard=True), ReinMax()."
        )


def depends_on_parameters(law: Any) -> bool:
    """Whether anything that the law is made of requires a gradient."""
    for part in vars(law).values():
        for one in part if isinstance(part, list) else (part,):  # transforms are in a list
            if isinstance(one, Tensor) and one.requires_grad:
                return True
            if isinstance(one, Distribution | Transform) and depends_on_parameters(one):
                return True
    return False


def as_categorical(law: Categorical, site: Site) -> Categorical:
    """A law of indices, as torch's: of a subclass with its own ``log_prob``, what that says."""
    if is_the_law(law, Categorical):
        return law
    values = torch.arange(law.logits.shape[-1], device=law.logits.device)
    values = values.reshape(-1, *[1] * len(law.batch_shape)).expand(-1, *law.batch_shape)
    log_probs = law.log_prob(values).movedim(0, -1)
    total = log_probs.detach().exp().sum(-1)
    if not torch.allclose(total, torch.ones_like(total), atol=1e-3):
        raise ValueError(
            f"{site.place}: {site.law} has a log_prob of its own whose probabilities sum to "
            f"{total.flatten()[0].item():.4g} over its {log_probs.shape[-1]} values, not to 1."
        )
    return Categorical(logits=log_probs, validate_args=False)


def is_continuous(law: Distribution) -> bool:
    """Whether the law has draws of its own that carry a gradient, on a continuum."""
    if not law.has_rsample:
        return False
    try:
        return not getattr(law.support, "is_discrete", False)
    except NotImplementedError:
        return True


def require_score(law: Any, site: Site) -> None:
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


def log_prob_of(law: Any, z: Tensor) -> Tensor:
    """``law.log_prob(z)``, whose gradient at a rate of 0 is not 0/0."""
    base = base_of(law)
    if not is_the_law(base, Poisson):
        log_prob: Tensor = law.log_prob(z)
        return log_prob
    rate = base.rate
    log_rate = torch.where(rate == 0, torch.ones_like(rate), rate).log()
    joint = z * log_rate - rate - torch.lgamma(z + 1)
    events = len(law.event_shape)
    return joint.flatten(joint.dim() - events).sum(-1) if events else joint
