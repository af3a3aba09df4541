r"""The mid-CDF gradient of draws from a table: any law on ordered numbers.

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
:math:`100 / \pi_{\max}` times the gap. Unimodal laws have no valleys.

**The lighter side.** As the probabilities sum to one, a constant may be added to the slopes. A draw
beyond the median takes the one that leaves the atoms before it alone, any other the opposite: a
draw from a tail would otherwise divide the rounding errors of the bulk by its own probability.
"""

__all__ = ["NOT_TWICE", "VALLEY", "midcdf_from_table", "move_in_table", "stratified_uniforms"]

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import threshold

from ..tables.finite import Finite
from ..numerics.inverse_cdf import inverse_cdf_index, pick
from ..numerics.tails import atoms_first
from ..numerics.once_differentiable import OnceDifferentiable

VALLEY = 0.01
"""How rare an atom must be, beside the mode and the mass on both sides, to be bridged."""

NOT_TWICE = (
    "the mid-CDF gradient of a table has no second derivative, as an atom's index has none; use "
    "the law itself (Poisson, Binomial, ...), whose closed form has one."
)


def midcdf_from_table(law: Finite, shape: torch.Size, valley: float = VALLEY) -> Tensor:
    """Draws from a law on ordered scalar atoms that carry the mid-CDF gradient.

    Args:
        law: Scalar atoms, in any order, with any gaps.
        shape: The sample shape.
        valley: The factor 0.01 above; 0 bridges impossible atoms only.
    """
    atoms, probs = _in_order(law)
    fixed = probs.detach()
    uniforms = stratified_uniforms(shape, law.batch_shape, probs.device)
    index = inverse_cdf_index(fixed, shape, uniforms=uniforms)
    z = (
        pick(atoms, index)
        if atoms.dim() > 1
        else atoms.index_select(0, index.reshape(-1)).view(index.shape)
    )
    if not probs.requires_grad:
        return z
    return _FollowTable.apply(z, probs, index, uniforms > 0.5, atoms.detach(), valley)


def stratified_uniforms(shape: torch.Size, batch: torch.Size, device: torch.device) -> Tensor:
    """Uniforms of shape ``shape + batch``, stratified over ``shape`` for each batch element.

    They cover [0, 1) more evenly than independent ones: each coordinate gets its own Latin
    hypercube, in antithetic pairs (u, 1 - u). Every single uniform is uniform, so every draw made
    from one is exact, while averages vary less.
    """
    wide = torch.float32 if device.type == "mps" else torch.float64
    draws = shape.numel()
    if draws <= 1:
        return torch.rand(shape + batch, dtype=wide, device=device)
    pairs = (draws + 1) // 2
    # a random order of the strata for each element: argsort of uniforms
    strata = torch.rand((pairs, *batch), device=device).argsort(0)
    u = (strata + torch.rand((pairs, *batch), dtype=wide, device=device)) / pairs
    both = torch.cat([u, 1 - u]).clamp_max(1 - torch.finfo(wide).eps)
    return both[:draws].reshape(shape + batch)


def move_in_table(law: Finite, z: Tensor) -> Tensor:
    """Draws that were made by other means, ``(*sample, *batch)``, moving with ``law``.

    A draw outside of the atoms (of a law that was truncated to them) moves as the nearest one.
    """
    atoms, probs = _in_order(law)
    fixed, last = probs.detach(), law.num_atoms - 1
    index = (atoms.detach() < z.unsqueeze(-1)).sum(-1).clamp_max(last)
    nearest = pick(atoms, index)
    beyond = z - nearest.detach()
    if probs.requires_grad:
        upper = pick(fixed.cumsum(-1) - fixed / 2, index) > 0.5
        nearest = _FollowTable.apply(nearest, probs, index, upper, atoms.detach(), VALLEY)
    return nearest + beyond


def _in_order(law: Finite) -> tuple[Tensor, Tensor]:
    """The atoms of a law from the least on, and their probabilities."""
    if law.event_dim:
        raise TypeError(
            "the mid-CDF gradient needs atoms that are ordered numbers, but these are vectors "
            f"(event_dim={law.event_dim}); GenGS, ReinMax and the score-function estimators do "
            "without an order."
        )
    atoms, probs = law.atoms, law.probs
    if law.certificate is not None:  # a truncation's atoms are in order
        return atoms, probs
    atoms, order = atoms.sort(-1)
    if order.dim() == 1:
        return atoms, probs.movedim(-1, 0).index_select(0, order).movedim(0, -1)
    return atoms, probs.gather(-1, order.expand_as(probs))


class _FollowTable(torch.autograd.Function):
    """A draw from a table, moving with the probabilities."""

    generate_vmap_rule = True

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
        moved = (area * (grad.detach().to(area.dtype) * weight)).movedim(0, -1)
        if moved.numel() != probs.numel():  # of one sample there is nothing to add
            moved = moved.sum_to_size(probs.shape)
        moved = moved.reshape(probs.shape).to(probs.dtype)
        if torch.is_grad_enabled():
            moved = OnceDifferentiable.apply(moved, NOT_TWICE, grad, probs)
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
