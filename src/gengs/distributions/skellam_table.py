r"""The Skellam's table and tails, from those of its two Poisson counts.

.. math::
    p(k) = \sum_j p_1(k + j)\, p_2(j), \qquad
    P(X_1 - X_2 \ge a) = \sum_j p_2(j)\, P(X_1 \ge a + j)

For consecutive :math:`k` the first sum is a convolution: :math:`p_1` is evaluated once for each
integer it touches, not once for each term. Sums of positive terms lose no digits; the window of
:math:`j` spans nine standard deviations of :math:`X_2`. It runs in ``float64``.
"""

from __future__ import annotations

__all__ = ["SkellamFamily"]

import torch
from torch import Tensor

from .families import Family, register_family
from .skellam import Skellam
from .special import log_poisson_tail, safe_log
from .summation import log_sum
from .validation import inspectable

_TRACED_TERMS = 256
"""Under a trace the window cannot depend on the rates: exact for rates up to about 120."""


class SkellamFamily(Family):
    """The law of the difference of two counts, as a truncation asks for it."""

    def __init__(self, law: Skellam) -> None:
        super().__init__(law)
        self.up = law.rate_up.double().unsqueeze(-1)
        self.down = law.rate_down.double().unsqueeze(-1)
        self.like = law.rate_up.to(torch.promote_types(law.rate_up.dtype, torch.float32))
        self.like = self.like.unsqueeze(-1)

    def log_pmf(self, k: Tensor) -> Tensor:
        if not inspectable(k, self.up) or not bool((k.diff(dim=-1) == 1).all()):
            return super().log_pmf(k)
        j = _bulk(self.down)  # (*batch, J)
        first = k[..., :1] + j[..., :1]
        span = first + torch.arange(k.shape[-1] + j.shape[-1] - 1, device=k.device)
        one, other = _log_poisson(span, self.up), _log_poisson(j, self.down)
        # the largest of each row is taken out, so that the products neither over- nor underflow
        top, top_other = _largest(one), _largest(other)
        windows = (one - top).exp().unfold(-1, j.shape[-1], 1)  # (*batch, K, J)
        total = (windows @ (other - top_other).exp().unsqueeze(-1)).squeeze(-1)
        return (safe_log(total) + top + top_other).to(self.like.dtype)

    def log_at_least(self, a: Tensor) -> Tensor:
        return _log_tail(a, self.up, self.down).to(self.like.dtype)

    def log_at_most(self, a: Tensor) -> Tensor:
        return _log_tail(-a, self.down, self.up).to(self.like.dtype)


register_family(Skellam, SkellamFamily)


def _log_tail(a: Tensor, up: Tensor, down: Tensor) -> Tensor:
    """``log P(X_up - X_down >= a)``, for cuts ``(*batch or nothing, 1)``."""
    j = _bulk(down)
    return log_sum(_log_poisson(j, down) + log_poisson_tail((a + j).double(), up, True))


def _bulk(rate: Tensor) -> Tensor:
    """Integers around each rate that hold all its mass but 1e-15 or so, ``(*batch, J)``."""
    if not inspectable(rate):
        return torch.arange(_TRACED_TERMS, device=rate.device).expand(*rate.shape[:-1], -1)
    # a NaN or infinite rate has no bulk; it comes out as NaN wherever it is multiplied in
    rate = rate.detach().nan_to_num(0.0, posinf=0.0)
    half = int(9 * float(rate.max()) ** 0.5) + 24 if rate.numel() else 1
    first = (rate.round().long() - half).clamp_min(0)
    return first + torch.arange(2 * half + 1, device=rate.device)


def _log_poisson(k: Tensor, rate: Tensor) -> Tensor:
    inside = k >= 0
    k = k.clamp_min(0).double()
    log_pmf = (k * safe_log(rate)).masked_fill(k == 0, 0.0) - rate - torch.lgamma(k + 1)
    return log_pmf.where(inside, -torch.inf)


def _largest(x: Tensor) -> Tensor:
    largest = x.detach().amax(-1, keepdim=True)
    return largest.masked_fill(largest == -torch.inf, 0.0)
