r"""Implicit reparameterisation through the mid-CDF: one exact draw that carries a gradient.

Approximates :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)]` with

.. math::
    \sum_d \frac{\partial f}{\partial z_d}(z) \frac{d z_d}{d\theta}, \qquad
    \frac{dz}{d\theta} = -\frac{\partial_\theta F_\mathrm{mid}(z)}{p(z)}, \qquad
    F_\mathrm{mid}(k) = \tfrac12 (F(k) + F(k - 1)).

It needs a cost that is differentiable in the values. The cost sees an exact discrete draw: there is
no temperature, and no gap between training and evaluation. The gradient is exact for costs that are
quadratic along each coordinate, and off by third derivatives otherwise: between neighbours at
distance 1, :math:`f(k+1) - f(k)` differs from the trapezoid rule by :math:`-f'''/12`. The
derivation and the closed forms are in :mod:`gengs.numerics.attach`; vectors (multinomial
counts, one-hot vectors), which have no order and so no CDF, take the trapezoid rule along the
straight line between two outcomes (:mod:`gengs.laws.vectors`).

With ``debias=m`` it is unbiased for any differentiable cost: for m random coordinates the trapezoid
rule's error is measured and added,

.. math::
    \frac{D}{m} \sum_{d} w(z_d) \Big[ f(z + e_d) - f(z)
    - \tfrac{\Delta}{2} \big( \partial_d f(z) + \partial_d f(z + e_d) \big) \Big],

where :math:`z + e_d` has coordinate d at its next atom, :math:`\Delta` away, and :math:`w` is the
weight of the exact finite difference.

Beside an atom of probability 1e-6 it is unbiased on paper only: the weight is a million, once in a
million draws, and no training run sees its mean.

References:
    | Automatic Differentiation of Programs with Discrete Randomness (Arya et al., 2022),
    | https://arxiv.org/abs/2210.08572: for Poisson, binomial, Bernoulli, geometric and ordered
    | categories the slope is their two-sided smoothed stochastic derivative. The derivation by the
    | trapezoid rule with its error, uneven gaps, lumped tails, valleys, the debiased form, second
    | derivatives and the multinomial form are this library's (2026).
    | Implicit Reparameterization Gradients (Figurnov et al., 2018),
    | https://arxiv.org/abs/1805.08498
"""

__all__ = ["MidCDF"]

import torch
from torch import Tensor

from ..gradients.draws import weight_for
from ..gradients.strategies import edges_of, residuals
from ..laws.inflow_weight import check_weight
from ..numerics.tracing import carries_gradient
from .base import Pathwise, positive_integer
from .checked_cost import CheckedCost
from .factors import Factors
from .surrogate import attach


class MidCDF(Pathwise):
    """Exact draws that carry the mid-CDF gradient.

    Args:
        samples: The number of draws.
        debias: For how many random factors of each draw the trapezoid rule's error is measured and
            added, at one more evaluation of the cost and its gradient each; 0 for none.
        antithetic: Whether several draws come in stratified pairs of uniforms ``(u, 1 - u)``, which
            cover the distribution more evenly than independent ones. One draw has no partner: with
            ``samples=1`` it changes nothing, and of an odd number one draw has none.
        weight: For one-hot vectors and tables of vectors, the weight of the noisy half of the
            gradient, from 0 (plain straight-through) to 0.5 (exact for quadratic costs); beyond,
            up to 1, there is more noise and bias again. By default it follows the number of atoms
            (:mod:`gengs.laws.inflow_weight`). With ``debias`` it is 0.5, whose error is measured.
    """

    paper_name = "mid-CDF"
    one_sided = True
    moves_totals = True
    needs = "any distribution"
    year = 2022
    reference = "Arya et al., Automatic Differentiation of Programs with Discrete Randomness, for \
count families and ordered categories; this library for the rest"

    def __init__(
        self,
        samples: int = 1,
        debias: int = 0,
        antithetic: bool = False,
        weight: float | None = None,
    ) -> None:
        super().__init__(samples)
        self.debias = positive_integer(type(self).__name__, "debias", debias, least=0)
        check_weight(type(self).__name__, weight)
        if debias and weight not in (None, 0.5):
            raise ValueError(
                f"MidCDF expects weight=0.5 with `debias`, which measures the error of that rule, "
                f"but got weight={weight!r}."
            )
        self.unbiased = self.handles_steps = debias > 0
        self.antithetic, self.weight = antithetic, weight

    @property
    def evaluations(self) -> int:
        return self.samples * (1 + self.debias)

    def _draw(self, factors: Factors, shape: torch.Size) -> Tensor:
        # with the error measured between neighbours, no atom may be bridged
        law = factors.record
        chosen = weight_for(type(self).__name__, law, self.weight)
        return law.rsample(shape, bridge=not self.debias, antithetic=self.antithetic, **chosen)

    def _estimate(self, cost: CheckedCost, factors: Factors) -> Tensor:
        if not self.debias:
            return super()._estimate(cost, factors)
        law = factors.record
        if law.learned_total:
            raise TypeError(
                "MidCDF(debias=...) measures differences in the values, and knows none in "
                "`total_count`, which requires a gradient here; use MidCDF()."
            )
        z = self._draw(factors, torch.Size([self.samples]))
        f = cost.along(z)
        if not carries_gradient(z):
            return f.mean(0)
        if z.requires_grad:
            (slope,) = torch.autograd.grad(f.sum(), z, retain_graph=True)
        else:  # inside of a vmap autograd does not see the draw
            slope = cost.gradient(z.detach())[1]
        edges = edges_of(law, z.detach(), factors.shape, self.debias, factors.validate)
        there, slope_there = cost.gradient(edges.values)
        return attach(f.mean(0), residuals(edges, f, there, slope, slope_there))
