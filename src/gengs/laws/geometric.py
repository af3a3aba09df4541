r"""The geometric: failures before the first success.

.. math::
    \log p(k) = k \log(1 - p) + \log p, \qquad P(X \ge a) = (1 - p)^a

============  =====================  =====================
parameter     up                     below
============  =====================  =====================
p             -(1 + z) / p           -z / (p (1 - p))
logit         -(1 + z) (1 - p)       -z
============  =====================  =====================

The rates are negative: raising p moves counts down.
"""

__all__ = ["GeometricLaw"]

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, Geometric
from torch.distributions.utils import lazy_property

from ..numerics.attach import nonzero
from ..numerics.gumbel import log_exponential
from ..numerics.tails import log1mexp, log_success_and_failure, times, was_given, widen
from .law import Spec, register
from .line import Line, Rates
from .pmf import BoundaryExpansion


@register(Geometric, "pyro.Geometric")
class GeometricLaw(Line):
    """The record of the geometric."""

    spec = Spec("geometric", ("probs",), "0 < probs <= 1", Geometric)
    lower, upper = 0, None

    @lazy_property
    def logs(self) -> tuple[Tensor, Tensor]:
        """``log p`` and ``log(1 - p)``, ``(*batch, 1)``."""
        return log_success_and_failure(self.q)

    @property
    def like(self) -> Tensor:
        return self.logs[0]

    @property
    def rates(self) -> Rates:
        if was_given(self.q, "logits"):
            return {"logits": (_logit_up, _logit_below)}
        return {"probs": (_up, _below)}

    def draw(self, shape: torch.Size) -> Tensor:
        # the whole part of an exponential variable; torch's own way does not work under vmap
        with torch.no_grad():
            log_1mp = self.logs[1].squeeze(-1)
            noise = log_exponential(shape + self.batch_shape, log_1mp.dtype, log_1mp.device)
            return (noise.exp() / log_1mp.abs()).floor()  # its logarithm may be 0, of either sign

    # --------------------------------------------------------------------------- the PMF and tails

    def log_pmf(self, k: Tensor) -> Tensor:
        log_pmf = times(k.to(self.like.dtype), self.logs[1]) + self.logs[0]
        return log_pmf.where(self.inside(k), -torch.inf)

    def log_at_least(self, a: Tensor) -> Tensor:
        return times(a.to(self.like.dtype).clamp_min(0), self.logs[1])

    def log_at_most(self, a: Tensor) -> Tensor:
        log_above = self.log_at_least(a + 1)
        all_above, all_below = log_above == 0, log_above == -torch.inf
        log_below = log1mexp(log_above.masked_fill(all_above | all_below, -1.0))
        return log_below.masked_fill(all_above, -torch.inf).masked_fill(all_below, 0.0)

    def boundary_expansion(self) -> BoundaryExpansion | None:
        if was_given(self.q, "logits"):
            return None
        p = widen(self.q.probs).unsqueeze(-1)
        zero = torch.zeros_like(p)
        return BoundaryExpansion(p == 1, zero, zero + 1, 1 - p)

    @classmethod
    def explicit(cls, prior: Any, raw: Tensor, validate: bool | None) -> Distribution:
        return Geometric(None, raw, validate)


def _up(z: Tensor, p: Tensor) -> Tensor:
    return -(1 + z) / p


def _below(z: Tensor, p: Tensor) -> Tensor:
    return torch.where(p == 1, -1.0, -z / nonzero(p * (1 - p)))


def _logit_up(z: Tensor, logit: Tensor) -> Tensor:
    return -(1 + z) * torch.sigmoid(-logit)


def _logit_below(z: Tensor, logit: Tensor) -> Tensor:
    return -z
