r"""Straight-through, second order (ReinMax).

Approximates :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)]` from :math:`f'(z)` at an exact draw.
Write the gradient as a sum over pairs of atoms, and apply the trapezoid rule to each difference:

.. math::
    \nabla E[f] = \sum_{i, j} \pi_j \nabla \pi_i \big(f(c_i) - f(c_j)\big), \qquad
    f(c_i) - f(c_j) \approx \tfrac12 \big(f'(c_i) + f'(c_j)\big)^\top (c_i - c_j).

Collecting terms leaves expectations under one draw :math:`z`, with mean :math:`\mu`:

.. math:: \nabla E[f] \approx E\big[f'(z)^\top \big(\tfrac12 \nabla \mu +
    \tfrac12 (z - \mu) \nabla \log q(z)\big)\big]

which is exact for every cost that is quadratic along each factor; plain straight-through, the term
:math:`f'(z)^\top \nabla \mu`, is exact for linear ones only. The cost must be differentiable, and
sees exact atoms only. A temperature :math:`\tau > 1` flattens the probabilities the second-order
part is built from, :math:`\pi^\tau = \mathrm{softmax}(\log \pi / \tau)` with mean :math:`\mu^\tau`,

.. math:: \tfrac12 (z - \mu^\tau)\, \tau \nabla \log \pi^\tau_z + \tau \nabla \mu^\tau -
    \tfrac12 \nabla \mu

trading that exactness for less variance where the distribution is flat. It is the published
formula, :math:`2 \nabla \pi^1 - \tfrac12 \nabla \pi` with :math:`\pi^1 = \tfrac12 (\text{one-hot} +
\pi^\tau)`, seen through the map from one-hot vectors to atoms.

References:
    | Bridging Discrete and Backpropagation: Straight-Through and Beyond (Liu et al., 2023),
    | https://arxiv.org/abs/2304.08612
"""

__all__ = ["ReinMax"]

import torch
from torch import Tensor

from ..numerics.gumbel_softmax import check_temperature
from .base import Pathwise
from .factors import Factors
from .surrogate import attach


class ReinMax(Pathwise):
    """Straight-through with a second-order correction.

    Args:
        temperature: At least 1 is advised; 1 is exact for quadratic costs.
        samples: The number of draws.
    """

    paper_name = "ReinMax"
    needs = "any distribution, as a table of atoms"
    year = 2023
    always_shown = ("temperature",)
    reference = "Liu et al., Bridging Discrete and Backpropagation: Straight-Through and Beyond"

    def __init__(self, temperature: float = 1.0, samples: int = 1) -> None:
        super().__init__(samples)
        check_temperature(temperature)
        self.temperature = temperature

    def _draw(self, factors: Factors, shape: torch.Size) -> Tensor:
        factors.refuse_learned_atoms()
        law, tau = factors.finite, self.temperature
        index = law.sample_index(shape)  # (S, *batch, *factors)
        z, mean = law.at(index), law.mean
        if tau == 1:
            log_flat, flat_mean = law.logits, mean
        else:
            log_flat = (law.logits / tau).log_softmax(-1)
            flat_mean = law.mix(log_flat.exp())
        log_drawn = log_flat.expand(*index.shape, law.num_atoms).gather(-1, index.unsqueeze(-1))
        log_drawn = log_drawn.reshape(index.shape + (1,) * law.event_dim)
        score = (z - flat_mean.detach()) * log_drawn * (tau / 2)
        return attach(z, score + tau * flat_mean - mean / 2, law.logits)
