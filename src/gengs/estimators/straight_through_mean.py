r"""Plain straight-through: an exact draw that moves as its mean moves.

Approximates :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)]` with

.. math:: \sum_d \frac{\partial f}{\partial z_d}(z)\, \frac{\partial}{\partial\theta} E[z_d],

the same derivative for every draw. It needs a cost that is differentiable in the values and a
distribution with a differentiable mean. It is exact for costs that are linear along each coordinate
only: where the cost is curved, a draw must move more the further up it lies, which is what
:mod:`gengs.estimators.midcdf` adds. Its variance is the smallest of all, as nothing is divided by a
probability.

References:
    | Estimating or Propagating Gradients Through Stochastic Neurons (Bengio et al., 2013),
    | https://arxiv.org/abs/1308.3432
"""

__all__ = ["StraightThroughMean"]

import torch
from torch import Tensor

from .base import Pathwise
from .factors import Factors
from .surrogate import attach


class StraightThroughMean(Pathwise):
    """Exact draws with the mean's derivative.

    Args:
        samples: The number of draws.
    """

    paper_name = "ST"
    one_sided = True
    moves_totals = True
    needs = "any distribution with a mean"
    year = 2013
    reference = "Bengio et al., Estimating or Propagating Gradients Through Stochastic Neurons"

    def _draw(self, factors: Factors, shape: torch.Size) -> Tensor:
        factors.refuse_learned_atoms()
        return attach(factors.sample(shape), factors.mean)
