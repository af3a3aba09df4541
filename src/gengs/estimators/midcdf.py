r"""Implicit reparameterisation through the mid-CDF: one exact draw that carries a gradient.

Approximates :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)]` with

.. math::
    \sum_d \frac{\partial f}{\partial z_d}(z) \frac{d z_d}{d\theta}, \qquad
    \frac{dz}{d\theta} = -\frac{\partial_\theta F_\mathrm{mid}(z)}{p(z)}, \qquad
    F_\mathrm{mid}(k) = \tfrac12 (F(k) + F(k - 1)).

It needs a cost that is differentiable in the values, and atoms that are ordered numbers. The cost
sees an exact discrete draw: there is no temperature, and no gap between training and evaluation.
The gradient is exact for costs that are quadratic along each coordinate, and off by third
derivatives otherwise: between neighbours at distance 1, :math:`f(k+1) - f(k)` differs from the
trapezoid rule by :math:`-f'''/12`. The derivation and the closed forms are in
:mod:`gengs.distributions.midcdf`.

With ``debias=m`` it is unbiased for any differentiable cost: for m random coordinates the trapezoid
rule's error is measured and added,

.. math::
    \frac{D}{m} \sum_{d} w(z_d) \Big[ f(z + e_d) - f(z)
    - \tfrac{\Delta}{2} \big( \partial_d f(z) + \partial_d f(z + e_d) \big) \Big],

where :math:`z + e_d` has coordinate d at its next atom, :math:`\Delta` away, and :math:`w` is the
weight of the exact finite difference.

References:
    | this library (2026); for the continuous case:
    | Implicit Reparameterization Gradients (Figurnov et al., 2018),
    | https://arxiv.org/abs/1805.08498
"""

from __future__ import annotations

__all__ = ["MidCDF"]

import torch
from torch import Tensor

from ..distributions.midcdf import midcdf_sample
from .base import CheckedCost, Estimator, attach
from .latents import Latents
from .neighbours import move_factors


class MidCDF(Estimator):
    """Exact draws that carry the mid-CDF gradient.

    Args:
        samples: The number of draws; several draws from a table are stratified.
        debias: For how many random factors of each draw the trapezoid rule's error is measured and
            added, at one more evaluation of the cost and its gradient each; 0 for none.
    """

    paper_name = "mid-CDF"
    unbiased = False
    needs_cost_gradient = True
    needs = "numbers as atoms"
    year = 2026
    reference = "this library; Figurnov et al. 2018 for continuous laws"

    def __init__(self, samples: int = 1, debias: int = 0) -> None:
        super().__init__(samples)
        if isinstance(debias, bool) or not isinstance(debias, int) or debias < 0:
            raise ValueError(f"MidCDF expects a non-negative integer `debias`, got {debias!r}.")
        self.debias = debias
        if debias:
            self.unbiased = True  # type: ignore[misc]  # a fact of this instance

    @property
    def evaluations(self) -> int:
        return self.samples * (1 + self.debias)

    def _estimate(self, cost: CheckedCost, latents: Latents) -> Tensor:
        shape = torch.Size([self.samples])
        # with the error measured between neighbours, no atom may be bridged
        z = midcdf_sample(latents.law, shape, valley=0.0 if self.debias else None)
        f = cost.along(z)
        if not self.debias or not z.requires_grad:
            return f.mean(0)
        (slope,) = torch.autograd.grad(f.sum(), z, retain_graph=True)
        moves = move_factors(latents, z.detach(), self.debias)
        there, slope_there = cost.gradient(moves.values)
        slope_there = slope_there.reshape(*moves.which.shape, -1)
        slope_there = slope_there.gather(-1, moves.which.unsqueeze(-1)).squeeze(-1)
        trapezoid = moves.step * (moves.pick(slope) + slope_there) / 2
        residual = moves.unfold(there) - f - trapezoid
        return attach(f.mean(0), (residual.detach() * moves.weight).sum(0).mean(0))

    def extra_repr(self) -> str:
        shown = f"debias={self.debias}" if self.debias else ""
        return ", ".join(filter(None, [super().extra_repr(), shown]))
