r"""The score-function estimator with a relaxed draw as control variate (REBAR).

Approximates :math:`\nabla_\theta E_{b \sim q_\theta}[f(b)]` with

.. math::
    \hat g = [f(b) - c(\tilde z)] \nabla \log q(b) + \nabla c(z) - \nabla c(\tilde z), \qquad
    c(z) = \eta f(\sigma_\tau(z)),

where :math:`z = \log \pi + g` are perturbed logits, :math:`b = \arg\max z` is the draw,
:math:`\tilde z \sim p(z \mid b)`, and :math:`\sigma_\tau(z)` is the relaxed value
:math:`\mathcal{T}(\mathrm{softmax}(z / \tau))`. For any differentiable control :math:`c` that is
unbiased: the control's score gradient is taken out and its pathwise gradient put back, where
:math:`\tilde z` is reparameterised given :math:`b`, by :math:`\tilde z_b = -\log E_b`,
:math:`\tilde z_i = -\log(E_i / \pi_i + E_b)`. Only the distribution of :math:`\tilde z` matters, so
it may share its noise with :math:`z`: choose the :math:`E` that make :math:`\tilde z = z`. Then
:math:`c` is evaluated once, which saves one evaluation of the cost and, where the temperature is
learned, variance as well; and of the two pathwise terms there remains the difference of their
derivatives with respect to :math:`\log \pi_i`, which is :math:`1 - (1 - e^{z_i - z_b}) = e^{z_i -
z_b}` (for :math:`i = b`, :math:`1 - 0`):

.. math::
    \hat g_i = [f(b) - c(z)] \mathbf{1}_{i = b} + e^{z_i - z_b} \frac{\partial c}{\partial z_i}(z)

projected onto the directions in which :math:`\pi` stays normalised. The control's own parameters
:math:`\eta` and :math:`\tau` go down the gradient of :math:`\hat g^2`: the mean does not depend on
them, so that is the gradient of the variance. It reaches those parameters only, never the model's
or the cost's, which learns from :math:`f(b)`.

It needs a cost that is twice differentiable, and defined between the atoms. The variance
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

__all__ = ["REBAR"]

import math
from typing import ClassVar

import torch
from torch import Tensor, nn

from ..numerics.gumbel import log_exponential
from ..numerics.gumbel_softmax import check_temperature, soften
from ..numerics.tracing import is_eager
from .base import Estimator, add_auxiliary_loss
from .checked_cost import CheckedCost
from .factors import Factors
from .surrogate import attach

# The logit of an impossible atom: -inf times the zero gradient of its weight would be NaN.
_NEVER = -1e30


class REBAR(Estimator):
    r"""The score-function estimator with the relaxed cost as control variate.

    Args:
        temperature: The first :math:`\tau`.
        eta: The first scale :math:`\eta` of the control variate.
        samples: The number of draws.
    """

    paper_name = "REBAR"
    needs_cost_gradient = True
    learns = True
    vmaps = compiles = handles_steps = False
    always_shown: ClassVar[tuple[str, ...]] = ("temperature", "eta")
    needs = "any distribution, as a table of atoms"
    year = 2017
    reference = "Tucker et al., REBAR: Low-variance, unbiased gradient estimates"

    def __init__(self, temperature: float = 0.5, eta: float = 1.0, samples: int = 1) -> None:
        super().__init__(samples)
        check_temperature(temperature)
        for name, value in (("temperature", temperature), ("eta", eta)):
            if isinstance(value, Tensor):
                raise TypeError(
                    f"{type(self).__name__} learns `{name}` itself, from a number to begin with, "
                    "but got a tensor."
                )
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
        law = factors.finite
        if not is_eager(law.logits):
            raise RuntimeError(
                f"{factors.owner} differentiates its own gradient, which torch.compile and "
                "torch.func do not allow inside of them; call it outside, or use RLOO or UnOrd."
            )
        logits = law.logits.where(law.logits > -torch.inf, _NEVER)
        table = logits.detach()  # (*batch, *factors, n)
        shape = torch.Size((self.samples, *table.shape))
        z = (table - log_exponential(shape, table.dtype, table.device)).requires_grad_()
        highest, winner = z.detach().max(-1, keepdim=True)
        f = cost(law.at(winner.squeeze(-1)))  # (S, *batch)

        own = [parameter for parameter in self.parameters() if parameter.requires_grad]
        c, slope = self._control(cost, factors, z, bool(own))
        signal = f.detach() - c
        signal = signal.reshape(signal.shape + (1,) * (table.dim() - len(factors.batch)))
        pathwise = (z.detach() - highest).exp() * slope
        g = pathwise.scatter_add(-1, winner, signal.expand_as(winner).to(pathwise.dtype)).mean(0)
        g = g - table.exp() * g.sum(-1, keepdim=True)

        surrogate = logits * g.detach()
        result = attach(f.mean(0), factors.sum_factors(surrogate.sum(-1)))
        if not own:
            return result
        objective = g.square().sum() / max(1, factors.batch.numel())
        gradients = torch.autograd.grad(objective, own, materialize_grads=True)
        # linear in the parameters, so that the backward pass hands them these gradients
        losses = [(p * g_p).sum() for p, g_p in zip(own, gradients, strict=True)]
        return add_auxiliary_loss(result, torch.stack(losses).sum().to(f.dtype))

    def _control(
        self, cost: CheckedCost, factors: Factors, z: Tensor, keep_graph: bool
    ) -> tuple[Tensor, Tensor]:
        """The control variate ``(S, *batch)``, and its gradient with respect to ``z``."""

        def relaxed(z: Tensor) -> Tensor:
            return factors.finite.mix(soften(z, self.temperature.to(z.dtype)))

        def redraw() -> Tensor:
            table = factors.finite.logits.detach()
            return relaxed(table - log_exponential(z.shape, table.dtype, table.device))

        value = relaxed(z)
        f, slope = cost.gradient(value, keep_graph, redraw)
        (slope,) = torch.autograd.grad(value, z, slope, create_graph=keep_graph)
        eta = self.eta.to(z.dtype)
        return eta * f, eta * slope
