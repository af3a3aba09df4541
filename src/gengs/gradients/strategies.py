r"""What is done with a difference of the cost: strategies over the edges of any distribution.

The record of a distribution (:mod:`gengs.laws.law`) says where a draw can go and at what rate.

- **mid**: the trapezoid rule on each edge, one draw and one backward pass (``Law.attach``);
- **differences**: :math:`\sum w\,(f(z') - f(z))` on one edge of each factor, or of random few
  factors scaled up (:func:`differences`): unbiased, for any cost;
- **mid + residual**: mid, plus the error of the trapezoid rule measured on those edges
  (:func:`residuals`): unbiased, for any differentiable cost;
- **one-sided**: at a boundary of the parameters the rates of both sides are taken equal, inside
  the records.
"""

__all__ = ["Edges", "differences", "edges_of", "residuals"]

from dataclasses import dataclass

import torch
from torch import Tensor

from ..laws.law import Law


@dataclass(frozen=True)
class Edges:
    """Draws with one factor moved along an edge, C of them for each draw."""

    there: Tensor
    """The moved draws, ``(C, S, *batch, *factors, *event)``."""
    step: Tensor
    """How far they moved, of the same shape: zero in all factors but one."""
    weight: Tensor
    """The weight of each difference, ``(C, S, *batch)``, with gradient."""

    @property
    def values(self) -> Tensor:
        """The moved draws as a cost takes them, ``(C·S, *batch, *factors, *event)``."""
        return self.there.flatten(0, 1)


def edges_of(
    law: Law, z: Tensor, factors: torch.Size, coordinates: int | None, validate: bool
) -> Edges:
    """Move factors of draws ``(S, *batch, *factors, *event)`` one at a time.

    Args:
        law: The record of the factors' distribution.
        z: The draws.
        factors: The shape of one latent vector, in factors.
        coordinates: How many random factors move; all by default. Beyond their number, factors
            that have many neighbours (subsets, rankings) move several times.
        validate: Whether the record may read the draws to check them.
    """
    turns = 1
    if law.several_neighbours and coordinates is not None:
        turns = max(1, coordinates // max(1, factors.numel()))
    if turns > 1:  # each turn moves all factors, as if of more draws
        repeated = z.expand(turns, *z.shape).flatten(0, 1)
        moved = edges_of(law, repeated, factors, None, validate)

        def by_turn(x: Tensor) -> Tensor:  # (F, turns·S, …) as (F·turns, S, …)
            return x.unflatten(1, (turns, -1)).flatten(0, 1)

        weight = by_turn(moved.weight) / turns
        return Edges(by_turn(moved.there), by_turn(moved.step), weight)
    neighbour, weight = law.neighbour(z, validate)
    event = z.dim() - weight.dim()
    lead, many = weight.shape[: weight.dim() - len(factors)], factors.numel()
    weight = weight.reshape(*lead, many)
    chosen = min(coordinates or many, many)
    which = torch.arange(many, device=z.device).expand(*lead, many)
    if chosen < many:
        which = torch.rand(which.shape, device=z.device).topk(chosen).indices
    weights = weight.gather(-1, which).movedim(-1, 0)  # (C, S, *batch)
    which = which.movedim(-1, 0).unsqueeze(-1)
    moves = which == torch.arange(many, device=z.device)  # (C, S, *batch, F)
    moves = moves.reshape(*moves.shape[:-1], *factors, *(1,) * event)
    step = torch.where(moves, neighbour - z, torch.zeros_like(z))
    there = torch.where(moves, neighbour, z)
    return Edges(there, step, weights * (many / chosen))


def differences(edges: Edges, here: Tensor, there: Tensor) -> Tensor:
    """A surrogate ``(*batch,)`` whose gradient is that of exact differences.

    Args:
        edges: The edges, from ``edges_of``.
        here: The costs of the draws, ``(S, *batch)``.
        there: The costs of the moved draws, ``(C·S, *batch)``.
    """
    difference = there.detach().view_as(edges.weight) - here.detach()
    return (difference * edges.weight).sum(0).mean(0)


def residuals(
    edges: Edges, here: Tensor, there: Tensor, slope_here: Tensor, slope_there: Tensor
) -> Tensor:
    """A surrogate ``(*batch,)``: what the trapezoid rule leaves over on the edges.

    Args:
        edges: The edges, from ``edges_of``.
        here: The costs of the draws, ``(S, *batch)``.
        there: The costs of the moved draws, ``(C·S, *batch)``.
        slope_here: Their gradients in the draws, ``(S, *batch, *factors, *event)``.
        slope_there: Their gradients in the moved draws.
    """
    slopes = slope_here.detach() + slope_there.detach().view_as(edges.there)
    along = (edges.step * slopes).reshape(*edges.weight.shape, -1).sum(-1)
    return differences(edges, here, there.view_as(edges.weight) - along / 2)
