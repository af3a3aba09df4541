r"""The negative binomial: successes before the r-th failure, mean r p / (1 - p).

.. math::
    \log p(k) = \log \binom{r + k - 1}{k} + k \log p + r \log(1 - p), \qquad
    P(X \ge a) = I_p(a, r)

============  =====================  =====================
parameter     up                     below
============  =====================  =====================
p             (r + z) / (1 - p)      z / (p (1 - p))
logit         (r + z) p              z
============  =====================  =====================

Where r is learned, it is drawn in two stages, each with a gradient: a Gamma(r, (1 - p) / p) rate by
torch's ``rsample``, then a Poisson count at that rate.
"""

__all__ = ["NegativeBinomialLaw"]

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution, Gamma, NegativeBinomial
from torch.distributions.kl import register_kl

from ..numerics.attach import nonzero
from ..numerics.tails import log_beta_tail, log_success_and_failure, times, widen
from ..numerics.tracing import any_of, carries_gradient, validates
from ..tables.kl import divergence_by_tables, log_difference
from .law import Law, Spec, register
from .line import Rates
from .pmf import BoundaryExpansion
from .poisson import draw_poisson, moving_poisson
from .trials import Trials


@register(NegativeBinomial, "pyro.NegativeBinomial")
class NegativeBinomialLaw(Trials):
    """The record of the negative binomial."""

    spec = Spec(
        "negative-binomial",
        ("total_count", "probs"),
        "total_count >= 0 and 0 <= probs < 1",
        NegativeBinomial,
        constant=("total_count",),
    )
    upper = None

    @property
    def compound(self) -> bool:  # type: ignore[override]
        return carries_gradient(self.q.total_count)

    @property
    def one_sided_differences(self) -> bool:  # type: ignore[override]
        # without trials a count may leave for any value, and only the next one is a neighbour
        return not self.compound

    learned_total = False  # every estimator differentiates the log-PMF or the stages in it

    @property
    def rates(self) -> Rates:
        r = self.q.total_count.detach()

        def up(z: Tensor, p: Tensor) -> Tensor:
            return torch.where(p == 0, r, (r + z) / (1 - p))

        def below(z: Tensor, p: Tensor) -> Tensor:
            return torch.where(p == 0, r, z / nonzero(p * (1 - p)))

        def logit_up(z: Tensor, logit: Tensor) -> Tensor:
            return (r + z) * torch.sigmoid(logit)

        def logit_below(z: Tensor, logit: Tensor) -> Tensor:
            return z

        if self.by_logits:
            return {"logits": (logit_up, logit_below)}
        return {"probs": (up, below)}

    def draw(self, shape: torch.Size) -> Tensor:
        with torch.no_grad():
            r = widen(self.q.total_count).expand(shape + self.batch_shape)
            drawn = torch._standard_gamma(nonzero(r)).where(r > 0, r)  # 0, or NaN
            return draw_poisson(drawn * widen(self._odds()))

    def attach(self, z: Tensor) -> Tensor:
        return Law.attach(self, z) if self.compound else super().attach(z)

    def rsample(
        self, shape: torch.Size, *, bridge: bool = True, antithetic: bool = False
    ) -> Tensor:
        if not self.compound:
            return super().rsample(shape, antithetic=antithetic)
        if antithetic:
            return Law.rsample(self, shape, antithetic=True)
        r = self.q.total_count.expand(shape + self.batch_shape)
        drawn = Gamma(nonzero(r), torch.ones_like(r), validate_args=False).rsample()
        drawn = torch.where(r > 0, drawn, r)  # at r = 0 the mean's slope, the odds; or NaN
        return moving_poisson(drawn * self._odds())

    def _odds(self) -> Tensor:
        odds: Tensor = self.q.logits.exp() if self.by_logits else self.q.probs / (1 - self.q.probs)
        return odds

    def neighbour(self, z: Tensor, validate: bool = True) -> tuple[Tensor, Tensor]:
        if self.compound:
            return Law.neighbour(self, z, validate)
        return super().neighbour(z, validate)

    # --------------------------------------------------------------------------- the PMF and tails

    @property
    def mean(self) -> Tensor:
        return self.q.total_count * self._odds()  # torch clamps p away from 0

    def log_prob(self, value: Tensor) -> Tensor:
        # torch's own has NaN for a derivative at a number of trials of 0
        return self.log_pmf(value.unsqueeze(-1)).squeeze(-1)

    def _log_pmf(self, k: Tensor) -> Tensor:
        inside, none = self.inside(k), self.total == 0  # without trials the count is 0
        k, r = k.double().where(inside, 0.0), self.total.masked_fill(none, 1.0)
        choose = torch.lgamma(r + k) - torch.lgamma(r) - torch.lgamma(k + 1)
        log_pmf = choose + times(k, self.logs[0]) + times(r, self.logs[1])
        log_pmf = self._with_digits(log_pmf, k, r, -(k / r).log1p())  # the last trial fails
        return log_pmf.masked_fill(none, 0.0).where(inside & ~(none & (k > 0)), -torch.inf)

    def _log_at_least(self, a: Tensor, rare: bool) -> Tensor:
        return log_beta_tail(a, self.total, *self.logs, rare)

    def log_at_most(self, a: Tensor) -> Tensor:
        log_p, log_1mp = self.logs
        log_below = log_beta_tail(self.total, a + 1, log_1mp, log_p)
        return log_below.where(a >= 0, -torch.inf).to(self.like.dtype)

    def boundary_expansion(self) -> BoundaryExpansion | None:
        if self.by_logits:
            return None
        p = widen(self.q.probs).unsqueeze(-1)
        zero = torch.zeros_like(p)
        return BoundaryExpansion(p == 0, zero, zero + 1, self.total.to(p.dtype) * p)

    def for_window(self) -> "NegativeBinomialLaw":
        r = self.q.total_count.detach()
        probs, logits = (None, self.q.logits) if self.by_logits else (self.q.probs, None)
        return NegativeBinomialLaw(NegativeBinomial(r.masked_fill(r == 0, 1.0), probs, logits))

    def boundary(self) -> Tensor | None:
        at_p, none = super().boundary(), self.total == 0
        return none if at_p is None else at_p | none

    def clipped_pmf(self, k: Tensor, clipped: Tensor) -> Tensor:
        """Near r = 0, to first order, the logarithmic law: ``r p^k / k``."""
        pmf, none = super().clipped_pmf(k, clipped), (self.total == 0).to(k.device)
        log_p, log_1mp = self.logs
        term = times(k.clamp_min(1).double(), log_p).exp() / k.clamp_min(1)
        each = (self.total * term).masked_fill((k < 1) | (k == k[..., -1:]), 0.0)
        rest = -self.total * log_1mp - each.sum(-1, keepdim=True)  # all but k = 0
        each = torch.where(k == k[..., -1:], rest, each)
        each = torch.where(k == 0, 1 + self.total * log_1mp, each)
        return torch.where(none, each.to(pmf.dtype), pmf)

    @classmethod
    def explicit(cls, prior: Any, raw: Tensor, validate: bool | None) -> Distribution:
        return NegativeBinomial(prior.total_count, None, raw, validate)


@register_kl(NegativeBinomial, NegativeBinomial)
def _kl(q: NegativeBinomial, p: NegativeBinomial) -> Tensor:
    other = divergence_by_tables(q, p, NegativeBinomialLaw)
    if other is not None:
        return other
    if validates(vars(q).get("_validate_args")) and any_of(q.total_count != p.total_count):
        raise NotImplementedError(
            "kl_divergence of two NegativeBinomials has a closed form for equal `total_count` only;"
            " truncate both to the same atoms for the others."
        )
    log_p, log_1mp = log_success_and_failure(p)
    log_q, log_1mq = log_success_and_failure(q)
    mean = q.mean.unsqueeze(-1)
    kl = times(mean, log_difference(log_q, log_p))
    kl = kl + q.total_count.unsqueeze(-1) * (log_1mq - log_1mp)
    # where nobody looked, unequal numbers of trials are no plausible number
    return kl.squeeze(-1).where(q.total_count == p.total_count, torch.nan)
