r"""Exact finite differences: what would the cost be with one count more?

Computes :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)]` one factor at a time, from the cost at the
draw and at a neighbour of it. For the count families, with :math:`\Delta f(z) = f(z + 1) - f(z)`,

==================  ========================================================================
law                 identity
==================  ========================================================================
Poisson             :math:`\partial_\lambda E f = E[\Delta f(Z)]`
Binomial            :math:`\partial_p E f = E[(N - Z) \Delta f(Z)] / (1 - p)`
NegativeBinomial    :math:`\partial_p E f = E[(r + Z) \Delta f(Z)] / (1 - p)`
Geometric           :math:`\partial_p E f = -E[(1 + Z) \Delta f(Z)] / p`
==================  ========================================================================

(for a Binomial with :math:`p > 1/2` its mirror image, which steps down), and for atoms
:math:`c_0 < c_1 < \dots` of any other law, with :math:`F_k = \sum_{j \le k} \pi_j`, by parts,

.. math::
    \nabla E f = \sum_k S_k \big(f(c_{k+1}) - f(c_k)\big), \qquad S_k = -\nabla F_k.

A draw :math:`c_k` goes up with probability :math:`\beta_k = \pi_{k-1} / (\pi_{k-1} + \pi_{k+1})`,
else down: towards the neighbour that is seldom drawn itself. The gap it crosses gets the weight
:math:`S_k / (\pi_k \beta_k + \pi_{k+1} (1 - \beta_{k+1}))`, the inverse of how often it is crossed
from either side. So a rare atom between likely ones makes no huge weight, as :math:`S_k / \pi_k`
would: always going up had 1.4, 3 and 23 times the variance for twelve normal logits of standard
deviation 0.5, 1 and 3.

Unbiased; the cost need not be differentiable, nor defined off the atoms. The gradient of a factor
sees only what its own step changes, so the other factors add no noise of their own; but each factor
takes one more evaluation, or ``coordinates`` random ones do, scaled up.

References:
    | Monte Carlo Gradient Estimation in Machine Learning (Mohamed et al., 2020), section 6 (weak
    | derivatives), https://arxiv.org/abs/1906.10652
"""

__all__ = ["FiniteDifference"]

import torch
from torch import Tensor
from torch.distributions import NegativeBinomial

from .base import Estimator, attach, positive_integer
from .checked_cost import Cost
from .factors import Factors
from ..gradients.strategies import has_family_step, move_factors


class FiniteDifference(Estimator):
    """The exact identity between derivatives and differences, factor by factor.

    Args:
        coordinates: For how many random factors a neighbour is evaluated; all by default, and all
            where there are no more.
        samples: The number of draws.
    """

    paper_name = "Finite differences"
    needs = "numbers as atoms"
    one_sided = True
    year = 2020
    reference = "Mohamed et al., Monte Carlo Gradient Estimation in Machine Learning"

    def __init__(self, coordinates: int | None = None, samples: int = 1) -> None:
        super().__init__(samples)
        if coordinates is not None:
            positive_integer(type(self).__name__, "coordinates", coordinates)
        self.coordinates = coordinates

    @property
    def evaluations(self) -> int:
        """One per draw and one per coordinate; with ``coordinates=None``, for a single factor."""
        return self.samples * (1 + (self.coordinates or 1))

    def _estimate(self, cost: Cost, factors: Factors) -> Tensor:
        z = factors.sample(self.samples)
        moves = move_factors(factors, z, self.coordinates)
        f = cost(z)  # (S, *batch)
        with torch.no_grad():
            difference = cost(moves.values).view_as(moves.step) - f.detach()
        return attach(f.mean(0), (difference * moves.weight).sum(0).mean(0))

    def _moves_off_boundaries(self, factors: Factors) -> bool:
        # without trials a count may leave for any value, and only the next one is a neighbour
        return not isinstance(factors.law, NegativeBinomial) or has_family_step(factors.law)
