r"""How a drawn order moves with its scores: neighbours change places.

Items arrive at times :math:`T_i \sim \mathrm{Exp}(w_i)`, :math:`w = e^\theta`; their order is a
Plackett-Luce draw. When :math:`\theta_b` grows, b arrives earlier, and what it passes is its
neighbour in the order. With :math:`W_m = \sum_{l \ge m} w_{\pi_l}` (what is left before the m-th
arrival) and :math:`\tau_m = \sum_{l \le m} 1/W_l` (its expected time, given the order), neighbours
:math:`a = \pi_m` and :math:`b = \pi_{m+1}` change places at the rate

.. math:: r_m = W_{m+1}\, \tau_m

per unit of :math:`\theta_b`, or of :math:`-\theta_a`. Where only the first k places count, the rest
has no order: each item i beyond them takes the place of :math:`a = \pi_k` at the rate
:math:`w_i \tau_k`. Then, exactly,

.. math::
    \nabla E f = E \sum_m \tfrac12 r_m \big(f(\pi \text{ with } m, m + 1 \text{ swapped}) - f(\pi)
    \big) (e_b - e_a),

as every swap is seen from both of its ends. The trapezoid rule takes the difference from the
gradient of f (exact for costs that are quadratic along swaps): one draw, a sort and two cumulative
sums. :func:`swap_coordinates` gives it to every face of the order alike: it returns a zero for each
swap that can happen, whose derivative in :math:`\theta` is half the rate. A face adds, to its
value, each zero times what that swap would change in it; autograd does the rest.

Sums and cumulative sums of weights relative to their sum are taken in ``float64``.

References:
    | Automatic Differentiation of Programs with Discrete Randomness (Arya et al., 2022),
    | https://arxiv.org/abs/2210.08572 (derivatives by coupled alternatives, smoothed)
    | Smoothed (Conditional) Perturbation Analysis of Discrete Event Dynamical Systems (Gong & Ho,
    | 1987), https://doi.org/10.1109/TAC.1987.1104464 (simulations whose events change their order)
    | Computationally Efficient Optimization of Plackett-Luce Ranking Models for Relevance and
    | Fairness (Oosterhuis, 2021), https://arxiv.org/abs/2105.00855 (PL-Rank, a score function)
    | Learning-to-Rank at the Speed of Sampling (Oosterhuis, 2022), https://arxiv.org/abs/2204.10872
    | (PL-Rank-3, the same at the cost of a sort)
    | Low-variance Black-box Gradient Estimates for the Plackett-Luce Distribution (Gadetsky et al.,
    | 2020), https://arxiv.org/abs/1911.10036 (control variates)
"""

__all__ = [
    "least",
    "not_twice",
    "ranks_of",
    "swap_coordinates",
    "swap_orders",
    "swap_rates",
    "weights_of",
]

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from ..numerics.autograd_function import AutogradFunction
from ..numerics.once_differentiable import OnceDifferentiable

_ONCE = (
    "the gradient of a drawn order (the swap rule) has no derivative of its own; a PlackettLuce's "
    "log_prob can be differentiated twice."
)


def swap_rates(logits: Tensor, order: Tensor) -> tuple[Tensor, Tensor | None]:
    """How often neighbours change places, and how often items beyond the first k enter.

    Args:
        logits: The scores, ``(*batch, n)``; ``-inf`` for padding, which stays at the end.
        order: The items in their places, ``(*sample, *batch, k)``.

    Returns:
        Rates ``(*sample, *batch, k - 1)`` and ``(*sample, *batch, n)``, 0 for the items that are
        among the first k; ``None`` where all n are.
    """
    weights = weights_of(logits, order)
    # in place, as memory is what long lists wait for
    left = weights.gather(-1, order.flip(-1)).cumsum(-1)
    outside = None
    if order.shape[-1] < logits.shape[-1]:
        outside = weights.scatter(-1, order, 0.0)
        left.add_(outside.sum(-1, keepdim=True))
    left = left.flip(-1)
    time = left.clamp_min(least(left)).reciprocal_().cumsum(-1)
    between = left[..., 1:].mul_(time[..., :-1])
    return between, None if outside is None else outside * time[..., -1:]


def weights_of(logits: Tensor, order: Tensor) -> Tensor:
    """The weights relative to the largest one, ``(*sample, *batch, n)``; 0 for padding."""
    wide = torch.float32 if logits.device.type == "mps" else torch.float64
    scores = logits.detach().to(wide)
    weights = (scores - scores.amax(-1, keepdim=True)).exp_()
    return weights.expand(*order.shape[:-1], logits.shape[-1])


def least(weights: Tensor) -> float:
    """Less than any weight: below it there is only padding."""
    return float(torch.finfo(weights.dtype).tiny ** 0.9)


def slope(
    logits: Tensor, order: Tensor, between: Tensor, enters: Tensor, *made_of: Tensor
) -> Tensor:
    """The gradient in the scores, from what each swap changes in the cost.

    Args:
        logits: The scores, ``(*batch, n)``.
        order: The items in their places, ``(*sample, *batch, k)``.
        between: What each swap of neighbours changes, ``(*sample, *batch, k - 1)``.
        enters: What each item changes that takes the k-th place, ``(*sample, *batch, n)``; not
            looked at where all n have places.
        made_of: What the changes were made of, for the word against second derivatives.
    """
    rates, outside = swap_rates(logits, order)
    at_places = pad(rates * between, (1, 1)).diff(dim=-1).mul_(-0.5)
    if outside is None:
        found = at_places  # of which nothing is left: all items have places
    else:
        found = outside * (enters / 2)
        at_places = at_places - pad(found.sum(-1, keepdim=True), (order.shape[-1] - 1, 0))
    found = found.scatter(-1, order, at_places.to(found.dtype)).to(logits.dtype)
    return not_twice(found.sum_to_size(logits.shape), logits, *made_of)


def not_twice(gradient: Tensor, *made_of: Tensor) -> Tensor:
    """The gradient, which raises where it is differentiated in what it was made of."""
    if torch.is_grad_enabled():
        result: Tensor = OnceDifferentiable.apply(gradient, _ONCE, *made_of)
        return result
    return gradient


def swap_coordinates(logits: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
    """A zero for each pair of neighbours, ``(…, k - 1)``, and for each item that may enter.

    Their gradient moves the scores at half the rate of the swap. The second, ``(…, n)``, stands for
    an item beyond the first k that takes the k-th place.
    """
    between, enters = _SwapCoordinates.apply(logits, order)
    return between, enters


class _SwapCoordinates(AutogradFunction):
    @staticmethod
    def forward(logits: Tensor, order: Tensor) -> tuple[Tensor, Tensor]:
        enters = torch.zeros_like(logits).expand(*order.shape[:-1], -1).clone()
        return torch.zeros_like(order[..., 1:], dtype=logits.dtype), enters

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: tuple[Tensor, ...]) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        logits, order = ctx.saved_tensors
        return slope(logits, order, *grads, *grads), None


def ranks_of(logits: Tensor, order: Tensor) -> Tensor:
    """The place of each item, ``(…, n)``, from 0; k for those beyond the first k."""
    result: Tensor = _Ranks.apply(logits, order)
    return result


class _Ranks(AutogradFunction):
    """The face that is asked for most, in as few passes as it takes."""

    @staticmethod
    def forward(logits: Tensor, order: Tensor) -> Tensor:
        k = order.shape[-1]
        places = torch.arange(k, device=order.device, dtype=logits.dtype)
        shape = (*order.shape[:-1], logits.shape[-1])
        ranks = torch.full(shape, float(k), device=order.device, dtype=logits.dtype)
        return ranks.scatter(-1, order, places.expand(order.shape))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, order = ctx.saved_tensors
        placed = grad.gather(-1, order)
        between = placed.diff(dim=-1).neg_()
        enters = placed[..., -1:] - grad if order.shape[-1] < logits.shape[-1] else grad
        return slope(logits, order, between, enters, grad), None


def swap_orders(logits: Tensor, order: Tensor, number: int | None) -> tuple[Tensor, Tensor]:
    """Random swaps of drawn orders, for exact differences of the cost.

    Swaps are picked with probabilities proportional to their rates.

    Args:
        logits: The scores, ``(*batch, n)``.
        order: The items in their places, ``(*sample, *batch, k)``.
        number: How many swaps, M; ``None`` for all of them.

    Returns:
        M orders of each, ``(M, *sample, *batch, k)``, and weights ``(M, *sample, *batch)`` of the
        differences, zeros whose gradient is the weight.
    """
    n, k = logits.shape[-1], order.shape[-1]
    between, outside = swap_rates(logits, order)
    rates = between if outside is None else torch.cat([between, outside], -1)
    many = rates.shape[-1]
    if number is None or number >= many:
        picked = torch.arange(many, device=order.device)
        picked = picked.expand(*order.shape[:-1], many)
        share = rates / 2
    else:
        ladder = rates.cumsum(-1)
        level = torch.rand(*order.shape[:-1], number, dtype=rates.dtype, device=order.device)
        level = level * (ladder[..., -1:] * (1 - 2 * torch.finfo(rates.dtype).eps))
        picked = torch.searchsorted(ladder, level, right=True).clamp_max(many - 1)
        share = (ladder[..., -1:] / (2 * number)).expand_as(level)
    picked, share = picked.movedim(-1, 0).unsqueeze(-1), share.movedim(-1, 0)  # (M, …, 1)
    wide = order.expand(picked.shape[0], *order.shape)
    neighbours = picked < k - 1
    place = picked.clamp_max(k - 1)
    passed = wide.gather(-1, place)
    following = wide.gather(-1, (place + 1).clamp_max(k - 1))
    enters = torch.where(neighbours, following, (picked - (k - 1)).clamp_min(0))
    there = wide.scatter(-1, place, enters)
    behind = torch.where(neighbours, passed, there.gather(-1, (place + 1).clamp_max(k - 1)))
    there = there.scatter(-1, (place + 1).clamp_max(k - 1), behind)
    scores = logits.expand(*passed.shape[:-1], n)
    pull = (scores.gather(-1, enters) - scores.gather(-1, passed)).squeeze(-1)
    pull = torch.where(share > 0, pull, 0.0)  # padding has none
    return there, share.to(logits.dtype) * (pull - pull.detach())
