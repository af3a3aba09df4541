r"""Enumeration: the expectation itself, and its gradient.

Computes, for a latent vector of :math:`F` independent factors with :math:`n` atoms each,

.. math::
    E_{z \sim q_\theta}[f(z)] = \sum_z q_\theta(z) f(z), \qquad
    \nabla_\theta E_{z \sim q_\theta}[f(z)] = \sum_z f(z) \nabla q_\theta(z)

over all :math:`n^F` joint outcomes. Nothing is estimated: bias and variance are zero, and the cost
need not be differentiable. It is the oracle that the other estimators are measured against, and the
best choice wherever the outcomes are few. A distribution with infinitely many values is truncated
first, so that the sum is exact for the truncated distribution. Forbidden outcomes are not shown to
the cost. At a boundary of the parameters (a rate of 0, a probability of 0 or 1) the gradient is the
one-sided derivative, for which the cost is evaluated at the adjacent value.

References:
    | De ratiociniis in ludo aleae (Huygens, 1657)
"""

__all__ = ["Exact"]

import torch
from torch import Tensor

from .base import Estimator
from .checked_cost import Cost
from .factors import Factors

_MOST_OUTCOMES, _MOST_EVALUATIONS = 2**20, 2**24


class Exact(Estimator):
    """The exact expectation and gradient, by summing over every joint outcome.

    Args:
        tolerance: How much mass of an infinite distribution may lie outside the atoms.
    """

    paper_name = "Exact"
    needs = "few joint outcomes"
    one_sided = True
    always_shown = ("tolerance",)
    year = 1657
    reference = "Huygens, De ratiociniis in ludo aleae (the expectation)"

    def __init__(self, tolerance: float = 1e-9) -> None:
        super().__init__()
        if not 0 < tolerance < 1:
            raise ValueError(f"Exact expects 0 < `tolerance` < 1, but got {tolerance}.")
        self.tolerance = tolerance

    @property
    def evaluations(self) -> int:
        """None is a draw: the cost is evaluated once for every joint outcome."""
        return 0

    def _evaluate(self, cost: Cost, factors: Factors) -> Tensor:
        return self._estimate(cost, factors)

    def _estimate(self, cost: Cost, factors: Factors) -> Tensor:
        law = factors.record.table(self.tolerance)
        dimensions, n = factors.shape.numel(), law.num_atoms
        if n**dimensions > _MOST_OUTCOMES:
            raise ValueError(
                f"Exact sums over {n} atoms in each of {dimensions} factors, {n}**{dimensions} "
                f"joint outcomes, but takes at most 2**20; use UnOrd, RLOO or another estimator."
            )
        evaluations = n**dimensions * factors.batch.numel()
        # a large batch of laws with few outcomes is what a vectorised cost is for
        if n**dimensions > 2**10 and evaluations > _MOST_EVALUATIONS:
            raise ValueError(
                f"Exact would evaluate the cost at {evaluations:,} points, {n}**{dimensions} joint "
                f"outcomes for each of {factors.batch.numel()}, but takes at most 2**24; use fewer "
                "at a time, or UnOrd, RLOO or another estimator."
            )
        index = torch.cartesian_prod(*[torch.arange(n, device=law.logits.device)] * dimensions)
        index = index.reshape(-1, *(1,) * len(factors.batch), *factors.shape)
        index = index.expand(-1, *law.batch_shape)  # (n^F, *batch, *factors)
        if law.reachable is not None:
            # the cost may not be defined at a forbidden atom: it sees the mode, with weight 0
            mode = law.logits.argmax(-1, keepdim=True)
            shown = torch.arange(n, device=mode.device).where(law.reachable, mode)
            index = shown.expand(*index.shape, n).gather(-1, index.unsqueeze(-1)).squeeze(-1)
        f = cost(law.at(index))  # (n^F, *batch)
        table = law.probs.reshape(*factors.batch, dimensions, n)
        q = table.new_ones(*factors.batch, 1)
        for factor in table.unbind(-2):  # the last factor runs fastest, as in cartesian_prod
            q = (q.unsqueeze(-1) * factor.unsqueeze(-2)).flatten(-2)
        return (q.movedim(-1, 0) * f).sum(0)
