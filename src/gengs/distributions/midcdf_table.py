r"""The mid-CDF gradient of draws from a table: any law on ordered numbers.

For atoms :math:`c_0 < \dots < c_{n-1}` with gaps :math:`\Delta_k = c_{k+1} - c_k` and
:math:`F_k = \sum_{j \le k} \pi_j`,

.. math::
    \frac{dz}{d\theta} = -\frac{\Delta_z\, \partial F_z + \Delta_{z-1}\, \partial F_{z-1}}{2 \pi_z}.

**Valleys.** An interior atom much rarer than atoms on both its sides would get a huge weight,
:math:`1/\pi_z`, once in :math:`1/\pi_z` draws. An atom below 1 % of the largest atom on either side
is therefore bridged: the derivative of the cost is interpolated between its neighbours (linear
finite elements on the atoms that are not bridged), which stays exact for quadratic costs and bounds
the weights by 100 n times the gap. Unimodal laws have no valleys and are not touched.
"""

from __future__ import annotations

__all__ = ["VALLEY", "midcdf_from_table"]

from typing import Any

import torch
from torch import Tensor

from .finite import Finite
from .inverse import inverse_cdf_index
from .stratified import stratified_uniforms
from .validation import inspectable

VALLEY = 0.01
"""An atom below this fraction of the largest atoms on both sides is bridged."""


def midcdf_from_table(law: Finite, shape: torch.Size, valley: float = VALLEY) -> Tensor:
    """Draws from a law on ordered scalar atoms that carry the mid-CDF gradient.

    Args:
        law: Scalar atoms, in any order, with any gaps.
        shape: The sample shape.
        valley: Atoms below this fraction of the largest on both sides are bridged; 0 for none.
    """
    if law.event_dim:
        raise TypeError(
            "the mid-CDF gradient needs atoms that are ordered numbers, but these are vectors "
            f"(event_dim={law.event_dim}); GenGS, ReinMax and the score-function estimators do "
            "without an order."
        )
    atoms, logits = _sorted(law)
    probs = logits.detach().exp()
    uniforms = stratified_uniforms(shape, law.batch_shape, probs.device)
    index = inverse_cdf_index(probs, shape, uniforms=uniforms).unsqueeze(-1)
    z = atoms.expand(*index.shape[:-1], atoms.shape[-1]).gather(-1, index).squeeze(-1)
    kept = _kept(probs, valley)
    if valley == 0 or (inspectable(kept) and bool(kept.all())):
        kept = torch.ones_like(kept[:0])  # nothing is bridged: no need to look for neighbours
    return _FollowTable.apply(z, logits, index, atoms.detach(), kept)


def _sorted(law: Finite) -> tuple[Tensor, Tensor]:
    atoms, logits = law.atoms, law.logits
    if inspectable(atoms) and bool((atoms.diff(dim=-1) > 0).all()):
        return atoms, logits
    atoms, order = atoms.expand_as(logits).sort(-1)
    return atoms, logits.gather(-1, order)


class _FollowTable(torch.autograd.Function):
    r"""A draw from a table, moving with the log-probabilities.

    The derivative of the CDF at gap k gets the weight :math:`w_k` (half a gap, or the integral of
    a hat), so that :math:`dz / d\log\pi_j = -(\pi_j / \pi_z) \sum_{k \ge j} w_k`.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor, logits: Tensor, index: Tensor, atoms: Tensor, kept: Tensor) -> Tensor:
        return z.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, logits, index, atoms, kept = ctx.saved_tensors
        table = logits.detach().expand(*index.shape[:-1], -1)
        ratio = (table - table.gather(-1, index)).exp()  # pi_j / pi_z
        if kept.numel():
            weights = _to_kept_atoms(atoms, kept, z, index)
        else:
            weights = _to_neighbours(atoms, index)
        beyond = weights.flip(-1).cumsum(-1).flip(-1)  # sum over k >= j; nothing for the last j
        moved = -grad.detach().unsqueeze(-1) * ratio[..., :-1] * beyond.to(grad.dtype)
        moved = torch.nn.functional.pad(moved, (0, 1)).sum_to_size(logits.shape)
        # learned atoms move with the one that was drawn
        gradient = _NotTwice.apply(moved.to(logits.dtype), grad, logits)
        return grad, gradient, None, None, None


def _to_neighbours(atoms: Tensor, index: Tensor) -> Tensor:
    """Half the gap on either side of each drawn atom, ``(..., n - 1)``, a number for each gap."""
    gap = torch.arange(atoms.shape[-1] - 1, device=atoms.device)
    beside = (gap == index) | (gap == index - 1)
    return beside * atoms.diff(dim=-1) / 2


def _to_kept_atoms(atoms: Tensor, kept: Tensor, z: Tensor, index: Tensor) -> Tensor:
    """The integral over each gap of the drawn atom's hat function, on the grid of kept atoms."""
    at = z.unsqueeze(-1)
    previous = atoms.where(kept & (atoms < at), -torch.inf).amax(-1, keepdim=True)
    following = atoms.where(kept & (atoms > at), torch.inf).amin(-1, keepdim=True)
    middle = (atoms[..., 1:] + atoms[..., :-1]) / 2
    rise = ((middle - previous) / (at - previous)).where(previous > -torch.inf, 0.0)
    fall = ((following - middle) / (following - at)).where(following < torch.inf, 0.0)
    hat = torch.where(middle < at, rise, fall).clamp_min(0.0)
    drawn_is_kept = kept.expand(*index.shape[:-1], -1).gather(-1, index)
    return (hat * atoms.diff(dim=-1)).where(drawn_is_kept, 0.0)


def _kept(probs: Tensor, valley: float) -> Tensor:
    """Which atoms are not in a valley: not rare beside the largest atoms on both sides."""
    nothing = torch.zeros_like(probs[..., :1])
    left = torch.cat([nothing, probs[..., :-1].cummax(-1).values], -1)
    right = torch.cat([probs[..., 1:].flip(-1).cummax(-1).values.flip(-1), nothing], -1)
    return probs >= valley * torch.minimum(left, right)


class _NotTwice(torch.autograd.Function):
    """The first argument; differentiating it in any of the others raises."""

    generate_vmap_rule = True

    @staticmethod
    def forward(gradient: Tensor, grad: Tensor, logits: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError(
            "the mid-CDF gradient of a table has no second derivative, as an atom's index has none;"
            " use the law itself (Poisson, Binomial, ...), whose closed form has one."
        )
