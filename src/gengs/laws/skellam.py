r"""The Skellam distribution: the difference of two independent Poisson counts.

.. math::
    p(k) = e^{-(\lambda_1 + \lambda_2)} \Big(\frac{\lambda_1}{\lambda_2}\Big)^{k/2}
    I_{|k|}(2\sqrt{\lambda_1 \lambda_2})
    = \sum_j \mathrm{Pois}(j + k^+; \lambda_1)\, \mathrm{Pois}(j + k^-; \lambda_2)

torch has no Bessel function of integer order, so the PMF is the convolution on the right: a sum of
positive terms with a single peak, of which a window of a few standard deviations around the peak is
all that counts. Likewise :math:`P(X \ge a) = \sum_j \mathrm{Pois}(j; \lambda_2) P(X_1 \ge a + j)`.
It runs in ``float64``. How many terms count depends on the rates: a look at them, where it can be.

References:
    | The Frequency Distribution of the Difference between Two Poisson Variates (Skellam, 1946)
"""

from __future__ import annotations

__all__ = ["Skellam", "SkellamLaw"]

from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.utils import broadcast_all, lazy_property
from torch.types import _size

from ..numerics.poisson_tail import log_poisson_pmf, log_poisson_tail
from ..numerics.tails import log_sum, widen
from ..numerics.tracing import any_of, inspectable, require_finite, set_shapes, validates
from ..tables.discrete import Discrete
from .law import Law, Spec, register
from .poisson import draw_poisson, moving_poisson


class _Integers(constraints.Constraint):
    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return value == value.round()


class Skellam(Discrete):
    """The distribution of ``Poisson(rate_up) - Poisson(rate_down)``, on all integers.

    Args:
        rate_up: The rate of the count that adds.
        rate_down: The rate of the count that subtracts.
        validate_args: Whether to check the arguments; on by default.

    Example:
        >>> law = Skellam(torch.tensor(3.0), torch.tensor(1.0))
        >>> law.mean, law.variance
        (tensor(2.), tensor(4.))
    """

    arg_constraints = {
        "rate_up": constraints.nonnegative,
        "rate_down": constraints.nonnegative,
    }
    support = _Integers()

    def __init__(
        self,
        rate_up: Tensor | float,
        rate_down: Tensor | float,
        validate_args: bool | None = None,
    ) -> None:
        self.rate_up, self.rate_down = broadcast_all(rate_up, rate_down)
        validate = validates(validate_args)
        if validate:
            for name in ("rate_up", "rate_down"):
                rate = getattr(self, name)
                require_finite(name, rate, "Skellam")
                if any_of(rate < 0):
                    raise ValueError(
                        f"Skellam expects non-negative `{name}`, but got {rate.min().item()}."
                    )
        set_shapes(self, self.rate_up.shape, torch.Size(), validate)

    @property
    def mean(self) -> Tensor:
        return self.rate_up - self.rate_down

    @property
    def variance(self) -> Tensor:
        return self.rate_up + self.rate_down

    def sample(self, sample_shape: _size = torch.Size()) -> Tensor:
        shape = self._extended_shape(torch.Size(sample_shape))
        return draw_poisson(self.rate_up.expand(shape)) - draw_poisson(self.rate_down.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        if self._validate_args and inspectable(value):
            self._validate_sample(value)
        dtype = torch.promote_types(self.rate_up.dtype, torch.float32)
        return _log_pmf(value.double(), self.rate_up.double(), self.rate_down.double()).to(dtype)

    def expand(self, batch_shape: _size, _instance: Any = None) -> Skellam:
        up, down = self.rate_up.expand(batch_shape), self.rate_down.expand(batch_shape)
        return Skellam(up, down, self._validate_args)


def _log_pmf(k: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """The logarithm of the convolution, in ``float64``."""
    k, up, down = torch.broadcast_tensors(k, up, down)
    size = k.abs().detach()
    # term j is largest at the positive root of j (j + |k|) = rate_up · rate_down
    product = (up * down).detach()
    peak = 2 * product / (size + (size.square() + 4 * product).sqrt()).clamp_min(1e-300)
    half = _half_width(peak)
    first = (peak.round() - half).clamp_min(0).unsqueeze(-1)
    j = first + torch.arange(2 * half + 1, device=k.device)  # (..., 2 half + 1)
    plus, minus = k.clamp_min(0).unsqueeze(-1) + j, (-k).clamp_min(0).unsqueeze(-1) + j
    terms = log_poisson_pmf(plus, up.unsqueeze(-1)) + log_poisson_pmf(minus, down.unsqueeze(-1))
    return log_sum(terms).squeeze(-1)


def _half_width(peak: Tensor) -> int:
    """Terms on either side of the peak that are worth adding: seven standard deviations."""
    if not inspectable(peak):
        return 128  # a traced sum cannot depend on the data: exact for rates up to about 200
    largest = float(peak.max()) if peak.numel() else 0.0
    return int(7 * largest**0.5) + 20 if largest == largest else 1


@register(Skellam)
class SkellamLaw(Law):
    """Its PMF, tails from those of the two counts, and its stages: one count less the other."""

    spec = Spec("skellam", ("rate_up", "rate_down"), "rates >= 0", Skellam)
    data_dependent = True
    compound = True
    lower = upper = None

    @lazy_property
    def rates(self) -> tuple[Tensor, Tensor]:
        """Both rates, ``(*batch, 1)``, in ``float64``."""
        return self.q.rate_up.double().unsqueeze(-1), self.q.rate_down.double().unsqueeze(-1)

    @lazy_property
    def fixed_at_zero(self) -> tuple[Tensor, Tensor]:
        """The rates; one of 0 has no derivative in log space, the table gets it to first order."""
        up, down = (torch.where(rate == 0, rate.detach(), rate) for rate in self.rates)
        return up, down

    @lazy_property
    def like(self) -> Tensor:
        return widen(self.q.rate_up)

    def rsample(
        self, shape: torch.Size, *, bridge: bool = True, antithetic: bool = False
    ) -> Tensor:
        if antithetic:
            return super().rsample(shape, antithetic=True)
        full = shape + self.batch_shape
        up, down = self.q.rate_up.expand(full), self.q.rate_down.expand(full)
        return moving_poisson(up) - moving_poisson(down)

    def log_pmf(self, k: Tensor) -> Tensor:
        return _log_pmf(k.double(), *self.fixed_at_zero).to(self.like.dtype)

    def log_at_least(self, a: Tensor) -> Tensor:
        up, down = self.fixed_at_zero
        return _log_tail(a, up, down).to(self.like.dtype)

    def log_at_most(self, a: Tensor) -> Tensor:
        up, down = self.fixed_at_zero
        return _log_tail(-a, down, up).to(self.like.dtype)

    def for_window(self) -> SkellamLaw:
        up, down = (rate.detach().squeeze(-1).clamp_min(0.01) for rate in self.rates)
        return SkellamLaw(Skellam(up, down))

    def boundary(self) -> Tensor:
        up, down = self.rates
        return (up == 0) | (down == 0)

    def clipped_pmf(self, k: Tensor, clipped: Tensor) -> Tensor:
        """A rate of 0 that grows moves mass from each integer to the next, to first order."""
        pmf, p = clipped.exp(), self.log_pmf(k).detach().exp()
        first, last = k == k[..., :1], k == k[..., -1:]
        before, after = p.roll(1, -1), p.roll(-1, -1)
        up = torch.where(first, -p, torch.where(last, before, before - p))
        down = torch.where(last, -p, torch.where(first, after, after - p))
        for rate, slope in zip(self.rates, (up, down), strict=True):
            moved = (rate - rate.detach()).to(p.dtype) * slope
            pmf = pmf + moved.where(rate == 0, 0.0)
        return pmf


def _log_tail(a: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """``log P(X_up - X_down >= a)``, for cuts ``(*batch or nothing, 1)``."""
    j = torch.arange(256, device=down.device)  # under a trace: exact for rates up to about 120
    if inspectable(down) and down.numel():
        # nine standard deviations; a NaN or infinite rate has no bulk, and comes out as NaN
        rate = down.detach().nan_to_num(0.0, posinf=0.0)
        half = int(9 * float(rate.max()) ** 0.5) + 24
        j = (rate.round().long() - half).clamp_min(0) + torch.arange(2 * half + 1).to(down.device)
    return log_sum(log_poisson_pmf(j.double(), down) + log_poisson_tail(a + j, up, True))
