r"""Trials that succeed or fail: what binomials and negative binomials share.

The log-PMF runs in ``float64`` (a million times a logarithm: its rounding to ``float32`` would
show), and the tails are incomplete beta functions (:mod:`gengs.numerics.tails`).
"""

__all__ = ["Trials"]

import math
from abc import abstractmethod

import torch
from torch import Tensor
from torch.distributions.utils import lazy_property

from ..numerics.saddle_point import log_split_digits
from ..numerics.tails import (
    RARE,
    log1mexp,
    log_success_and_failure,
    log_sum,
    was_given,
    widen,
)
from ..numerics.tracing import carries_gradient
from .line import Line

_MANY = 1024.0  # so many trials, and log-gammas cancel
_HALF = -math.log(2)


class Trials(Line):
    """A count with ``total_count`` and either ``probs`` or ``logits``."""

    lower = 0
    measured = ("probs", "logits")

    @lazy_property
    def by_logits(self) -> bool:
        """Whether the distribution was made of logits."""
        return was_given(self.q, "logits")

    @lazy_property
    def total(self) -> Tensor:
        """The number of trials, ``(*batch, 1)``."""
        return self.q.total_count.double().unsqueeze(-1)

    @lazy_property
    def logs(self) -> tuple[Tensor, Tensor]:
        """``log p`` and ``log(1 - p)``, ``(*batch, 1)``."""
        return log_success_and_failure(self.q, torch.float64)

    @lazy_property
    def like(self) -> Tensor:
        return widen(self.q.logits if self.by_logits else self.q.probs)

    @property
    def learned_total(self) -> bool:  # type: ignore[override]
        return carries_gradient(self.q.total_count)

    def log_pmf(self, k: Tensor) -> Tensor:
        return self._log_pmf(k).to(self.like.dtype)

    def log_clipped(self, k: Tensor, first: int | None) -> Tensor:
        if first is None:
            return super().log_clipped(k, first)
        inner = self._log_pmf(k[..., :-1])
        # 1 - (the rest) keeps ten digits unless the tail is rare, and then few levels are needed
        below = log_sum(inner).clamp_max(-1e-300)
        complement = log1mexp(below.masked_fill(below == -torch.inf, -1.0))
        complement = complement.masked_fill(below == -torch.inf, 0.0)
        rare = self._log_at_least(k[..., -1:], rare=True)
        is_rare = (complement < torch.log(torch.tensor(RARE))) | (rare == -torch.inf)
        return self.join([inner, torch.where(is_rare, rare, complement)])

    def log_at_least(self, a: Tensor) -> Tensor:
        return self._log_at_least(a, rare=False).to(self.like.dtype)

    def _with_digits(self, log_pmf: Tensor, k: Tensor, rest: Tensor, beside: Tensor) -> Tensor:
        """``log_pmf`` of ``k`` successes and ``rest`` failures; all digits in ``float64``.

        ``beside`` is what the log-PMF has beside the binomial's.
        """
        if self.like.dtype != torch.float64:
            return log_pmf
        log_p, log_1mp = self.logs
        many = (k + rest >= _MANY) & (log_p > -torch.inf) & (log_1mp > -torch.inf)
        held = (
            x.where(many, low)
            for x, low in ((k, 1.0), (rest, 1.0), (log_p, _HALF), (log_1mp, _HALF))
        )
        return torch.where(many, log_split_digits(*held) + beside, log_pmf)

    @abstractmethod
    def _log_pmf(self, k: Tensor) -> Tensor: ...

    @abstractmethod
    def _log_at_least(self, a: Tensor, rare: bool) -> Tensor: ...
