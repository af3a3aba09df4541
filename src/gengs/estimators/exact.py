r"""Enumeration: the expectation itself, and its gradient.

Computes, for a latent vector of :math:`F` independent factors with :math:`n` atoms each,

.. math::
    E_{z \sim q_\theta}[f(z)] = \sum_z q_\theta(z) f(z), \qquad
    \nabla_\theta E_{z \sim q_\theta}[f(z)] = \sum_z f(z) \nabla q_\theta(z)

over all :math:`n^F` joint outcomes. Nothing is estimated: bias and variance are zero, and the cost
need not be differentiable. It is the oracle that the other estimators are measured against, and the
best choice wherever the outcomes are few. A law with infinitely many values is truncated first, so
that the sum is exact for the truncated law. Outcomes of probability zero are not shown to the cost.

References:
    | De ratiociniis in ludo aleae (Huygens, 1657)
"""

from __future__ import annotations

__all__ = ["Exact"]

import torch
from torch import Tensor

from ..distributions.truncate import as_finite
from ..distributions.validation import inspectable
from .base import Cost, Estimator
from .latents import Latents

_MOST_OUTCOMES, _MOST_EVALUATIONS = 2**20, 2**24


class Exact(Estimator):
    """The exact expectation and gradient, by summing over every joint outcome.

    Args:
        tolerance: How much mass of a law with infinitely many values may lie outside the atoms.
    """

    paper_name = "Exact"
    unbiased = True
    needs_cost_gradient = False
    needs = "few joint outcomes"
    year = 1657
    reference = "Huygens, De ratiociniis in ludo aleae (the expectation)"

    def __init__(self, tolerance: float = 1e-9) -> None:
        super().__init__()
        if not 0 < tolerance < 1:
            raise ValueError(f"Exact expects 0 < `tolerance` < 1, but got {tolerance}.")
        self.tolerance = tolerance

    @property
    def evaluations(self) -> int:
        """None is a draw: the cost is evaluated once for every joint outcome of the law."""
        return 0

    def _evaluate(self, cost: Cost, latents: Latents) -> Tensor:
        return self._estimate(cost, latents)

    def _estimate(self, cost: Cost, latents: Latents) -> Tensor:
        law = as_finite(latents.law, self.tolerance)
        factors, n = latents.factors.numel(), law.num_atoms
        if n**factors > _MOST_OUTCOMES:
            raise ValueError(
                f"Exact sums over {n} atoms in each of {factors} factors, {n}**{factors} joint "
                f"outcomes, but takes at most 2**20; use UnOrd, RLOO or another estimator."
            )
        evaluations = n**factors * latents.batch.numel()
        # a large batch of laws with few outcomes is what a vectorised cost is for
        if n**factors > 2**10 and evaluations > _MOST_EVALUATIONS:
            raise ValueError(
                f"Exact would evaluate the cost at {evaluations:,} points, {n}**{factors} joint "
                f"outcomes for each of {latents.batch.numel()}, but takes at most 2**24; use fewer "
                "at a time, or UnOrd, RLOO or another estimator."
            )
        index = torch.cartesian_prod(*[torch.arange(n, device=law.logits.device)] * factors)
        index = index.reshape(-1, *(1,) * len(latents.batch), *latents.factors)
        index = index.expand(-1, *law.batch_shape)  # (n^F, *batch, *factors)
        impossible = law.logits == -torch.inf
        if (
            not inspectable(impossible) or impossible.any()
        ):  # the cost may not be defined there: it sees the mode, with weight 0
            mode = law.logits.argmax(-1, keepdim=True)
            allowed = torch.arange(n, device=mode.device).where(~impossible, mode)
            shown = allowed.expand(len(index), *allowed.shape).gather(-1, index.unsqueeze(-1))
            f = cost(law._atoms_at(shown.squeeze(-1)))
        else:
            f = cost(law._atoms_at(index))  # (n^F, *batch)
        table = law.logits.reshape(*latents.batch, factors, n)
        log_q = table.new_zeros(*latents.batch, 1)
        for factor in table.unbind(-2):  # the last factor runs fastest, as in cartesian_prod
            log_q = (log_q.unsqueeze(-1) + factor.unsqueeze(-2)).flatten(-2)
        return (log_q.exp().movedim(-1, 0) * f).sum(0)

    def extra_repr(self) -> str:
        return f"tolerance={self.tolerance}"
