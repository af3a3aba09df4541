r"""How a drawn k-subset moves with its logits: the swap rule.

Elements are decided one after the other (:mod:`gengs.laws.subset_table`). Had element t been
decided otherwise, the later ones would have had one more, or one fewer, to give; as :math:`q_s(r)`
grows with r, both futures can be drawn together so that they differ in *exactly one* later element
j (the stochastic covering property of Pemantle & Peres). So the alternative to a draw :math:`z` is
a swap, :math:`z \mp (e_t - e_j)`, and

.. math::
    \frac{\partial E f}{\partial \ell_t} = E\big[ (1 - q_t)\, (f(z) - f(z'))\, 1[z_t = 1] \big]
    = E\big[ q_t\, (f(z') - f(z))\, 1[z_t = 0] \big]

for the logit :math:`\ell_t` of :math:`q_t(r_t)`. Half of each is taken. Three uses:

- **mid** (:func:`move_subset`): the difference of f by the trapezoid rule, with the gradient
  :math:`G = \nabla f(z)` at the one end that was drawn: :math:`\pm (G_t - G_j)`. The other element
  is not drawn: its G is averaged by a scan from the end (:math:`D`). Exact for every cost that is
  quadratic along swaps, one draw, no temperature.
- **differences** (:func:`swap_subset`): the cost itself at a few swaps; unbiased for any cost.
- both together: the error of the trapezoid rule, measured on a few swaps.

The weights are at most ½, whatever the probabilities.

References:
    | SIMPLE: A Gradient Estimator for k-Subset Sampling (Ahmed et al., 2023),
    | https://arxiv.org/abs/2210.01941 (the exact marginals, as a straight-through gradient)
    | Concentration of Lipschitz functionals of determinantal and other strong Rayleigh measures
    | (Pemantle & Peres, 2014), https://arxiv.org/abs/1108.0687 (they differ in one element)
    | Automatic Differentiation of Programs with Discrete Randomness (Arya et al., 2022),
    | https://arxiv.org/abs/2210.08572 (derivatives by coupled alternatives, smoothed)
    | Conditional Monte Carlo: Gradient Estimation and Optimization Applications (Fu & Hu, 1997)
    | (smoothed perturbation analysis)
    | A simple Markov chain for independent Bernoulli variables conditioned on their sum
    | (Heng, Jacob & Ju, 2020), https://arxiv.org/abs/2012.03103 (swaps as moves of a Markov chain)
    | Revisiting Score Function Estimators for k-Subset Sampling (Wijk et al., 2024),
    | https://arxiv.org/abs/2407.16058 (unbiased, for any cost: as RLOO here)
"""

__all__ = ["LogPartition", "Mean", "conditional_logits", "move_subset", "swap_subset"]

from typing import Any

import torch
from torch import Tensor

from ..numerics.autograd_function import AutogradFunction
from ..numerics.once_differentiable import OnceDifferentiable
from .subset_table import at, covariance_product, flow, remaining

_ONCE = (
    "the gradient of a drawn subset (the swap rule) has no derivative of its own; a Subset's "
    "log_prob, mean and entropy can be differentiated twice."
)
_TWICE = "a Subset's mean can be differentiated once, its log_prob and entropy twice, no further."


class LogPartition(AutogradFunction):
    """The log-partition, which was computed with the table; its gradient is the mean."""

    @staticmethod
    def forward(logits: Tensor, q: Tensor, k: Tensor, value: Tensor) -> Tensor:
        return value.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs[:3])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, q, k = ctx.saved_tensors
        return grad * Mean.apply(logits, q, k), None, None, None


class Mean(AutogradFunction):
    """The inclusion probabilities, ``(n, *batch)``; the derivative is the covariance."""

    @staticmethod
    def forward(logits: Tensor, q: Tensor, k: Tensor) -> Tensor:
        start = (torch.arange(q.shape[-1], device=q.device) == k.unsqueeze(-1)).to(q.dtype)
        return flow(q, torch.cat([start.unsqueeze(0), torch.zeros_like(q[1:])]))

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs, output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, q, k, mean = ctx.saved_tensors
        product = covariance_product(q, k, mean.detach(), grad.detach())
        return _not_again(product, _TWICE, grad, logits), None, None


def conditional_logits(logits: Tensor, y: Tensor, q: Tensor, k: Tensor) -> Tensor:
    r"""The logits :math:`\ell_t` of each decision of draws ``y``, ``(n, S, *batch)``.

    Where a decision has no alternative they are infinite, or a huge number; their gradient is not.
    """
    result: Tensor = _ConditionalLogits.apply(logits, y, q, k)
    return result


class _ConditionalLogits(AutogradFunction):
    @staticmethod
    def forward(logits: Tensor, y: Tensor, q: Tensor, k: Tensor) -> Tensor:
        return at(q, remaining(y, k)).logit()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        # logit = θ_t + log E_{t+1}(r - 1) - log E_{t+1}(r)
        logits, y, q, k = ctx.saved_tensors
        r, g = remaining(y, k).movedim(1, -1)[:-1], grad.movedim(1, -1)[:-1]  # (n - 1, *batch, S)
        here = r.clamp(0, q.shape[-1] - 1)
        sources = torch.zeros_like(q[1:]).scatter_add(-1, here, -g)
        sources = sources.scatter_add(-1, (here - 1).clamp_min(0), g)
        found = grad.sum(1) + flow(q, torch.cat([torch.zeros_like(q[:1]), sources]))
        return _not_again(found, _ONCE, grad, logits), None, None, None


def move_subset(y: Tensor, decisions: Tensor, q: Tensor, k: Tensor) -> Tensor:
    """Draws ``y``, ``(n, S, *batch)``, that carry the swap rule's gradient to their ``decisions``.

    Args:
        y: The draws.
        decisions: Their :func:`conditional_logits`.
        q: The table.
        k: How many are taken, ``(*batch)``.
    """
    here, later = _alternatives(y, q, k)
    result: Tensor = _Swap.apply(y, decisions, here, later)
    return result


class _Swap(AutogradFunction):
    @staticmethod
    def forward(y: Tensor, decisions: Tensor, here: Tensor, later: Tensor) -> Tensor:
        return y.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        y, decisions, here, later = ctx.saved_tensors
        grad = grad.to(here.dtype)
        other = torch.zeros_like(later[0] * grad[0])  # (2, S, *batch)
        scanned = []
        for g, chance in zip(grad.flip(0), later.flip(0), strict=True):
            scanned.append(other)  # what lies behind this element
            other = torch.lerp(other, g.expand_as(other), chance)
        behind = torch.stack(scanned[::-1])  # (n, 2, S, *batch)
        other = torch.where(y > 0, behind[:, 0], behind[:, 1])
        slope = (grad - other) * (y - here).abs() / 2
        return None, _not_again(slope, _ONCE, grad, decisions), None, None


def swap_subset(
    y: Tensor, q: Tensor, k: Tensor, swaps: int | None
) -> tuple[Tensor, Tensor, Tensor]:
    r"""A few random swaps of draws ``y``, ``(n, S, *batch)``, for real differences of the cost.

    Elements are picked with a probability that is proportional to the weight that the difference
    has, :math:`|z_t - q_t|`: what is sure to be taken is not picked.

    Args:
        y: The draws.
        q: The table.
        k: How many are taken, ``(*batch)``.
        swaps: How many of them, M; ``None`` for one of each element.

    Returns:
        The swapped draws, ``(n, M, S, *batch)``; the elements that were picked, ``(M, S, *batch)``;
        and the weight of :math:`f(z') - f(z)` in the derivative in their decision's logit.
    """
    n = y.shape[0]
    here, later = _alternatives(y, q, k)
    weight = (y - here).abs()  # (n, S, *batch)
    # the element that gives way is the next one whose coin comes up; the same coins for all t
    coins = torch.rand(later.shape, dtype=later.dtype, device=later.device) < later
    places = torch.arange(n, device=y.device).reshape(-1, *(1,) * (later.dim() - 1))
    following = places.where(coins, n).flip(0).cummin(0).values.flip(0)
    following = torch.cat([following[1:], torch.full_like(following[:1], n)])  # after t
    partner = torch.where(y > 0, following[:, 0], following[:, 1])  # (n, S, *batch)
    weight = weight.masked_fill(partner == n, 0.0)  # rounding: a sure decision has none
    if swaps is None or swaps >= n:
        picked = places.reshape(-1, *(1,) * (y.dim() - 1)).expand_as(y)
        share = weight
    else:
        total = weight.sum(0)
        ladder = weight.cumsum(0).movedim(0, -1)
        level = torch.rand(*total.shape, swaps, dtype=weight.dtype, device=y.device)
        level = level * (ladder[..., -1:] * (1 - 2 * torch.finfo(weight.dtype).eps))
        picked = torch.searchsorted(ladder.contiguous(), level, right=True).movedim(-1, 0)
        picked = picked.clamp_max(n - 1)
        share = (total / swaps).expand_as(picked)
    t, j = picked.unsqueeze(0), partner.gather(0, picked).clamp_max(n - 1).unsqueeze(0)
    before = y.unsqueeze(1).expand(n, *picked.shape)
    there = before.scatter(0, t, 1 - before.gather(0, t))
    there = there.scatter(0, j, 1 - before.gather(0, j))
    possible = (partner.gather(0, picked) < n).unsqueeze(0)
    there = torch.where(possible, there, before)
    sign = 1 - 2 * y.gather(0, picked)  # +1 where the swap takes t in
    return there, picked, share.to(q.dtype) * sign / 2


def _alternatives(y: Tensor, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """The chance of each decision, ``(n, S, *batch)``, and of being the element that gives way.

    The second, ``(n, 2, S, *batch)``, is for an alternative that has one more to take (and takes an
    element that the draw left), and for one that has one fewer (and leaves one that it took).
    """
    r = remaining(y, k)
    here, more, fewer = at(q, r), at(q, r + 1), at(q, r - 1)
    tiny = torch.finfo(q.dtype).tiny
    enters = (more - here) / (1 - here).clamp_min(tiny)
    leaves = (here - fewer) / here.clamp_min(tiny)
    later = torch.stack([enters * (1 - y), leaves * y], 1)
    return here, later.clamp(0, 1)


def _not_again(gradient: Tensor, why: str, *made_of: Tensor) -> Tensor:
    if torch.is_grad_enabled():
        result: Tensor = OnceDifferentiable.apply(gradient, why, *made_of)
        return result
    return gradient
