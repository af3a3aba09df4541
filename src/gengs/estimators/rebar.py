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

References:
    | REBAR: Low-variance, unbiased gradient estimates for discrete latent variable models
    | (Tucker et al., 2017), https://arxiv.org/abs/1703.07370
"""

from __future__ import annotations

__all__ = ["REBAR"]

import math

import torch
from torch import Tensor, nn

from ..distributions.relaxed import check_temperature
from .base import CheckedCost, Estimator
from .control_variate import relaxed_cost, with_control
from .latents import Latents


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

    def extra_repr(self) -> str:
        temperature, eta = self.temperature.item(), self.eta.item()
        learned = f"temperature={temperature:.3g}, eta={eta:.3g}"
        return ", ".join(filter(None, [learned, super().extra_repr()]))

    @property
    def temperature(self) -> Tensor:
        r"""The temperature :math:`\tau` that has been learned so far."""
        return self.log_temperature.exp()

    def _estimate(self, cost: CheckedCost, latents: Latents) -> Tensor:
        def control(z: Tensor, keep_graph: bool) -> tuple[Tensor, Tensor]:
            f, slope = relaxed_cost(cost, latents.finite, z, self.temperature, keep_graph)
            eta = self.eta.to(z.dtype)
            return eta * f, eta * slope

        return with_control(cost, latents, self.samples, control, self.parameters())
