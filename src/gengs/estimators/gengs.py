r"""The paper's estimator: backpropagate through a relaxed draw (GenGS).

Approximates :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)]` with the pathwise gradient

.. math::
    \nabla_\theta f(\mathcal{T}(w)), \qquad
    w = \mathrm{softmax}\big((\log \pi_\theta + g) / \tau\big), \qquad
    \mathcal{T}(w) = \sum_k w_k c_k

of a distribution on finitely many atoms: the paper's Algorithm 1, with
:math:`w \sim \mathrm{GS}(\pi, \tau)` and the :math:`\mathcal{T}` of its eq. (3). It needs a cost
that is differentiable, and defined between the atoms. It is biased: it differentiates the relaxed
expectation, exact only as :math:`\tau \to 0`, where its variance grows without bound. For
Poisson(3) and :math:`f = (z - 2.6)^2` the bias is -22 % at :math:`\tau = 0.5`.

The paper's variants are choices of the distribution and of one switch:

- *GenGS*: ``q = truncate(Poisson(rate), n)``;
- *GenGS NP* (Algorithm 2): ``q = truncate(Poisson(rate), mass=0.999)``;
- *GenGS Imp* (Algorithm 3): ``q = Finite(atoms, logits=network(x))``;
- *GenGS ST*: ``GenGS(hard=True)``, discrete forward, relaxed backward.

References:
    | Generalized Gumbel-Softmax Gradient Estimator for Generic Discrete Random Variables
    | (Joo et al., 2020), https://arxiv.org/abs/2003.01847
"""

__all__ = ["GenGS"]

import torch
from torch import Tensor

from ..numerics.gumbel_softmax import check_temperature
from .base import Pathwise
from .factors import Factors
from .temperature import Schedule, temperature_now


class GenGS(Pathwise):
    """The pathwise gradient of a relaxed draw.

    Args:
        temperature: A number, a tensor that broadcasts with the factors' distribution, or a
            :class:`~gengs.temperature.Schedule`, read at each call (step it yourself).
        samples: The number of draws.
        hard: Straight-through: the cost sees the atom that won, an exact draw.
    """

    paper_name = "GenGS"
    needs = "any distribution, as a table of atoms"
    year = 2020
    always_shown = ("temperature",)
    reference = "Joo et al., Generalized Gumbel-Softmax Gradient Estimator"

    def __init__(
        self, temperature: float | Tensor | Schedule = 0.5, samples: int = 1, hard: bool = False
    ) -> None:
        super().__init__(samples)
        check_temperature(temperature_now(temperature))
        self.temperature, self.hard = temperature, hard

    def _draw(self, factors: Factors, shape: torch.Size) -> Tensor:
        return factors.record.relax(temperature_now(self.temperature), shape, self.hard)
