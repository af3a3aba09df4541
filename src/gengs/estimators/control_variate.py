r"""A relaxed control variate of the score function, its noise coupled to the draw's.

With perturbed logits :math:`z = \log \pi + g`, the draw :math:`b = \arg\max z` and any
differentiable control :math:`c(z)`,

.. math::
    \hat g = [f(b) - c(\tilde z)] \nabla \log q(b) + \nabla c(z) - \nabla c(\tilde z), \qquad
    \tilde z \sim p(z \mid b)

is unbiased: the control's score gradient is taken out and its pathwise gradient put back, where
:math:`\tilde z` is reparameterised given :math:`b`, by
:math:`\tilde z_b = -\log E_b`, :math:`\tilde z_i = -\log(E_i / \pi_i + E_b)`. Only the law of
:math:`\tilde z` matters, so it may share its noise with :math:`z`: choose the :math:`E` that make
:math:`\tilde z = z`. Then :math:`c` is evaluated once, and of the two pathwise terms there remains
the difference of their derivatives with respect to :math:`\log \pi_i`, which is
:math:`1 - (1 - e^{z_i - z_b}) = e^{z_i - z_b}` (for :math:`i = b`, :math:`1 - 0`):

.. math::
    \hat g_i = [f(b) - c(z)] \mathbf{1}_{i = b} + e^{z_i - z_b} \frac{\partial c}{\partial z_i}(z)

projected onto the directions in which :math:`\pi` stays normalised. The control's own parameters
go down the gradient of :math:`\hat g^2`: the mean does not depend on them, so that is the gradient
of the variance. It reaches those parameters only, never the model's or the cost's, which learns
from :math:`f(b)`.
"""

from __future__ import annotations

__all__ = ["Control", "relaxed_cost", "with_control"]

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn

from ..distributions.finite import Finite
from ..distributions.gumbel import log_exponential
from ..distributions.gumbel_softmax import soften
from ..distributions.tracing import is_eager
from .base import attach, train_beside
from .checked_cost import CheckedCost
from .factors import Factors

Control = Callable[[Tensor, bool], tuple[Tensor, Tensor]]
"""Perturbed logits ``(S, *batch, *factors, n)``, and whether to keep the graph, to the control's
values ``(S, *batch)`` and their gradients with respect to the perturbed logits."""

# The logit of an impossible atom: -inf times the zero gradient of its weight would be NaN.
_NEVER = -1e30


def with_control(
    cost: CheckedCost,
    factors: Factors,
    samples: int,
    control: Control,
    parameters: Iterable[nn.Parameter],
) -> Tensor:
    """An estimate of the expectation whose gradient is that of the controlled score function.

    Args:
        cost: The cost.
        factors: The law.
        samples: The number of draws.
        control: The control variate.
        parameters: The control's own parameters; those that require a gradient are trained.
    """
    law = factors.finite
    if not is_eager(law.logits):
        raise RuntimeError(
            f"{factors.owner} differentiates its own gradient, which torch.compile and torch.func "
            "do not allow inside of them; call it outside, or use RLOO or UnOrd."
        )
    logits = law.logits.where(law.logits > -torch.inf, _NEVER)
    table = logits.detach()  # (*batch, *factors, n)
    noise = -log_exponential(torch.Size((samples, *table.shape)), table.dtype, table.device)
    z = (table + noise).requires_grad_()
    highest, winner = z.detach().max(-1, keepdim=True)
    f = cost(law.at(winner.squeeze(-1)))  # (S, *batch)

    own = [parameter for parameter in parameters if parameter.requires_grad]
    c, slope = control(z, bool(own))
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
    gradients = torch.autograd.grad(objective, own, allow_unused=True)
    # linear in the parameters, so that the backward pass hands them these gradients
    loss = sum(
        ((p * g_p).sum() for p, g_p in zip(own, gradients, strict=True) if g_p is not None),
        start=torch.zeros((), device=f.device),
    )
    return train_beside(result, loss.to(f.dtype))


def relaxed_cost(
    cost: CheckedCost, law: Finite, z: Tensor, temperature: Tensor, keep_graph: bool
) -> tuple[Tensor, Tensor]:
    r"""The cost of the relaxed draw, :math:`f(\sigma_\tau(z))`, and its gradient in :math:`z`."""
    value = law.mix(soften(z, temperature.to(z.dtype)))
    f, slope = cost.gradient(value, create_graph=keep_graph)
    (slope,) = torch.autograd.grad(value, z, slope, create_graph=keep_graph)
    return f, slope
