r"""The score-function estimator with a learned control variate (RELAX).

Approximates :math:`\nabla_\theta E_{b \sim q_\theta}[f(b)]` with

.. math::
    [f(b) - c(\tilde z)] \nabla \log q(b) + \nabla c(z) - \nabla c(\tilde z), \qquad
    c(z) = \eta f(\sigma_\tau(z)) + r_\rho(z),

:math:`z = \log \pi + g`, :math:`b = \arg\max z`, :math:`\tilde z \sim p(z \mid b)`, the noise of
:math:`\tilde z` coupled to that of :math:`z` (:mod:`~gengs.estimators.rebar` has the
derivation). The small network :math:`r_\rho` sees :math:`\mathrm{softmax}(z)` of all factors at
once: bounded, and all that :math:`z` says about the draw, as the height of its maximum does not
depend on which atom won. It starts at zero, so that RELAX starts as REBAR.

Unbiased for any :math:`\eta, \tau, \rho`, all learned on the gradient of the squared estimate. It
needs a cost that is twice differentiable, and defined between the atoms. With a good
:math:`r_\rho` the variance falls below REBAR's; one that is trained too fast adds variance instead.

What is said of costs with steps in :mod:`gengs.estimators.rebar` holds here, too.

References:
    | Backpropagation through the Void (Grathwohl et al., 2018), https://arxiv.org/abs/1711.00123
"""

__all__ = ["RELAX"]

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn.functional import pad

from .checked_cost import CheckedCost
from .factors import Factors
from .rebar import REBAR


class RELAX(REBAR):
    r"""The score-function estimator with the relaxed cost and a network as control variate.

    The network takes its width from the factors and atoms of the first call: use one RELAX for
    each latent layer.

    Args:
        temperature: The first :math:`\tau`.
        eta: The first scale :math:`\eta` of the relaxed cost.
        hidden: The width of the network :math:`r_\rho`.
        samples: The number of draws.
    """

    paper_name = "RELAX"
    always_shown: ClassVar[tuple[str, ...]] = ()
    year = 2018
    reference = "Grathwohl et al., Backpropagation through the Void"

    def __init__(
        self, temperature: float = 0.5, eta: float = 1.0, hidden: int = 32, samples: int = 1
    ) -> None:
        super().__init__(temperature, eta, samples)
        self.hidden = hidden
        # lazy: its parameters can be handed to an optimiser before the first law is seen
        self.first: nn.Linear = nn.LazyLinear(hidden)
        self.last = nn.Linear(hidden, 1)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    def _control(
        self, cost: CheckedCost, factors: Factors, z: Tensor, keep_graph: bool
    ) -> tuple[Tensor, Tensor]:
        f, slope_f = super()._control(cost, factors, z, keep_graph)
        weights = z.softmax(-1)
        first = self.first
        if not isinstance(first, nn.LazyLinear):
            many = factors.shape.numel()
            if first.in_features % many:
                raise ValueError(
                    f"RELAX has a network of {first.in_features} inputs, which {many} factors "
                    "do not share evenly; use one RELAX for each latent layer."
                )
            weights = _fit(weights, first.in_features // many)
        inputs = weights.flatten(1 + len(factors.batch))  # (S, *batch, factors · n)
        hidden = first(inputs.to(self.last.weight.dtype)).tanh()
        r = self.last(hidden).squeeze(-1).to(z.dtype)  # (S, *batch)
        (slope,) = torch.autograd.grad(r.sum(), z, create_graph=keep_graph, retain_graph=True)
        return f + r, slope_f + slope


def _fit(weights: Tensor, n: int) -> Tensor:
    """Weights on ``n`` atoms: absent ones weigh nothing, those beyond are lumped on the last.

    A distribution that is truncated by its mass has more atoms at one step and fewer at the next.
    """
    if weights.shape[-1] <= n:
        return pad(weights, (0, n - weights.shape[-1]))
    return torch.cat([weights[..., : n - 1], weights[..., n - 1 :].sum(-1, keepdim=True)], -1)
