r"""Families of posteriors: from the raw numbers that a network wrote to the law of each latent.

The prior :math:`p` is a count law, such as Poisson(2). The posterior :math:`q` is

- *explicit*: a law of the prior's family, whose parameter is the raw number:

  ================  =====================================
  prior             raw number, one per latent
  ================  =====================================
  Poisson           the logarithm of the rate
  Geometric         the logit of p
  NegativeBinomial  the logit of p; r is the prior's
  Bernoulli         the logit of p
  Binomial          the logit of p; N is the prior's
  ================  =====================================

- *implicit*: any PMF on the prior's atoms; the raw numbers are n logits per latent.

- *tilted*: the prior, moved and narrowed (:func:`gengs.tilt`) by two raw numbers per latent. In
  units of the prior's own mean and standard deviation, :math:`t = (k - E_p) / \sigma_p`, they are a
  location :math:`\mu` and a precision :math:`c = e^{r - 2}`, little at r = 0,

  .. math:: q(k) \propto p(k)\, \exp\big( (1 + c)\, \mu\, t - \tfrac{c}{2} t^2 \big),

  which for a Gaussian prior would be the Gaussian of mean :math:`\mu` and variance 1 / (1 + c).
  Both are bounded smoothly: :math:`\mu` to half as much again as where the atoms are, c to where
  neighbours of the mode have probability e^-10.

An explicit Poisson is as wide as its mean: it can say "about nine", never "nine, surely". An
implicit posterior can say anything, and has n numbers to learn for it. The tilted one contains the
prior, single atoms, and what is between, and learns fastest.

All laws are in ``float32`` or wider, whatever the networks are in.
"""

__all__ = ["EXPLICIT", "KINDS", "PosteriorKind", "posterior", "raw_numbers"]

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor
from torch.distributions import (
    Bernoulli,
    Binomial,
    Distribution,
    Geometric,
    NegativeBinomial,
    Poisson,
)

from ..distributions.finite import Finite
from ..distributions.tilt import standardised_atoms, tilt

KINDS = ("explicit", "implicit", "tilted")
PosteriorKind = Literal["explicit", "implicit", "tilted"] | Callable[[Tensor], Distribution]
"""How raw numbers become a posterior; a function of your own gives the factors' law."""

# exp(-60) is a rate of zero for every purpose, exp(60) more than any count
_LOG_RATES = (-60.0, 60.0)

# near the prior at first: a latent that is not needed costs next to nothing from the beginning
_LOG_PRECISION = -2.0

EXPLICIT: dict[type[Distribution], Callable[[Any, Tensor, bool | None], Distribution]] = {
    Poisson: lambda _, raw, check: Poisson(raw.clamp(*_LOG_RATES).exp(), check),
    Geometric: lambda _, raw, check: Geometric(None, raw, check),
    NegativeBinomial: lambda p, raw, check: NegativeBinomial(p.total_count, None, raw, check),
    Bernoulli: lambda _, raw, check: Bernoulli(None, raw, check),
    Binomial: lambda p, raw, check: Binomial(p.total_count, None, raw, check),
}
"""The law of a prior's family with raw numbers as parameter, and whether to check those."""


def raw_numbers(kind: str, prior: Distribution) -> int:
    """How many raw numbers a posterior of this kind takes for each latent."""
    if kind == "implicit" and isinstance(prior, Finite):
        return prior.num_atoms
    return 2 if kind == "tilted" else 1


def posterior(
    kind: str, raw: Tensor, prior: Distribution, validate_args: bool | None = None
) -> Distribution:
    """The law, of batch shape ``(*, D)``, of raw numbers ``(*, D, raw_numbers)``.

    Args:
        kind: ``"explicit"``, ``"implicit"`` or ``"tilted"``.
        raw: What a network wrote.
        prior: The whole prior of an explicit posterior; the prior on its atoms for the others.
        validate_args: Whether the law checks the raw numbers; on by default.
    """
    raw = raw.to(torch.promote_types(raw.dtype, torch.float32))
    if not isinstance(prior, Finite):
        return EXPLICIT[type(prior)](prior, raw.squeeze(-1), validate_args)
    if kind == "implicit":
        return Finite(prior.atoms, logits=raw, validate_args=validate_args)
    location, precision = _bounded(raw[..., 0], raw[..., 1] + _LOG_PRECISION, prior)
    slope = (1 + precision) * location
    return tilt(prior, slope, precision / 2, validate_args=validate_args)


def _bounded(location: Tensor, log_precision: Tensor, prior: Finite) -> tuple[Tensor, Tensor]:
    """A location near the atoms and a precision that tells neighbours apart, but no more."""
    t = standardised_atoms(prior)  # (n,) or (D, n)
    most = 1.5 * t.abs().amax(-1)
    # all of its neighbours' e^-10 follow from the smallest gap
    gap = t.sort(-1).values.diff(dim=-1).amin(-1) if prior.num_atoms > 1 else t.new_ones(())
    sharpest = 20 / gap.square()
    location = location / (1 + (location / most).square()).sqrt()
    # exp(x) / (1 + exp(x) / sharpest), which overflows nowhere
    return location, sharpest * torch.sigmoid(log_precision - sharpest.log())
