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

(for a Binomial with :math:`p > 1/2` its mirror image, which steps down), for atoms in an order by
parts (:mod:`gengs.laws.ordered_table`), and for vectors by moving one ball to another box, or to an
independent draw of the atom (:mod:`gengs.laws.boxes`, :mod:`gengs.laws.finite_law`).

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

from ..gradients.strategies import differences, edges_of
from .base import Estimator, positive_integer
from .checked_cost import Cost
from .factors import Factors
from .surrogate import attach


class FiniteDifference(Estimator):
    """The exact identity between derivatives and differences, factor by factor.

    Args:
        coordinates: For how many random factors a neighbour is evaluated; all by default, and all
            where there are no more.
        samples: The number of draws.
    """

    paper_name = "Finite differences"
    needs = "any distribution"
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
        law = factors.record
        edges = edges_of(law, z, factors.shape, self.coordinates, factors.validate)
        f = cost(z)  # (S, *batch)
        with torch.no_grad():
            there = cost(edges.values)
        return attach(f.mean(0), differences(edges, f, there))

    def _moves_off_boundaries(self, factors: Factors) -> bool:
        return factors.record.one_sided_differences
