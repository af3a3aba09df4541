r"""The Gumbel-softmax of a distribution on finitely many atoms: weights, and the values they make.

.. math::
    w = \mathrm{softmax}\big((\log \pi + g) / \tau\big), \qquad
    z = \mathcal{T}(w) = \sum_k w_k c_k = \frac{\sum_k e_k c_k}{\sum_k e_k}, \qquad
    \frac{\partial z}{\partial \log \pi_k} = \frac{w_k (c_k - z)}{\tau}

with :math:`e_k = \exp((\log \pi_k + g_k) / \tau)`. For numbers as atoms this is what a training
step does all day. Composed of torch's operations it goes over the ``(batch, n)`` table a dozen
times and keeps three copies of it for the backward pass. Fused, the noise buffer itself becomes
:math:`e`, the two sums are one matrix product, and :math:`e` is all that is kept: five times as
fast.

For a second derivative the weights must depend on the logits again. They do by
:math:`w = \mathrm{softmax}(\log e + (\log\pi - \mathrm{sg}(\log\pi)) / \tau)`, whose value is the
:math:`w` that was kept (``sg``: stop gradient).
"""

__all__ = ["Temperature", "check_temperature", "relaxed_value", "relaxed_weights", "soften"]

import math
from numbers import Real
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import threshold

from .gumbel import log_exponential
from .tracing import any_of, is_eager, product

Temperature = float | Tensor
"""A number, or a tensor that broadcasts with a law's batch and may be learned."""


def relaxed_value(
    law: Any,  # a gengs.Finite, whose file is above this one
    temperature: Temperature,
    sample_shape: torch.Size = torch.Size(),
    hard: bool = False,
    generator: torch.Generator | None = None,
) -> Tensor:
    """``T(w)``, ``(*sample, *batch, *event)``; ``hard``: the atom that won, moving like it."""
    fixed = isinstance(temperature, (float, int)) and not hard
    shared = not law.event_dim and law.atoms.dim() == 1
    if fixed and shared and not law.atoms.requires_grad and is_eager(law.logits):
        noise = _log_noise(law.logits, sample_shape, generator)
        fused: Tensor = _FusedValue.apply(
            law.logits, noise, law.atoms.to(noise.dtype), float(temperature)
        )
        return fused
    weights = relaxed_weights(law.logits, temperature, sample_shape, generator)
    if not hard:
        mixed: Tensor = law.mix(weights)
        return mixed
    # learned atoms move with the one that was drawn; the weights' gradient is the relaxed one
    value: Tensor = law.mix(weights, fixed_atoms=True)
    atom: Tensor = law.at(weights.detach().argmax(-1))
    return atom + (value - value.detach())  # exactly the atom: value + (atom - value) rounds


def relaxed_weights(
    logits: Tensor,
    temperature: Temperature,
    sample_shape: torch.Size = torch.Size(),
    generator: torch.Generator | None = None,
) -> Tensor:
    """Relaxed one-hot vectors, ``(*sample, *batch, n)``, in ``float32`` or wider."""
    perturbed = logits - _log_noise(logits, sample_shape, generator)
    if isinstance(temperature, float) and temperature > 1e-3:  # nothing overflows
        return (perturbed / temperature).softmax(-1)
    tau = torch.as_tensor(temperature, dtype=logits.dtype, device=logits.device)
    return soften(perturbed, tau.unsqueeze(-1))


def check_temperature(temperature: Temperature) -> None:
    """Raise unless every temperature is positive and finite."""
    if not isinstance(temperature, (Tensor, Real)):
        raise TypeError(f"expected a number or a tensor as `temperature`, but got {temperature!r}.")
    if isinstance(temperature, Tensor):
        good = not any_of(~((temperature > 0) & torch.isfinite(temperature)))
        shown: object = None if good else temperature.detach().flatten()[:3].tolist()
    else:
        good, shown = 0 < temperature < math.inf, temperature
    if not good:
        raise ValueError(f"expected a positive, finite `temperature`, but got {shown}.")


def soften(perturbed: Tensor, temperature: Temperature) -> Tensor:
    """``softmax(perturbed / temperature)``, the largest subtracted first, as 1/τ may overflow."""
    largest = perturbed.detach().amax(-1, keepdim=True)
    return ((perturbed - largest) / temperature).softmax(-1)


def _log_noise(like: Tensor, sample_shape: torch.Size, generator: torch.Generator | None) -> Tensor:
    return log_exponential(sample_shape + like.shape, like.dtype, like.device, generator)


class _FusedValue(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        logits: Tensor,
        log_noise: Tensor,
        atoms: Tensor,
        temperature: float,
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
        threshold(unnormalised, 2 * math.exp(floor), 0.0, inplace=True)
        rows = torch.stack([atoms, torch.ones_like(atoms)])
        weighted, total = product(rows, unnormalised.movedim(-1, 0).reshape(len(atoms), -1))
        value = weighted.div_(total).view(scores.shape[:-1])
        ctx.save_for_backward(logits, unnormalised, total.view_as(value), value, atoms)
        ctx.temperature = temperature
        return value

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, unnormalised, total, value, atoms = ctx.saved_tensors
        if torch.is_grad_enabled():
            return _differentiable_backward(grad, logits, unnormalised, atoms, ctx.temperature)
        scale = grad / (total * ctx.temperature)
        slope = torch.sub(atoms, value.unsqueeze(-1), out=torch.empty_like(unnormalised))
        # not in place: several gradients may come at once, as a batch of vmap
        gradient = slope.mul_(unnormalised) * scale.unsqueeze(-1)
        if gradient.numel() != logits.numel():  # of one sample there is nothing to add
            gradient = gradient.sum_to_size(logits.shape)
        return gradient.view(logits.shape), None, None, None


def _differentiable_backward(
    grad: Tensor, logits: Tensor, unnormalised: Tensor, atoms: Tensor, temperature: float
) -> tuple[Tensor | None, ...]:
    possible = logits > -torch.inf  # -inf - (-inf) must not become NaN
    shift = (logits - logits.detach()).where(possible, 0.0)
    weights = (unnormalised.log() + shift / temperature).softmax(-1)
    deviation = atoms - (weights @ atoms).unsqueeze(-1)
    gradient = grad.unsqueeze(-1) * weights * deviation / temperature
    return gradient.sum_to_size(logits.shape), None, None, None
