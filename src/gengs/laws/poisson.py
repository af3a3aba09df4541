r"""The Poisson: counts at a rate.

.. math::
    \log p(k) = k \log \lambda - \lambda - \ln\Gamma(k + 1), \qquad
    \mathrm{up} = 1, \qquad \mathrm{below} = \frac{z}{\lambda}

so that a draw moves by :math:`dz/d\lambda = \tfrac12 (1 + z / \lambda)`, and
:math:`\partial_\lambda E f = E[f(Z + 1) - f(Z)]`. Tails: :mod:`gengs.numerics.poisson_tail`.
"""

__all__ = ["PoissonLaw", "draw_poisson", "moving_poisson"]

import torch
from torch import Tensor
from torch.distributions import Distribution, Poisson
from torch.distributions.utils import lazy_property

from ..numerics.poisson_tail import log_clipped_poisson, log_poisson_pmf, log_poisson_tail
from ..numerics.saddle_point import log_poisson_digits
from ..numerics.tails import widen
from .law import Spec, register
from .line import Line, Rates
from .pmf import BoundaryExpansion

# exp(-60) is a rate of zero for every purpose, exp(60) more than any count
_LOG_RATES = (-60.0, 60.0)
_LARGEST = 2.0**40  # beyond, torch's draws lose digits, and from 1e16 on have another variance


@register(Poisson, "pyro.Poisson")
class PoissonLaw(Line):
    """The record of the Poisson."""

    spec = Spec("poisson", ("rate",), "rate >= 0", Poisson)
    lower, upper = 0, None

    @lazy_property
    def rate(self) -> Tensor:
        """The rate, ``(*batch, 1)``, in ``float32`` or wider."""
        return widen(self.q.rate).unsqueeze(-1)

    @property
    def like(self) -> Tensor:
        return self.rate

    @property
    def rates(self) -> Rates:
        return {"rate": (_up, _below)}

    def draw(self, shape: torch.Size) -> Tensor:
        return draw_poisson(self.q.rate.expand(shape + self.batch_shape))

    @property
    def arrival_rate(self) -> Tensor:
        """The rate of the arrivals that a draw counts."""
        rate: Tensor = self.q.rate
        return rate

    # --------------------------------------------------------------------------- the PMF and tails

    def log_prob(self, value: Tensor) -> Tensor:
        # torch's own has NaN for a derivative at a rate of 0
        return self.log_pmf(value.unsqueeze(-1)).squeeze(-1)

    def log_pmf(self, k: Tensor) -> Tensor:
        k = k.double().where(self.inside(k), -1.0)  # where 1/Γ(k + 1) is 0, as it should be
        if self.rate.dtype == torch.float64:
            return log_poisson_digits(k, self.rate)
        return log_poisson_pmf(k, self.rate.double()).to(self.rate.dtype)

    def log_clipped(self, k: Tensor, first: int | None) -> Tensor:
        if first is None:
            return super().log_clipped(k, first)
        last, rate = max(first + len(k) - 1, 0), self.rate.movedim(-1, 0)
        k = k.double().reshape(-1, *[1] * (rate.dim() - 1))
        return log_clipped_poisson(k, rate, last).movedim(0, -1)

    def log_at_least(self, a: Tensor) -> Tensor:
        return log_poisson_tail(a, self.rate, True).to(self.rate.dtype)

    def log_at_most(self, a: Tensor) -> Tensor:
        return log_poisson_tail(a + 1, self.rate, False).to(self.rate.dtype)

    def boundary_expansion(self) -> BoundaryExpansion:
        zero = torch.zeros_like(self.rate)
        return BoundaryExpansion(self.rate == 0, zero, zero + 1, self.rate)

    @classmethod
    def explicit(cls, prior: Distribution, raw: Tensor, validate: bool | None) -> Poisson:
        return Poisson(raw.clamp(*_LOG_RATES).exp(), validate)


def _up(z: Tensor, rate: Tensor) -> Tensor:
    return torch.ones_like(rate)


def _below(z: Tensor, rate: Tensor) -> Tensor:
    none = (rate == 0).to(rate.dtype)  # there 0/0 is to be 1
    return (z + none) / (rate + none)


def draw_poisson(rate: Tensor) -> Tensor:
    """Poisson counts at ``rate``, however large it is, without a gradient."""
    with torch.no_grad():
        rate = widen(rate)
        drawn = torch.poisson(rate.clamp_max(_LARGEST))
        # the same noise, standardised, around a rate that torch cannot draw at
        beyond = rate + (drawn - _LARGEST) * (rate / _LARGEST).sqrt()
        return torch.where(rate > _LARGEST, beyond.round(), drawn)


def moving_poisson(rate: Tensor) -> Tensor:
    """Poisson counts at ``rate`` that carry a gradient: the last stage of many compounds."""
    return PoissonLaw(Poisson(rate, validate_args=False)).rsample(torch.Size())
