r"""Part of the sum exactly, the rest by one draw: Rao-Blackwellised score functions.

Approximate :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)] = \sum_z q(z) f(z) \nabla \log q(z)` with

.. math::
    \sum_{z \in C} q(z) f(z) \nabla \log q(z) +
    \Big(1 - \sum_{z \in C} q(z)\Big) f(z') \nabla \log q(z')

for a set :math:`C` of :math:`k - 1` joint outcomes of the latent vector, and :math:`z'` drawn from
:math:`q` outside of it:

- *DetRB*: the :math:`k - 1` most likely ones;
- *StoRB*: the first :math:`k - 1` of :math:`k` draws without replacement; the last is :math:`z'`.

The starred forms (``baseline=True``) subtract from every :math:`f` that of another, independent
draw. All are unbiased and ask nothing of the cost. They shine where few outcomes carry most of the
mass: DetRB removes all their noise. Where every outcome is rare, as in a long latent vector, both
come down to REINFORCE with a single draw; prefer UnOrd there, which uses all :math:`k` costs.
A distribution with infinitely many values is truncated first (1e-6 of the mass).

References:
    | Rao-Blackwellized Stochastic Gradients for Discrete Distributions (Liu et al., 2019),
    | https://arxiv.org/abs/1810.04777
    | Estimating Gradients for Discrete Random Variables by Sampling without Replacement
    | (Kool et al., 2020), https://arxiv.org/abs/2002.06043
"""

__all__ = ["DetRB", "StoRB"]

from abc import abstractmethod

import torch
from torch import Tensor

from .base import Estimator
from .checked_cost import Cost
from .factors import Factors
from .surrogate import attach
from .without_replacement import (
    joint_log_prob,
    most_likely,
    sample_outside,
    sample_without_replacement,
)


class _SumAndSample(Estimator):
    """Shared by both: weights of joint outcomes that sum to one, and their surrogate."""

    needs = "any distribution, as a table of atoms"
    always_shown = ("samples",)

    def __init__(self, samples: int = 4, baseline: bool = False) -> None:
        super().__init__(samples)
        self.baseline = baseline

    @property
    def evaluations(self) -> int:
        return self.samples + self.baseline

    def _estimate(self, cost: Cost, factors: Factors) -> Tensor:
        law = factors.finite
        table = law.logits.reshape(*factors.batch, factors.shape.numel(), law.num_atoms)
        index, weight = self._choose(table.detach())  # (k, *batch, F), (k, *batch)
        # far below rounding, and subnormal numbers would slow a network's backward pass 50 times
        weight = weight.masked_fill(weight < torch.finfo(weight.dtype).eps ** 3, 0.0)
        f = cost(law.at(index.reshape(len(index), *law.batch_shape)))
        centred = f.detach()
        if self.baseline:
            with torch.no_grad():
                centred = centred - cost(law.sample(torch.Size([1])))
        surrogate = (weight * centred * joint_log_prob(table, index)).sum(0)
        return attach((weight * f).sum(0), surrogate)

    @abstractmethod
    def _choose(self, table: Tensor) -> tuple[Tensor, Tensor]:
        """The outcomes to evaluate and their weights."""


class DetRB(_SumAndSample):
    """The most likely joint outcomes exactly, the rest by one draw from it.

    Args:
        samples: How many outcomes are evaluated, k above: the k - 1 most likely and one other.
        baseline: Subtract the cost of one more draw (DetRB*).
    """

    paper_name = "DetRB"
    year = 2019
    reference = "Liu et al., Rao-Blackwellized Stochastic Gradients for Discrete Distributions"

    def _choose(self, table: Tensor) -> tuple[Tensor, Tensor]:
        top = most_likely(table, self.samples - 1)
        other, log_mass = sample_outside(table, top.index)
        weight = top.log_prob.exp().where(top.possible, 0.0)
        return (
            torch.cat([top.index, other.unsqueeze(0)]),
            torch.cat([weight, log_mass.exp().unsqueeze(0)]),
        )


class StoRB(_SumAndSample):
    """Draws without replacement: all but the last exactly, the last for the rest.

    Args:
        samples: How many outcomes are drawn and evaluated, k above.
        baseline: Subtract the cost of one more draw (StoRB*).
    """

    paper_name = "StoRB"
    year = 2020
    reference = "Kool et al., Estimating Gradients by Sampling without Replacement"

    def _choose(self, table: Tensor) -> tuple[Tensor, Tensor]:
        drawn = sample_without_replacement(table, self.samples)
        weight = drawn.log_prob.exp().where(drawn.possible, 0.0)
        if len(weight) == self.samples:  # else there are fewer outcomes, and all are summed
            rest = (1 - weight[:-1].sum(0)).clamp_min(0).where(drawn.possible[-1], 0.0)
            weight = torch.cat([weight[:-1], rest.unsqueeze(0)])
        return drawn.index, weight
