r"""The binomial, successes among N trials; with one trial, the Bernoulli.

.. math::
    \log p(k) = \log \binom{N}{k} + k \log p + (N - k) \log(1 - p), \qquad
    P(X \ge a) = I_p(a, N - a + 1)

============  =====================  =====================
parameter     up                     below
============  =====================  =====================
p             (N - z) / (1 - p)      z / p
logit         (N - z) p              z (1 - p)
N             p                      z / N
============  =====================  =====================

One trial more adds a success with probability p, one less removes one with probability z/N.
Differences of the cost are taken downwards where p > 1/2, so that no small number divides.
"""

__all__ = ["BernoulliLaw", "BinomialLaw"]

from typing import Any, ClassVar

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Binomial, Distribution
from torch.distributions.kl import register_kl
from torch.distributions.utils import lazy_property

from ..numerics.attach import ratio
from ..numerics.tails import log_beta_tail, log_success_and_failure, log_sum, times, widen
from ..numerics.tracing import any_of, validates
from ..tables.kl import categorical_kl, divergence_by_tables, log_difference
from .law import Spec, law_of, register
from .line import Rates
from .pmf import BoundaryExpansion
from .trials import Trials


@register(Binomial, "pyro.Binomial")
class BinomialLaw(Trials):
    """The record of the binomial."""

    spec: ClassVar[Spec | None] = Spec(
        "binomial",
        ("total_count", "probs"),
        "an integer total_count >= 0 and 0 <= probs <= 1",
        Binomial,
        constant=("total_count",),
    )

    @property
    def upper(self) -> Tensor | None:
        return self.total

    @property
    def rates(self) -> Rates:
        if self.by_logits:
            return {"logits": (_logit_up, _logit_below), "total_count": (_logit_more, _logit_share)}
        return {"probs": (_up, _below), "total_count": (_more, _share)}

    def down(self) -> Tensor:
        probs: Tensor = self.q.probs
        return probs.detach() > 0.5

    def draw(self, shape: torch.Size) -> Tensor:
        with torch.no_grad():
            full = shape + self.batch_shape
            total = self.q.total_count.to(self.like.dtype).expand(full)
            return torch.binomial(total, widen(self.q.probs).expand(full))

    # --------------------------------------------------------------------------- the PMF and tails

    def _log_pmf(self, k: Tensor) -> Tensor:
        inside, (log_p, log_1mp) = self.inside(k), self.logs
        k = k.double().where(inside, 0.0)
        rest = (self.total - k).where(inside, 0.0)
        choose = torch.lgamma(self.total + 1) - torch.lgamma(k + 1) - torch.lgamma(rest + 1)
        log_pmf = choose + times(k, log_p) + times(rest, log_1mp)
        log_pmf = self._with_digits(log_pmf, k, rest, torch.zeros_like(rest))
        return log_pmf.where(inside, -torch.inf)

    def _log_at_least(self, a: Tensor, rare: bool) -> Tensor:
        return log_beta_tail(a, self.total - a + 1, *self.logs, rare)

    def log_at_most(self, a: Tensor) -> Tensor:
        log_p, log_1mp = self.logs
        log_below = log_beta_tail(self.total - a, a + 1, log_1mp, log_p)
        return log_below.where(a >= 0, -torch.inf).to(self.like.dtype)

    def boundary_expansion(self) -> BoundaryExpansion | None:
        """Of trials that never or always succeed: to the first success, or failure."""
        if self.by_logits:
            return None
        p = widen(self.q.probs).unsqueeze(-1)
        total = self.total.detach().to(p.dtype)
        full = p == 1
        here, there = total.where(full, 0.0), torch.where(full, total - 1, 1.0)
        leaves = total * torch.where(full, 1 - p, p)
        there = there.clamp_min(0).minimum(total)
        return BoundaryExpansion(full | (p == 0), here, there, leaves)

    @classmethod
    def explicit(cls, prior: Any, raw: Tensor, validate: bool | None) -> Distribution:
        return Binomial(prior.total_count, None, raw, validate)


@register(Bernoulli, "pyro.Bernoulli")
class BernoulliLaw(BinomialLaw):
    """The record of the Bernoulli: one trial, and a table of two atoms."""

    spec = Spec("bernoulli", ("probs",), "0 <= probs <= 1", Bernoulli)
    size = 2
    learned_total = False

    @lazy_property
    def total(self) -> Tensor:
        return torch.ones_like(self.like, dtype=torch.float64).detach().unsqueeze(-1)

    @property
    def rates(self) -> Rates:
        up, below = (_logit_up, _logit_below) if self.by_logits else (_up, _below)
        one_up = lambda z, x: up(z, x, torch.ones_like(x))  # noqa: E731
        one_below = lambda z, x: below(z, x, torch.ones_like(x))  # noqa: E731
        return {"logits" if self.by_logits else "probs": (one_up, one_below)}

    def draw(self, shape: torch.Size) -> Tensor:
        with torch.no_grad():
            return torch.bernoulli(widen(self.q.probs).expand(shape + self.batch_shape))

    @lazy_property
    def logs(self) -> tuple[Tensor, Tensor]:
        return log_success_and_failure(self.q)

    @lazy_property
    def pair(self) -> Tensor:
        """The log-PMF at 0 and 1, ``(*batch, 2)``."""
        log_p, log_1mp = self.logs
        return torch.cat([log_1mp, log_p], -1)

    def log_clipped(self, k: Tensor, first: int | None) -> Tensor:
        return super(Trials, self).log_clipped(k, first)

    def _log_pmf(self, k: Tensor) -> Tensor:
        either = torch.where(k == 1, self.pair[..., 1:], self.pair[..., :1])
        return either.where(self.inside(k), -torch.inf)

    def _log_at_least(self, a: Tensor, rare: bool) -> Tensor:
        return log_sum(self.pair.where(torch.arange(2, device=a.device) >= a, -torch.inf))

    def log_at_most(self, a: Tensor) -> Tensor:
        return log_sum(self.pair.where(torch.arange(2, device=a.device) <= a, -torch.inf))

    @classmethod
    def explicit(cls, prior: Any, raw: Tensor, validate: bool | None) -> Distribution:
        return Bernoulli(None, raw, validate)


# ------------------------------------------------------------------------------- rates of the edges


def _up(z: Tensor, p: Tensor, n: Tensor) -> Tensor:
    return ratio(n - z, 1 - p, n)


def _below(z: Tensor, p: Tensor, n: Tensor) -> Tensor:
    return ratio(z, p, n)


def _logit_up(z: Tensor, logit: Tensor, n: Tensor) -> Tensor:
    return (n - z) * torch.sigmoid(logit)


def _logit_below(z: Tensor, logit: Tensor, n: Tensor) -> Tensor:
    return z * torch.sigmoid(-logit)


def _more(z: Tensor, p: Tensor, n: Tensor) -> Tensor:
    return p.expand_as(z)


def _logit_more(z: Tensor, logit: Tensor, n: Tensor) -> Tensor:
    return torch.sigmoid(logit).expand_as(z)


def _share(z: Tensor, p: Tensor, n: Tensor) -> Tensor:
    return ratio(z, n, p)


def _logit_share(z: Tensor, logit: Tensor, n: Tensor) -> Tensor:
    return _share(z, torch.sigmoid(logit), n)


@register_kl(Binomial, Binomial)
def _kl(q: Binomial, p: Binomial) -> Tensor:
    """Torch has the case of equal counts; this one has all (+inf where ``q`` can exceed ``p``).

    Unequal counts need a table whose size is a number to be read: without validation, and under a
    compiler, they are NaN.
    """
    other = divergence_by_tables(q, p, BinomialLaw)
    if other is not None:
        return other
    log_q, log_1mq = log_success_and_failure(q)
    log_p, log_1mp = log_success_and_failure(p)
    n_q, n_p = q.total_count, p.total_count
    mean = q.mean.unsqueeze(-1)
    rest = n_q.unsqueeze(-1) - mean
    same = times(mean, log_difference(log_q, log_p))
    same = same + times(rest, log_difference(log_1mq, log_1mp))
    if not validates(vars(q).get("_validate_args")) or not any_of(n_q != n_p):
        return same.squeeze(-1).where(n_q == n_p, torch.nan)
    last = int(n_q.max()) if n_q.numel() else 0
    k = torch.arange(last + 1, device=n_q.device)
    exact = categorical_kl(law_of(q).log_pmf(k), law_of(p).log_pmf(k))
    return torch.where(n_q == n_p, same.squeeze(-1), exact)
