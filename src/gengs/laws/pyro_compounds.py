"""Pyro's compound distributions, known by name: Pyro need not be installed.

=========================  =======================================================
distribution               stages
=========================  =======================================================
BetaBinomial               Beta, then Binomial
GammaPoisson               Gamma, then Poisson
DirichletMultinomial       Dirichlet, then Multinomial
ZeroInflated...            Bernoulli gate, times the count
ExtendedBinomial           none: a binomial whose ``log_prob`` takes all integers
ExtendedBetaBinomial       Beta, then ExtendedBinomial
=========================  =======================================================

Continuous stages move by torch's ``rsample``. A hurdle distribution, or any other compound of
yours, is written the same way: draw one stage, and use it.
"""

__all__: list[str] = []


import torch
from torch import Tensor
from torch.distributions import Bernoulli, Binomial

from ..numerics.tracing import carries_gradient
from .binomial import BernoulliLaw, BinomialLaw
from .boxes import attach_counts, draw_counts
from .law import Law, law_of, register
from .line import Rate, Rates
from .poisson import moving_poisson


class _Compound(Law):
    """Drawn in stages; no stage jumps by more than its own neighbours."""

    compound = True

    def rsample(
        self, shape: torch.Size, *, bridge: bool = True, antithetic: bool = False
    ) -> Tensor:
        if antithetic:
            return super().rsample(shape, antithetic=True)
        return self.stages(shape)

    def stages(self, shape: torch.Size) -> Tensor:
        """Draws with a gradient, by draws of other distributions."""
        raise NotImplementedError


@register("pyro.BetaBinomial")
class BetaBinomialLaw(_Compound):
    """A success probability from a Beta, then trials."""

    lower = 0

    @property
    def upper(self) -> Tensor:
        total: Tensor = self.q.total_count.double().unsqueeze(-1)
        return total

    @property
    def learned_total(self) -> bool:  # type: ignore[override]
        return carries_gradient(self.q.total_count)

    def stages(self, shape: torch.Size) -> Tensor:
        probs = self.q._beta.rsample(shape)
        trials = Binomial(self.q.total_count, probs, validate_args=False)
        return BinomialLaw(trials).rsample(torch.Size())


@register("pyro.ExtendedBinomial")
class ExtendedBinomialLaw(BinomialLaw):
    """A binomial whose number of trials may be negative, which is none."""

    spec = None

    @property
    def total(self) -> Tensor:
        total: Tensor = self.q.total_count.double().clamp_min(0).unsqueeze(-1)
        return total

    @property
    def rates(self) -> Rates:
        return {
            name: (_of_trials(up), _of_trials(below)) for name, (up, below) in super().rates.items()
        }

    def draw(self, shape: torch.Size) -> Tensor:
        with torch.no_grad():
            full = shape + self.batch_shape
            total = self.total.squeeze(-1).to(self.like.dtype).expand(full)
            return torch.binomial(total, self.q.probs.to(self.like.dtype).expand(full))


def _of_trials(rate: Rate) -> Rate:
    def of_trials(z: Tensor, parameter: Tensor, n: Tensor) -> Tensor:
        return rate(z, parameter, n.clamp_min(0)) * (n >= 0)

    return of_trials


@register("pyro.ExtendedBetaBinomial")
class ExtendedBetaBinomialLaw(BetaBinomialLaw):
    """A Beta, then a binomial whose number of trials may be negative, which is none."""

    @property
    def upper(self) -> Tensor:
        return super().upper.clamp_min(0)

    def stages(self, shape: torch.Size) -> Tensor:
        probs, total = self.q._beta.rsample(shape), self.q.total_count
        trials = Binomial(total.clamp_min(0), probs, validate_args=False)
        return BinomialLaw(trials).rsample(torch.Size())


@register("pyro.GammaPoisson")
class GammaPoissonLaw(_Compound):
    """A rate from a Gamma, then a count."""

    lower, upper = 0, None

    def stages(self, shape: torch.Size) -> Tensor:
        return moving_poisson(self.q._gamma.rsample(shape))


@register("pyro.DirichletMultinomial")
class DirichletMultinomialLaw(_Compound):
    """Probabilities of boxes from a Dirichlet, then balls."""

    traces_sample = True  # sample() draws its stages in the open: the numbers stay as they are

    def stages(self, shape: torch.Size) -> Tensor:
        probs = self.q._dirichlet.rsample(shape)
        n = self.q.total_count.expand(probs.shape[:-1])
        return attach_counts(draw_counts(n, probs), n.unsqueeze(-1), probs=probs)


@register("pyro.ZeroInflatedDistribution", "pyro.ZeroInflatedPoisson")
@register("pyro.ZeroInflatedNegativeBinomial")
class ZeroInflatedLaw(_Compound):
    """A gate that is open or not, times a count."""

    def rsample(
        self, shape: torch.Size, *, bridge: bool = True, antithetic: bool = False
    ) -> Tensor:
        if bridge:
            return super().rsample(shape, antithetic=antithetic)
        return Law.rsample(self, shape, bridge=False, antithetic=antithetic)  # the gate jumps

    def stages(self, shape: torch.Size) -> Tensor:
        given = {"probs": self.q.gate} if "gate" in vars(self.q) else {"logits": self.q.gate_logits}
        gate = BernoulliLaw(Bernoulli(**given, validate_args=False)).rsample(shape)
        return (1 - gate) * law_of(self.q.base_dist).rsample(shape)
