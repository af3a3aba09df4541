r"""The closed forms of the count families.

==================  =================================  ==========================================
law                 log PMF                            :math:`P(X \ge a)`
==================  =================================  ==========================================
Poisson             k log λ - λ - lnΓ(k + 1)           incomplete gamma function
Geometric           k log(1 - p) + log p               (1 - p)^a
Binomial            log C(N, k) + ...                  incomplete beta function
NegativeBinomial    log C(r + k - 1, k) + ...          incomplete beta function
anything else       the law's own ``log_prob``         sum of its terms (see ``summation.py``)
==================  =================================  ==========================================

Formulas that cancel in ``float32`` (log-gammas of large numbers) run in ``float64`` inside.
"""

from __future__ import annotations

__all__: list[str] = []

import math
from collections.abc import Callable

import torch
from torch import Tensor
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    NegativeBinomial,
    Poisson,
)

from .beta_tail import log_beta_tail
from .families import Family, register_family
from .given import gave, log_success_and_failure, times, widen
from .poisson_tail import LARGEST_CUT
from .special import log_poisson_tail, safe_log
from .validation import ends_of, inspectable


class _Poisson(Family):
    def __init__(self, law: Poisson) -> None:
        super().__init__(law, lower=0)
        self.law: Poisson = law
        self.rate = self.like = widen(law.rate).unsqueeze(-1)

    def log_pmf(self, k: Tensor) -> Tensor:
        rate = self.rate if _known_to_be_small(k) else self.rate.double()
        k = k.to(rate.dtype)
        log_power = (k * safe_log(rate)).where(k != 0, 0.0)
        log_pmf = log_power - rate - torch.lgamma(k.clamp_min(0) + 1)
        return log_pmf.where(self._inside(k), -torch.inf).to(self.rate.dtype)

    def some_exceed(self, n: int, mass: float) -> bool | None:
        if not 0 < n <= LARGEST_CUT + 1:
            return super().some_exceed(n, mass)
        rate = self.ends(self.law.rate)[1]  # the tail grows with the rate
        return _tail_exceeds(mass, n, math.exp(-rate), lambda k: rate / k)

    def log_at_least(self, a: Tensor) -> Tensor:
        return log_poisson_tail(a, self.rate, True)

    def log_at_most(self, a: Tensor) -> Tensor:
        return log_poisson_tail(a + 1, self.rate, False)


def _tail_exceeds(mass: float, n: int, first: float, ratio: Callable[[int], float]) -> bool | None:
    """Whether ``P(X >= n) > mass``, from ``P(X = 0)`` and the ratios ``P(X = k) / P(X = k - 1)``.

    The sum is 1 up to some roundings. Where these would decide, the answer is ``None``.
    """
    term = below = first
    for k in range(1, n):
        term *= ratio(k)
        below += term
    return None if abs(1 - below - mass) < 1e-12 else 1 - below > mass


class _Geometric(Family):
    def __init__(self, law: Geometric) -> None:
        super().__init__(law, lower=0)
        self.log_p, self.log_1mp = log_success_and_failure(law)
        self.like = self.log_p

    def log_pmf(self, k: Tensor) -> Tensor:
        k = k.to(self.log_p.dtype)
        log_pmf = (k * self.log_1mp).where(k != 0, 0.0) + self.log_p
        return log_pmf.where(self._inside(k), -torch.inf)

    def some_exceed(self, n: int, mass: float) -> bool | None:
        return n > 0 and math.exp(n * self.ends(self.log_1mp)[1]) > mass

    def log_at_least(self, a: Tensor) -> Tensor:
        a = a.to(self.log_p.dtype).clamp_min(0)
        return (a * self.log_1mp).where(a != 0, 0.0)

    def log_at_most(self, a: Tensor) -> Tensor:
        log_above = self.log_at_least(a + 1)
        surely = log_above == -torch.inf
        log_below = safe_log(-torch.expm1(log_above.where(~surely, -1.0)))
        return log_below.where(~surely, 0.0)


class _Binomial(Family):
    def __init__(self, law: Binomial) -> None:
        self.total = law.total_count.double().unsqueeze(-1)
        super().__init__(law, lower=0, upper=self.total)
        # a million times a logarithm: its rounding to float32 would show in the PMF
        self.log_p, self.log_1mp = log_success_and_failure(law, torch.float64)
        self.like = widen(law._param)

    def log_pmf(self, k: Tensor) -> Tensor:
        inside = self._inside(k)
        k = k.double().where(inside, 0.0)
        rest = self.total - k
        choose = torch.lgamma(self.total + 1) - torch.lgamma(k + 1) - torch.lgamma(rest + 1)
        log_pmf = choose + times(k, self.log_p) + times(rest, self.log_1mp)
        return log_pmf.where(inside, -torch.inf).to(self.like.dtype)

    def log_at_least(self, a: Tensor) -> Tensor:
        log_above = log_beta_tail(a.double(), self.total - a + 1, self.log_p, self.log_1mp)
        return log_above.to(self.like.dtype)

    def log_at_most(self, a: Tensor) -> Tensor:
        log_below = log_beta_tail(self.total - a, a.double() + 1, self.log_1mp, self.log_p)
        return log_below.where(a >= 0, -torch.inf).to(self.like.dtype)


class _NegativeBinomial(Family):
    def __init__(self, law: NegativeBinomial) -> None:
        super().__init__(law, lower=0)
        self.total = law.total_count.double().unsqueeze(-1)
        # a million times a logarithm: its rounding to float32 would show in the PMF
        self.log_p, self.log_1mp = log_success_and_failure(law, torch.float64)
        self.like = widen(law._param)

    def log_pmf(self, k: Tensor) -> Tensor:
        inside = self._inside(k)
        k, r = k.double().where(inside, 0.0), self._total_if_shared()
        choose = torch.lgamma(r + k) - torch.lgamma(r) - torch.lgamma(k + 1)
        choose = choose.where((k != 0) | (r > 0), 0.0)
        log_pmf = choose + times(k, self.log_p) + times(self.total, self.log_1mp)
        return log_pmf.where(inside, -torch.inf).to(self.like.dtype)

    def _total_if_shared(self) -> Tensor:
        """One number, where all elements have the same r: log-gammas are dear."""
        total = self.total
        if total.requires_grad or not inspectable(total) or not total.numel():
            return total
        least, largest = ends_of(total)
        return total.reshape(-1)[:1] if least == largest else total

    def some_exceed(self, n: int, mass: float) -> bool | None:
        if not 0 < n <= LARGEST_CUT + 1:
            return super().some_exceed(n, mass)
        # the tail grows with both parameters: where r is not the same for all, this is a bound
        (least, r), log_p = self.ends(self.total), self.ends(self.log_p)[1]
        p = math.exp(log_p)
        exceeds = _tail_exceeds(mass, n, (1 - p) ** r, lambda k: (r + k - 1) / k * p)
        return None if exceeds and least < r else exceeds

    def log_at_least(self, a: Tensor) -> Tensor:
        if self.total.requires_grad:  # the beta tail has no derivative in r; its terms have
            return super().log_at_least(a)
        log_above = log_beta_tail(a.double(), self.total, self.log_p, self.log_1mp)
        return log_above.to(self.like.dtype)

    def log_at_most(self, a: Tensor) -> Tensor:
        if self.total.requires_grad:
            return super().log_at_most(a)
        log_below = log_beta_tail(self.total, a.double() + 1, self.log_1mp, self.log_p)
        return log_below.where(a >= 0, -torch.inf).to(self.like.dtype)


class _Bernoulli(Family):
    def __init__(self, law: Bernoulli) -> None:
        log_p, log_1mp = log_success_and_failure(law)
        super().__init__(law, lower=0, upper=torch.ones_like(log_p))
        self.log_pmf_table = self.like = torch.cat([log_1mp, log_p], -1)

    def log_pmf(self, k: Tensor) -> Tensor:
        return _look_up(self.log_pmf_table, k)


class _Categorical(Family):
    def __init__(self, law: Categorical) -> None:
        given = gave(law, "logits")
        table = widen(law.logits) if given else safe_log(widen(law.probs))
        if table.dtype != law._param.dtype:  # half precision was normalised to three digits only
            table = table.log_softmax(-1)
        n = torch.full_like(table[..., :1], table.shape[-1] - 1)
        super().__init__(law, lower=0, upper=n)
        self.log_pmf_table = self.like = table

    def log_pmf(self, k: Tensor) -> Tensor:
        return _look_up(self.log_pmf_table, k)


def _look_up(table: Tensor, k: Tensor) -> Tensor:
    n = table.shape[-1]
    inside = (k >= 0) & (k < n) & (k == k.round())
    index = k.where(inside, 0).long().expand(*table.shape[:-1], k.shape[-1])
    return table.gather(-1, index).where(inside, -torch.inf)


def _known_to_be_small(k: Tensor) -> bool:
    """Whether every integer is small enough for float32; a trace cannot know."""
    return inspectable(k) and k.numel() > 0 and int(k.max()) <= LARGEST_CUT


register_family(Poisson, _Poisson)
register_family(Geometric, _Geometric)
register_family(Binomial, _Binomial)
register_family(NegativeBinomial, _NegativeBinomial)
register_family(Bernoulli, _Bernoulli)
register_family(Categorical, _Categorical)
