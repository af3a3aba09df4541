r"""The closed forms of binomials and negative binomials: trials, and tails by the beta function.

.. math::
    \log p(k) = \log \binom{N}{k} + k \log p + (N - k) \log(1 - p), \qquad
    \log p(k) = \log \binom{r + k - 1}{k} + k \log p + r \log(1 - p)

They run in ``float64``: a million times a logarithm, its rounding to ``float32`` would show.
"""

__all__: list[str] = []

from abc import ABC, abstractmethod

import torch
from torch import Tensor
from torch.distributions import Binomial, NegativeBinomial

from .law import Family, Leaving, leaving_trials, register_family
from ..numerics.tails import (
    RARE,
    log1mexp,
    log_beta_tail,
    log_success_and_failure,
    log_sum,
    times,
    was_given,
    widen,
)


class _OfTrials(Family, ABC):
    """What binomials and negative binomials share: trials, and tails by the beta function."""

    law: Binomial | NegativeBinomial

    def __init__(self, law: Binomial | NegativeBinomial, bounded: bool) -> None:
        self.total = law.total_count.double().unsqueeze(-1)
        super().__init__(law, lower=0, upper=self.total if bounded else None)
        # a million times a logarithm: its rounding to float32 would show in the PMF
        self.log_p, self.log_1mp = log_success_and_failure(law, torch.float64)
        self.like = widen(law._param)

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

    @abstractmethod
    def _log_pmf(self, k: Tensor) -> Tensor: ...

    @abstractmethod
    def _log_at_least(self, a: Tensor, rare: bool) -> Tensor: ...


class _Binomial(_OfTrials):
    def __init__(self, law: Binomial) -> None:
        super().__init__(law, bounded=True)

    def _log_pmf(self, k: Tensor) -> Tensor:
        inside = self.inside(k)
        k = k.double().where(inside, 0.0)
        rest = self.total - k
        choose = torch.lgamma(self.total + 1) - torch.lgamma(k + 1) - torch.lgamma(rest + 1)
        log_pmf = choose + times(k, self.log_p) + times(rest, self.log_1mp)
        return log_pmf.where(inside, -torch.inf)

    def _log_at_least(self, a: Tensor, rare: bool) -> Tensor:
        return log_beta_tail(a, self.total - a + 1, self.log_p, self.log_1mp, rare)

    def log_at_most(self, a: Tensor) -> Tensor:
        log_below = log_beta_tail(self.total - a, a + 1, self.log_1mp, self.log_p)
        return log_below.where(a >= 0, -torch.inf).to(self.like.dtype)

    def leaving(self) -> Leaving | None:
        return leaving_trials(self.law, self.total)


class _NegativeBinomial(_OfTrials):
    def __init__(self, law: NegativeBinomial) -> None:
        super().__init__(law, bounded=False)

    def _log_pmf(self, k: Tensor) -> Tensor:
        inside, none = self.inside(k), self.total == 0  # without trials the count is 0
        k, r = k.double().where(inside, 0.0), self.total.masked_fill(none, 1.0)
        choose = torch.lgamma(r + k) - torch.lgamma(r) - torch.lgamma(k + 1)
        log_pmf = choose + times(k, self.log_p) + times(r, self.log_1mp)
        return log_pmf.masked_fill(none, 0.0).where(inside & ~(none & (k > 0)), -torch.inf)

    def _log_at_least(self, a: Tensor, rare: bool) -> Tensor:
        return log_beta_tail(a, self.total, self.log_p, self.log_1mp, rare)

    def log_at_most(self, a: Tensor) -> Tensor:
        log_below = log_beta_tail(self.total, a + 1, self.log_1mp, self.log_p)
        return log_below.where(a >= 0, -torch.inf).to(self.like.dtype)

    def leaving(self) -> Leaving | None:
        if was_given(self.law, "logits"):
            return None
        p = widen(self.law.probs).unsqueeze(-1)
        zero = torch.zeros_like(p)
        return Leaving(p == 0, zero, zero + 1, self.total.to(p.dtype) * p)

    def for_window(self) -> Family:
        r = self.law.total_count.detach()
        by_logits = was_given(self.law, "logits")
        probs, logits = (None, self.law.logits) if by_logits else (self.law.probs, None)
        return _NegativeBinomial(NegativeBinomial(r.masked_fill(r == 0, 1.0), probs, logits))

    def boundary(self) -> Tensor | None:
        at_p, none = super().boundary(), self.total == 0
        return none if at_p is None else at_p | none

    def clipped_pmf(self, k: Tensor, clipped: Tensor) -> Tensor:
        """Near r = 0, to first order, the logarithmic law: ``r p^k / k``."""
        pmf, none = super().clipped_pmf(k, clipped), (self.total == 0).to(k.device)
        term = times(k.clamp_min(1).double(), self.log_p).exp() / k.clamp_min(1)
        each = (self.total * term).masked_fill((k < 1) | (k == k[..., -1:]), 0.0)
        rest = -self.total * self.log_1mp - each.sum(-1, keepdim=True)  # all but k = 0
        each = torch.where(k == k[..., -1:], rest, each)
        each = torch.where(k == 0, 1 + self.total * self.log_1mp, each)
        return torch.where(none, each.to(pmf.dtype), pmf)


register_family(Binomial, _Binomial)
register_family(NegativeBinomial, _NegativeBinomial)
