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
from .inverse import index_where, wide_cdf
from .stratified import stratified_uniforms
from .sums import sum_to
from .validation import inspectable

VALLEY = 0.01
"""An atom below this fraction of the largest atoms on both sides is bridged."""

_FEW = 64
"""Up to this many atoms, a square table of weights is nothing."""


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
    cdf = wide_cdf(probs)
    uniforms = stratified_uniforms(shape, law.batch_shape, probs.device)
    index = index_where(cdf, shape, uniforms).unsqueeze(-1)
    z = _at(atoms, index).squeeze(-1)
    if not logits.requires_grad:
        return z
    if valley == 0:
        bridged = index.new_empty(0)
    elif inspectable(probs):
        bridged = _near_a_valley(probs, cdf, index, valley)
    else:  # which draws are near one is not known before the graph is made
        bridged = None
    return _FollowTable.apply(z, logits, index, atoms.detach(), probs, bridged, valley)


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
    def forward(
        z: Tensor,
        logits: Tensor,
        index: Tensor,
        atoms: Tensor,
        probs: Tensor,
        bridged: Tensor | None,
        valley: float,
    ) -> Tensor:
        return z.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, ctx.valley = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        _, logits, index, atoms, probs, bridged = ctx.saved_tensors
        n = probs.shape[-1]
        table = probs.expand(*index.shape[:-1], n)
        down = -grad.detach().unsqueeze(-1).to(table.dtype)
        if bridged is None:
            moved = down * _along_hats(atoms, table, index, ctx.valley)
        else:
            moved = _to_neighbours(atoms, table, index, down)
            if bridged.numel():
                some = [t.reshape(-1, t.shape[-1])[bridged] for t in (table, index, down)]
                own = atoms if atoms.dim() == 1 else atoms.expand_as(table).reshape(-1, n)[bridged]
                hats = some[2] * _along_hats(own, some[0], some[1], ctx.valley)
                moved.view(-1, n)[bridged] = hats.to(moved.dtype)
        moved = sum_to(moved, logits.shape).to(logits.dtype)
        if torch.is_grad_enabled():
            moved = _NotTwice.apply(moved, grad, logits)
        # learned atoms move with the one that was drawn
        return grad, moved, None, None, None, None, None


def _to_neighbours(atoms: Tensor, probs: Tensor, index: Tensor, scale: Tensor) -> Tensor:
    """``scale`` times the slopes, with half the gap on either side of the drawn atom as weights."""
    gaps = torch.nn.functional.pad(atoms.diff(dim=-1), (1, 1)) / 2  # none before, none beyond
    before, beyond = gaps[..., :-1], gaps[..., 1:]
    drawn = probs.gather(-1, index).clamp_min(torch.finfo(probs.dtype).tiny)
    if atoms.dim() == 1 and len(atoms) <= _FEW:
        # the weights of each atom's row, looked up: no pass to compare indices
        rows = torch.tril((before + beyond).unsqueeze(-1).expand(-1, len(atoms)), -1)
        rows = rows + torch.diag(beyond)
        weights = rows.index_select(0, index.reshape(-1)).view(*index.shape[:-1], len(atoms))
        return weights.to(probs.dtype).mul_(probs).mul_(scale / drawn)
    before, beyond = _at(before, index), _at(beyond, index)
    moved = probs * (scale * (before + beyond) / drawn)
    moved *= torch.arange(probs.shape[-1], device=index.device) < index
    return moved.scatter_(-1, index, scale * beyond)


def _along_hats(atoms: Tensor, probs: Tensor, index: Tensor, valley: float) -> Tensor:
    """The slopes with the integrals of the drawn atom's hat, on the grid of atoms not bridged."""
    kept = _kept(probs, valley)
    at = _at(atoms, index)
    previous = atoms.where(kept & (atoms < at), -torch.inf).amax(-1, keepdim=True)
    following = atoms.where(kept & (atoms > at), torch.inf).amin(-1, keepdim=True)
    middle = (atoms[..., 1:] + atoms[..., :-1]) / 2
    rise = ((middle - previous) / (at - previous)).where(previous > -torch.inf, 0.0)
    fall = ((following - middle) / (following - at)).where(following < torch.inf, 0.0)
    hat = torch.where(middle < at, rise, fall).clamp_min(0.0)
    weights = (hat * atoms.diff(dim=-1)).where(kept.gather(-1, index), 0.0)
    beyond = weights.flip(-1).cumsum(-1).flip(-1)  # sum over k >= j; nothing for the last j
    drawn = probs.gather(-1, index).clamp_min(torch.finfo(probs.dtype).tiny)
    return torch.nn.functional.pad(probs[..., :-1] / drawn * beyond.to(probs.dtype), (0, 1))


def _near_a_valley(probs: Tensor, cdf: Tensor, index: Tensor, valley: float) -> Tensor:
    """Which draws may be in a valley or beside one: all of those that are, and few others.

    A side's mass is at least its largest atom and costs no search: the CDF has it. The sides of the
    atom before the drawn one are, at most, what lies below the drawn one and the rest; likewise for
    the atom beyond.
    """
    n = probs.shape[-1]
    table = probs.expand(*index.shape[:-1], n)
    own = table.gather(-1, index)
    before = table.gather(-1, (index - 1).clamp_min_(0))
    beyond = table.gather(-1, (index + 1).clamp_max_(n - 1))
    at_most = cdf.expand(*index.shape[:-1], n).gather(-1, index)
    # subtracted in the CDF's wide arithmetic: beside a sure atom, float32 would leave nothing
    sides = (at_most, at_most - own, cdf[..., -1:] - at_most)
    at_most, below, above = (side.to(probs.dtype) for side in sides)
    few = 1.01 * valley
    near = own < few * torch.minimum(below, above)
    near |= before < few * torch.minimum(below, above + own)
    near |= beyond < few * torch.minimum(at_most, above)
    return near.flatten().nonzero().squeeze(-1)


def _kept(probs: Tensor, valley: float) -> Tensor:
    """Which atoms are not in a valley: not rare beside the largest atoms on both sides."""
    nothing = torch.zeros_like(probs[..., :1])
    left = torch.cat([nothing, probs[..., :-1].cummax(-1).values], -1)
    right = torch.cat([probs[..., 1:].flip(-1).cummax(-1).values.flip(-1), nothing], -1)
    return probs >= valley * torch.minimum(left, right)


def _at(values: Tensor, index: Tensor) -> Tensor:
    """The entries of ``(n,)`` or ``(*batch, n)`` at ``index``, ``(*sample, *batch, 1)``."""
    if values.dim() == 1:
        # not values[index]: under vmap a single index would have to become a Python number
        return values.index_select(0, index.reshape(-1)).reshape(index.shape)
    return values.expand(*index.shape[:-1], values.shape[-1]).gather(-1, index)


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
