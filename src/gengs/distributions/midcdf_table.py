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

__all__ = ["VALLEY", "NotTwice", "midcdf_from_table"]

from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import pad

from .constant import constant
from .finite import Finite
from .inverse import index_where, wide_cdf
from .plainly import plainly
from .scored import Scored
from .stratified import stratified_uniforms
from .sums import product, row_sums, sum_to
from .validation import inside_transform, inspectable, ordinary

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
    atoms, logits, probs, total = _sorted(law)
    cdf = wide_cdf(probs)
    uniforms = stratified_uniforms(shape, law.batch_shape, probs.device)
    index = index_where(cdf, shape, uniforms).unsqueeze(-1)
    z = _at(atoms, index).squeeze(-1)
    if not logits.requires_grad:
        return z
    if valley == 0:
        bridged = index.new_empty(0)
    elif inspectable(probs):
        bridged = _near_a_valley(probs, index, valley)
    else:  # which draws are near one is not known before the graph is made
        bridged = None
    follow = _FollowPlainly if ordinary(z, logits) else _FollowTable
    gaps = None if law.consecutive else atoms.detach().diff(dim=-1)
    return follow.apply(z, logits, index, atoms.detach(), gaps, probs, total, bridged, valley)


def _sorted(law: Finite) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Atoms in order, their log-probabilities, and their probabilities without gradient.

    Both may lack a normaliser: then the sum of the probabilities comes last.
    """
    atoms = law.atoms
    if isinstance(law, Scored) and law.consecutive and not law.has_table:
        return atoms, law.source, law.weights, law.total
    logits = law.logits
    probs = law.fixed_probs
    if law.consecutive or (inspectable(atoms) and bool((atoms.diff(dim=-1) > 0).all())):
        return atoms, logits, probs, None
    atoms, order = atoms.expand_as(logits).sort(-1)
    return atoms, logits.gather(-1, order), probs.gather(-1, order), None


class _FollowTable(torch.autograd.Function):
    r"""A draw from a table, moving with the log-probabilities.

    The derivative of the CDF at gap k gets the weight :math:`w_k` (half a gap, or the integral of
    a hat), so that :math:`dz / d\log\pi_j = -(\pi_j / \pi_z) \sum_{k \ge j} w_k`. Scores that are
    not normalised get what reaches them through the normaliser as well.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(
        z: Tensor,
        logits: Tensor,
        index: Tensor,
        atoms: Tensor,
        gaps: Tensor | None,
        probs: Tensor,
        total: Tensor | None,
        bridged: Tensor | None,
        valley: float,
    ) -> Tensor:
        return z.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        _, *tensors, ctx.valley = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        logits, index, atoms, gaps, probs, total, bridged = ctx.saved_tensors
        n = probs.shape[-1]
        table = probs.expand(*index.shape[:-1], n)
        down = -grad.detach().unsqueeze(-1).to(table.dtype)
        if bridged is None:
            moved = down * _along_hats(atoms, table, index, ctx.valley)
        else:
            moved = _to_neighbours(gaps, table, index, down)
            if bridged.numel():
                some = [t.reshape(-1, t.shape[-1])[bridged] for t in (table, index, down)]
                own = atoms if atoms.dim() == 1 else atoms.expand_as(table).reshape(-1, n)[bridged]
                hats = some[2] * _along_hats(own, some[0], some[1], ctx.valley)
                moved = moved.contiguous()
                moved.view(-1, n)[bridged] = hats.to(moved.dtype)
        moved = sum_to(moved, logits.shape).to(logits.dtype)
        if total is not None:  # through the normaliser
            moved = torch.addcmul(moved, probs, row_sums(moved) / total, value=-1)
        if torch.is_grad_enabled():
            moved = NotTwice.apply(moved, grad, logits)
        # learned atoms move with the one that was drawn
        return grad, moved, *[None] * 7


_FollowPlainly = plainly(_FollowTable)


def _to_neighbours(gaps: Tensor | None, probs: Tensor, index: Tensor, scale: Tensor) -> Tensor:
    """``scale`` times the slopes, with half the gap on either side of the drawn atom as weights.

    ``gaps`` are the distances between the atoms, ``None`` where all are 1.
    """
    n = probs.shape[-1]
    drawn = probs.gather(-1, index).clamp_min_(torch.finfo(probs.dtype).tiny)
    if n <= _FEW and (gaps is None or gaps.dim() == 1):
        # the weights of each atom's row, looked up: no pass to compare indices
        rows = _unit_rows(n, probs.dtype, probs.device) if gaps is None else _rows(gaps)
        weights = rows.index_select(0, index.reshape(-1)).view(*index.shape[:-1], n)
        if inside_transform():  # in place, a batched number does not fit into an unbatched one
            return weights.to(probs.dtype) * probs * (scale / drawn)
        return weights.to(probs.dtype).mul_(probs).mul_(scale / drawn)
    gaps = probs.new_ones(n - 1) if gaps is None else gaps
    before, beyond = (_at(side, index) for side in _half_gaps(gaps))
    moved = probs * (scale * (before + beyond) / drawn)
    moved *= torch.arange(n, device=index.device) < index
    return moved.scatter_(-1, index, scale * beyond)


def _half_gaps(gaps: Tensor) -> tuple[Tensor, Tensor]:
    """Half the distance of each atom to the one before, and to the one beyond."""
    padded = pad(gaps, (1, 1)) / 2  # none before the first, none beyond the last
    return padded[..., :-1], padded[..., 1:]


def _rows(gaps: Tensor) -> Tensor:
    """For each atom that may be drawn, a row: the sum of its weights at and beyond every atom."""
    before, beyond = _half_gaps(gaps)
    return torch.tril((before + beyond).unsqueeze(-1).expand(-1, len(before)), -1) + beyond.diag()


@constant
def _unit_rows(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return _rows(torch.ones(n - 1, dtype=dtype, device=device))


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
    return pad(probs[..., :-1] / drawn * beyond.to(probs.dtype), (0, 1))


def _near_a_valley(probs: Tensor, index: Tensor, valley: float) -> Tensor:
    """Which draws may be in a valley or beside one: all of those that are, and few others.

    A side's mass is at least its largest atom, and is found without a search.
    """
    if not index.numel():
        return index.new_empty(0)
    n = probs.shape[-1]
    excess = torch.sub(probs, torch.minimum(*_sides(probs)), alpha=1.01 * valley)
    if float(excess.min()) >= 0:  # no valley in the whole table
        return index.new_empty(0)
    excess = excess.expand(*index.shape[:-1], n)
    left, right = (index - 1).clamp_min_(0), (index + 1).clamp_max_(n - 1)
    least = torch.minimum(excess.gather(-1, left), excess.gather(-1, right))
    least = torch.minimum(least, excess.gather(-1, index))
    return (least < 0).flatten().nonzero().squeeze(-1)


def _sides(probs: Tensor) -> tuple[Tensor, Tensor]:
    """The masses before and beyond each atom."""
    n = probs.shape[-1]
    if n <= _FEW:
        kind = n, probs.dtype, probs.device
        return product(probs, _before(*kind)), product(probs, _beyond(*kind))
    at_most = wide_cdf(probs)
    sides = at_most - probs, at_most[..., -1:] - at_most
    return sides[0].to(probs.dtype), sides[1].to(probs.dtype)


@constant
def _before(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The matrix that adds up what is before an atom."""
    return torch.ones(n, n, dtype=dtype, device=device).triu(1)


@constant
def _beyond(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    """The matrix that adds up what is beyond an atom."""
    return torch.ones(n, n, dtype=dtype, device=device).tril(-1)


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


class NotTwice(torch.autograd.Function):
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
