r"""The relaxed value of scalar atoms, with few passes over memory.

.. math:: z = \mathcal{T}(y) = \frac{\sum_k e_k c_k}{\sum_k e_k}, \qquad
    e_k = \exp\big((\log \pi_k + g_k) / \tau\big), \qquad
    \frac{\partial z}{\partial \log \pi_k} = \frac{y_k (c_k - z)}{\tau}

Composed of torch's operations this goes over the ``(batch, n)`` table a dozen times and keeps three
copies of it for the backward pass. Here the noise buffer itself becomes :math:`e`, the two sums are
one matrix product, and :math:`e` is all that is kept.

For a second derivative the weights must depend on the logits again. They do by
:math:`y = \mathrm{softmax}(\log e + (\log\pi - \mathrm{sg}(\log\pi)) / \tau)`, whose value is the
:math:`y` that was kept (``sg``: stop gradient).
"""

from __future__ import annotations

__all__ = ["fused_value"]

import math
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import threshold

from .sums import product, sum_to


def fused_value(
    logits: Tensor, log_noise: Tensor, atoms: Tensor, temperature: float, all_possible: bool = False
) -> Tensor:
    """``T(softmax((logits - log_noise) / temperature))``; the noise buffer is used up.

    Args:
        logits: Log-probabilities, ``(*batch, n)``.
        log_noise: Logarithms of exponential noise, ``(*sample, *batch, n)``.
        atoms: Numbers shared by the batch, ``(n,)``, without gradient.
        temperature: A number.
        all_possible: Whether no logit is ``-inf``.
    """
    return _FusedValue.apply(logits, log_noise, atoms, temperature, all_possible)


class _FusedValue(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        log_noise: Tensor,
        atoms: Tensor,
        temperature: float,
        all_possible: bool,
    ) -> Tensor:
        scores = torch.sub(logits, log_noise, out=log_noise)
        # Scores lie below 23 (the largest Gumbel of 31 bits), the winner's above -log n - 3:
        # divided by a mild temperature they neither over- nor underflow; no need to find the max.
        if temperature < 0.3 or len(atoms) > 1000:
            scores.sub_(scores.amax(-1, keepdim=True))
        scores.div_(temperature)  # divide: 1/temperature would overflow for the smallest ones
        # Weights below 1e-26 round away in the sums; as subnormal numbers (or on exp's way to 0)
        # they would make each operation ten times slower. Impossible atoms get exactly 0.
        floor = 0.7 * math.log(torch.finfo(scores.dtype).tiny)
        unnormalised = scores.clamp_min_(floor).exp_()
        if not all_possible:
            threshold(unnormalised, 2 * math.exp(floor), 0.0, inplace=True)
        rows = torch.stack([atoms, torch.ones_like(atoms)])
        weighted, total = product(rows, unnormalised.view(-1, len(atoms)).t())
        value = weighted.div_(total)
        ctx.save_for_backward(logits, unnormalised, total, value, rows)
        ctx.temperature = temperature
        return value.view(scores.shape[:-1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, unnormalised, total, value, rows = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable_backward(grad, logits, unnormalised, rows[0], ctx.temperature)
        # scale · (atoms - value) is one matrix product of rank two
        scale = grad.reshape(-1) / (total * ctx.temperature)
        factors = torch.stack([scale, -scale * value])
        gradient = product(factors.t(), rows).view_as(unnormalised).mul_(unnormalised)
        return sum_to(gradient, logits.shape), None, None, None, None


def _differentiable_backward(
    grad: Tensor, logits: Tensor, unnormalised: Tensor, atoms: Tensor, temperature: float
) -> tuple[Tensor | None, ...]:
    possible = logits > -torch.inf  # -inf - (-inf) must not become NaN
    shift = (logits - logits.detach()).where(possible, 0.0)
    weights = (unnormalised.log() + shift / temperature).softmax(-1)
    deviation = atoms - product(weights, atoms).unsqueeze(-1)
    gradient = grad.unsqueeze(-1) * weights * deviation / temperature
    return sum_to(gradient, logits.shape), None, None, None, None
