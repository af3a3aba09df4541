r"""The mid-CDF gradient of draws from a table: any distribution on ordered numbers.

For atoms :math:`c_0 < \dots < c_{n-1}` with gaps :math:`\Delta_k = c_{k+1} - c_k` and
:math:`F_k = \sum_{j \le k} \pi_j`,

.. math::
    \frac{dz}{d\theta} = -\frac{\Delta_z\, \partial F_z + \Delta_{z-1}\, \partial F_{z-1}}{2 \pi_z}.

In other words: :math:`\partial E f = -\sum_k \partial F_k \int_{c_k}^{c_{k+1}} f'`, where the slope
:math:`f'` is known at the atoms that can be drawn and interpolated linearly between them. The drawn
atom's share of the integral is that of its hat function :math:`h`, which is 1 there and falls to 0
at its neighbours (linear finite elements), so that

.. math::
    \frac{dz}{d\pi_j} = -\frac{1}{\pi_z} \int_{c_j}^{c_{n-1}} h(x)\, dx.

**Impossible atoms and boundaries.** An atom of probability 0 is never drawn, so the hats reach
across it to the next possible one. Beyond the last possible atom the slope is continued as a
constant: at a boundary of the parameters, where one atom is sure, the draw moves as its mean does,
which is the one-sided derivative of every linear cost.

**Valleys.** An atom that is rare while much of the mass lies on both sides would get a huge weight,
:math:`1/\pi_z`, once in :math:`1/\pi_z` draws. An atom with
:math:`\pi_k < 0.01\, \pi_{\max} \min(P(Z \le c_k), P(Z > c_k))` is therefore bridged like an
impossible one, which stays exact for quadratic costs and bounds the weights by
:math:`100 / \pi_{\max}` times the gap. Unimodal distributions have no valleys.

**The lighter side.** As the probabilities sum to one, a constant may be added to the slopes. A draw
beyond the median takes the one that leaves the atoms before it alone, any other the opposite: a
draw from a tail would otherwise divide the rounding errors of the bulk by its own probability.
"""

__all__ = ["NOT_TWICE", "attach_in_table", "draw_from_table", "step_in_table"]

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import threshold

from ..numerics.autograd_function import AutogradFunction
from ..numerics.inverse_cdf import antithetic_uniforms, inverse_cdf_index, pick
from ..numerics.once_differentiable import refuse_derivative
from ..numerics.tails import atoms_first
from ..numerics.tracing import carries_gradient
from ..tables.finite import Finite

VALLEY = 0.01
"""How rare an atom must be, beside the mode and the mass on both sides, to be bridged."""

NOT_TWICE = (
    "the mid-CDF gradient of a table has no second derivative, as an atom's index has none; use "
    "the distribution itself (Poisson, Binomial, ...), whose closed form has one."
)


def draw_from_table(
    law: Finite, shape: torch.Size, *, bridge: bool = True, antithetic: bool = False
) -> Tensor:
    """Draws from a distribution on ordered scalar atoms that carry the mid-CDF gradient.

    Args:
        law: Scalar atoms, in any order, with any gaps.
        shape: The sample shape.
        bridge: Whether valleys are bridged; otherwise impossible atoms only.
        antithetic: Whether draws come in stratified pairs.
    """
    atoms, probs = law.in_order()
    fixed, valley = probs.detach(), VALLEY if bridge else 0.0
    if antithetic:
        uniforms = antithetic_uniforms(shape, law.batch_shape, probs.device)
    else:
        wide = torch.float32 if probs.device.type == "mps" else torch.float64
        uniforms = torch.rand(shape + law.batch_shape, dtype=wide, device=probs.device)
    index = inverse_cdf_index(fixed, shape, uniforms=uniforms)
    z = (
        pick(atoms, index)
        if atoms.dim() > 1
        else atoms.index_select(0, index.reshape(-1)).view(index.shape)
    )
    if not carries_gradient(probs):
        return z
    return _FollowTable.apply(z, probs, index, uniforms > 0.5, atoms.detach(), valley)


def attach_in_table(law: Finite, z: Tensor) -> Tensor:
    """Draws that were made by other means, ``(*sample, *batch)``, moving with ``law``.

    A draw outside of the atoms (of a law that was truncated to them) moves as the nearest one.
    """
    atoms, probs = law.in_order()
    fixed, last = probs.detach(), law.num_atoms - 1
    index = (atoms.detach() < z.unsqueeze(-1)).sum(-1).clamp_max(last)
    nearest = pick(atoms, index)
    beyond = z - nearest.detach()
    if carries_gradient(probs):
        upper = pick(fixed.cumsum(-1) - fixed / 2, index) > 0.5
        nearest = _FollowTable.apply(nearest, probs, index, upper, atoms.detach(), VALLEY)
    return nearest + beyond


class _FollowTable(AutogradFunction):
    """A draw from a table, moving with the probabilities."""

    @staticmethod
    def forward(
        z: Tensor, probs: Tensor, index: Tensor, upper: Tensor, atoms: Tensor, valley: float
    ) -> Tensor:
        return z.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        z, *tensors, ctx.valley = inputs
        ctx.save_for_backward(z.detach(), *tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, probs, index, upper, atoms = ctx.saved_tensors
        area, weight = _slopes(z, probs.detach(), index, upper, atoms, ctx.valley)
        moved = (area * (grad.to(area.dtype) * weight)).movedim(0, -1)
        if moved.numel() != probs.numel():  # of one sample there is nothing to add
            moved = moved.sum_to_size(probs.shape)
        moved = moved.reshape(probs.shape).to(probs.dtype)
        if torch.is_grad_enabled():
            moved = refuse_derivative(moved, NOT_TWICE, probs)
            if ctx.needs_input_grad[0]:  # which atom has the gradient depends on the table
                grad = refuse_derivative(grad, NOT_TWICE, probs)
        # learned atoms move with the one that was drawn
        return grad, moved, None, None, None, None


def _slopes(
    z: Tensor, probs: Tensor, index: Tensor, upper: Tensor, atoms: Tensor, valley: float
) -> tuple[Tensor, Tensor]:
    """``dz / dπ_j`` as areas ``(n, *sample, *batch)`` and a weight ``(*sample, *batch)``."""
    probs, atoms = atoms_first(probs, z.dim()), atoms_first(atoms, z.dim())
    kept = _kept(probs, valley).to(z.dtype)
    away = atoms - z
    # how far the hat reaches: to the nearest atom that is kept, to infinity where there is none
    distance = away / kept
    rise, fall = _least_positive(-distance), _least_positive(distance)
    # the area under the hat from z to each atom: half a parabola, or, where nothing possible lies
    # on that side and the hat is 1 for good, the distance itself
    within = away.clamp(-rise, fall)
    fallen = torch.maximum(within / fall, within / -rise)  # from 0 at the drawn atom to 1
    area = torch.addcmul(within, within, fallen, value=-0.5)
    far = torch.where(upper, rise, -fall) / 2  # so that the heavier side gets nothing
    drawn = index.unsqueeze(0)
    # those bridged do not move
    weight = _at(kept, drawn) / _at(probs, drawn)
    return area.add_(far.masked_fill(far.isinf(), 0.0)), weight


def _at(table: Tensor, index: Tensor) -> Tensor:
    """The entries of ``(n, ...)`` at indices ``(1, *sample, *batch)``."""
    return table.expand(len(table), *index.shape[1:]).gather(0, index).squeeze(0)


def _least_positive(x: Tensor) -> Tensor:
    """The least positive number of each draw, +inf without one; NaN (a zero over zero) is none."""
    return threshold(x, 0.0, torch.inf).amin(0).nan_to_num(torch.inf, torch.inf)


def _kept(probs: Tensor, valley: float) -> Tensor:
    """1 for atoms that are neither impossible nor in a valley, else 0."""
    cdf = probs.cumsum(0)
    sides = torch.minimum(cdf, cdf[-1] - cdf)
    excess = torch.addcmul(probs, sides, probs.amax(0), value=-valley)
    return excess.clamp_min_(0.0).sign_()  # five times as fast as a mask that becomes a number


def step_in_table(law: Finite, z: Tensor) -> tuple[Tensor, Tensor]:
    r"""A neighbour of each draw, and the weight of the difference, with gradient.

    By parts, with :math:`S_k = -\nabla F_k`, :math:`\nabla E f = \sum_k S_k (f(c_{k+1}) - f(c_k))`.
    A draw :math:`c_k` goes up with probability
    :math:`\beta_k = \pi_{k-1} / (\pi_{k-1} + \pi_{k+1})`, else down: towards the neighbour that is
    seldom drawn itself. The gap it crosses gets the weight
    :math:`S_k / (\pi_k \beta_k + \pi_{k+1} (1 - \beta_{k+1}))`, the inverse of how often it is
    crossed from either side. So a rare atom between likely ones makes no huge weight, as
    :math:`S_k / \pi_k` would: always going up had 1.4, 3 and 23 times the variance for twelve
    normal logits of standard deviation 0.5, 1 and 3.
    """
    probs = law.probs
    atoms = law.atoms.expand_as(probs)
    # in rising order, forbidden atoms last: they are nobody's neighbour
    all_atoms = torch.ones((), dtype=torch.bool, device=probs.device)
    allowed = (all_atoms if law.reachable is None else law.reachable).expand_as(probs)
    order = atoms.masked_fill(~allowed, torch.inf).argsort(dim=-1, stable=True)
    atoms, probs, allowed = (x.gather(-1, order) for x in (atoms, probs, allowed))
    pi = probs.detach().double()
    edge = torch.zeros_like(pi[..., :1])
    below, above = torch.cat([edge, pi[..., :-1]], -1), torch.cat([pi[..., 1:], edge], -1)
    last = ~torch.cat([allowed[..., 1:], edge.bool()], -1)
    first = torch.arange(pi.shape[-1], device=pi.device) == 0
    up = torch.where(below + above > 0, below / (below + above), 0.5)
    up = up.masked_fill(first, 1.0).masked_fill(last, 0.0)  # (*batch, *factors, n)
    crossed = pi[..., :-1] * up[..., :-1] + pi[..., 1:] * (1 - up[..., 1:])
    # minus the lower tail is the upper tail, up to a constant; the smaller one rounds less
    lower = probs.cumsum(-1)[..., :-1]
    upper = probs.flip(-1).cumsum(-1).flip(-1)[..., 1:]
    tail = torch.where(lower.detach() <= 0.5, -lower, upper)
    inverse = (1 / crossed).masked_fill(crossed == 0, 0.0)
    weight = torch.cat([tail, torch.zeros_like(probs[..., :1])], -1)  # gap n - 1 goes nowhere
    inverse = torch.cat([inverse, edge], -1).to(probs.dtype)

    law_index, found = law.index_of(z)  # (S, *batch, *factors)
    shape = (*law_index.shape, pi.shape[-1])
    k = order.argsort(-1).expand(shape).gather(-1, law_index.unsqueeze(-1))
    goes_up = torch.rand(k.shape, dtype=pi.dtype, device=pi.device) < up.expand(shape).gather(-1, k)
    alone = (first & last).expand(shape).gather(-1, k)
    alone = alone | ~found.unsqueeze(-1)  # a draw beyond a truncation stays where it is
    gap = k.where(goes_up, k - 1).clamp_min(0)
    to = torch.where(goes_up, k + 1, k - 1).where(~alone, k)
    sign = torch.where(goes_up, 1.0, -1.0).masked_fill(alone, 0.0).to(probs.dtype)
    step = weight.expand(shape).gather(-1, gap) * (sign * inverse.expand(shape).gather(-1, gap))
    there = atoms.expand(shape).gather(-1, to).where(~alone, z.unsqueeze(-1))
    return there.squeeze(-1), step.squeeze(-1)
