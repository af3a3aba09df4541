"""Compound laws, drawn in stages that carry a gradient each.

A compound law is a small program: a rate is drawn, then a count at that rate. Its draw is exact,
each stage moves by a rule of its own (torch's ``rsample`` for the continuous ones), and the chain
rule does the rest: a gradient in every parameter, exact for quadratic costs, at a cost that does
not depend on the size of the support.

=========================  =======================================================
law                        stages
=========================  =======================================================
NegativeBinomial(r, p)     Gamma(r, (1 - p)/p), then Poisson; where r is learned
Skellam                    one Poisson count less the other
MixtureSameFamily          one-hot component, times one draw of each component
TransformedDistribution    the base law, then the transforms
BetaBinomial (Pyro)        Beta, then Binomial
GammaPoisson (Pyro)        Gamma, then Poisson
DirichletMultinomial       Dirichlet, then Multinomial (Pyro)
ZeroInflated... (Pyro)     Bernoulli gate, times the count
=========================  =======================================================

A hurdle law, or any other compound of yours, is written the same way: draw one stage, and use it.
Pyro's laws are known by name, so that Pyro need not be installed.
"""

__all__: list[str] = []

from typing import Any

import torch
from torch import Tensor
from torch.distributions import (
    Bernoulli,
    Binomial,
    Gamma,
    MixtureSameFamily,
    NegativeBinomial,
    Poisson,
    TransformedDistribution,
)

from ..laws.skellam import Skellam
from ..numerics.tails import was_given
from ..numerics.attach import nonzero
from ..gradients.draws import STAGES, Stages, draw_one_by_one, midcdf_sample
from .vectors import draw_counts, draw_one_hot


def _poisson(rate: Tensor) -> Tensor:
    return midcdf_sample(Poisson(rate, validate_args=False))


def _skellam(law: Skellam, shape: torch.Size) -> Tensor:
    up, down = (rate.expand(shape + law.batch_shape) for rate in (law.rate_up, law.rate_down))
    return _poisson(up) - _poisson(down)


def _negative_binomial(law: NegativeBinomial, shape: torch.Size) -> Tensor:
    r = law.total_count.expand(shape + law.batch_shape)
    odds = law.logits.exp() if was_given(law, "logits") else law.probs / (1 - law.probs)
    drawn = Gamma(nonzero(r), torch.ones_like(r), validate_args=False).rsample()
    return _poisson(torch.where(r == 0, r, drawn) * odds)  # at r = 0 the mean's slope, odds


def _mixture(law: MixtureSameFamily, shape: torch.Size) -> Tensor:
    weights = law.mixture_distribution.expand(law.batch_shape)
    component = draw_one_hot(weights, shape)  # (*sample, *batch, K)
    z = draw_one_by_one(law.component_distribution, shape)  # (*sample, *batch, K, *event)
    event = len(law.event_shape)
    return (component.reshape(component.shape + (1,) * event) * z).sum(-1 - event)


def _transformed(law: TransformedDistribution, shape: torch.Size) -> Tensor:
    z = draw_one_by_one(law.base_dist, shape)
    for transform in law.transforms:
        z = transform(z)
    return z


def _beta_binomial(law: Any, shape: torch.Size) -> Tensor:
    probs = law._beta.rsample(shape)
    return midcdf_sample(Binomial(law.total_count, probs, validate_args=False))


def _gamma_poisson(law: Any, shape: torch.Size) -> Tensor:
    return _poisson(law._gamma.rsample(shape))


def _dirichlet_multinomial(law: Any, shape: torch.Size) -> Tensor:
    probs = law._dirichlet.rsample(shape)
    return draw_counts(law.total_count.expand(probs.shape[:-1]), probs)


def _zero_inflated(law: Any, shape: torch.Size) -> Tensor:
    given = {"probs": law.gate} if "gate" in vars(law) else {"logits": law.gate_logits}
    gate = midcdf_sample(Bernoulli(**given, validate_args=False), shape)
    return (1 - gate) * draw_one_by_one(law.base_dist, shape)


STAGES[Skellam] = Stages(_skellam)
STAGES[NegativeBinomial] = Stages(
    _negative_binomial, applies=lambda law: law.total_count.requires_grad
)
STAGES[TransformedDistribution] = Stages(_transformed, jumps=True)  # by more than a neighbour
STAGES[MixtureSameFamily] = Stages(_mixture, jumps=True)
STAGES["pyro.BetaBinomial"] = Stages(_beta_binomial)
STAGES["pyro.GammaPoisson"] = Stages(_gamma_poisson)
STAGES["pyro.DirichletMultinomial"] = Stages(_dirichlet_multinomial, inside=True)
STAGES["pyro.ZeroInflatedDistribution"] = Stages(_zero_inflated, jumps=True)
