r"""The score-function estimator with a relaxed draw as control variate (REBAR).

Approximates :math:`\nabla_\theta E_{b \sim q_\theta}[f(b)]` with

.. math::
    [f(b) - \eta f(\sigma_\tau(\tilde z))] \nabla \log q(b)
    + \eta \nabla f(\sigma_\tau(z)) - \eta \nabla f(\sigma_\tau(\tilde z)),

:math:`z = \log \pi + g`, :math:`b = \arg\max z`, :math:`\tilde z \sim p(z \mid b)`, and
:math:`\sigma_\tau(z)` the relaxed value :math:`\mathcal{T}(\mathrm{softmax}(z / \tau))`. The noise
of :math:`\tilde z` is coupled to that of :math:`z` so that the two agree in value, which saves one
evaluation of the cost and, where the temperature is learned, variance as well:
:mod:`~gengs.estimators.control_variate` has the derivation.

Unbiased for any :math:`\eta` and :math:`\tau`; both are learned, on the gradient of the squared
estimate. It needs a cost that is twice differentiable, and defined between the atoms. The variance
is small where the relaxed cost follows the discrete one, at low temperatures; but there the
pathwise term's own noise grows, and :math:`\tau` is the trade.

**Costs with steps.** The control variate follows the slope of the cost between the atoms. A cost
that rounds or compares has none there, the two relaxed terms no longer cancel, and the gradient is
biased (by a third, for a step at one half). Where the slope is zero at all draws there is a
warning; a cost that is smooth here and has a step there goes unnoticed. RLOO and UnOrd ask for no
slope.

References:
    | REBAR: Low-variance, unbiased gradient estimates for discrete latent variable models
    | (Tucker et al., 2017), https://arxiv.org/abs/1703.07370
"""

from __future__ import annotations

__all__ = ["REBAR"]

import math
from functools import partial
from typing import ClassVar

import torch
from torch import Tensor, nn

from ..distributions.gumbel_softmax import check_temperature
from .base import Estimator
from .checked_cost import CheckedCost
from .control_variate import relaxed_cost, with_control
from .factors import Factors


class REBAR(Estimator):
    r"""The score-function estimator with the relaxed cost as control variate.

    Args:
        temperature: The first :math:`\tau`.
        eta: The first scale :math:`\eta` of the control variate.
        samples: The number of draws.
    """

    paper_name = "REBAR"
    unbiased = True
    needs_cost_gradient = True
    learns = True
    vmaps = compiles = False
    always_shown: ClassVar[tuple[str, ...]] = ("temperature", "eta")
    needs = "any law, as a table of atoms"
    year = 2017
    reference = "Tucker et al., REBAR: Low-variance, unbiased gradient estimates"

    def __init__(self, temperature: float = 0.5, eta: float = 1.0, samples: int = 1) -> None:
        super().__init__(samples)
        check_temperature(temperature)
        self.log_temperature = nn.Parameter(torch.tensor(math.log(temperature)))
        self.eta = nn.Parameter(torch.tensor(float(eta)))

    @property
    def evaluations(self) -> int:
        return 2 * self.samples

    @property
    def temperature(self) -> Tensor:
        r"""The temperature :math:`\tau` that has been learned so far."""
        return self.log_temperature.exp()

    def _estimate(self, cost: CheckedCost, factors: Factors) -> Tensor:
        control = partial(self._control, cost, factors)
        return with_control(cost, factors, self.samples, control, self.parameters())

    def _control(
        self, cost: CheckedCost, factors: Factors, z: Tensor, keep_graph: bool
    ) -> tuple[Tensor, Tensor]:
        """The control variate, and its gradient with respect to ``z``."""
        f, slope = relaxed_cost(cost, factors.finite, z, self.temperature, keep_graph)
        eta = self.eta.to(z.dtype)
        return eta * f, eta * slope
