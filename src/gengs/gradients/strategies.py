r"""A neighbour of each draw, and the weight that makes differences of the cost a gradient.

For a factor with draw :math:`z` and neighbour :math:`z'`,

.. math:: \nabla_\theta E f = E\big[w(z, z')\, (f(z') - f(z))\big]

holds exactly, for any :math:`f`. :mod:`finite_difference` evaluates it as it stands;
:mod:`midcdf` uses it to measure what the trapezoid rule leaves over. The weights are returned as
tensors whose *gradient* is the weight, so that they flow into the law's parameters.
"""

__all__ = ["Moves", "move_factors"]

from dataclasses import dataclass
from typing import TypeGuard

import torch
from torch import Tensor
from torch.distributions import Binomial, Distribution, Geometric, NegativeBinomial, Poisson

from ..tables.finite import Finite
from ..numerics.tails import was_given
from ..numerics.tracing import any_of
from ..estimators.factors import Factors


@dataclass(frozen=True)
class Moves:
    """Draws with one factor moved to its neighbour, C of them for each draw."""

    values: Tensor
    """The moved draws, ``(C·S, *batch, *factors)``."""
    which: Tensor
    """The factor that moved, as a flat index: ``(C, S, *batch)``."""
    step: Tensor
    """How far it moved, ``(C, S, *batch)``."""
    weight: Tensor
    """The weight of the difference, with gradient, scaled up where not all factors moved."""

    def pick(self, per_factor: Tensor) -> Tensor:
        """Of a number for each factor, of the draws or of the moved ones, those that moved."""
        each = per_factor.unflatten(0, (-1, self.which.shape[1])).unsqueeze(-1)
        flat = each.flatten(self.which.dim()).expand(*self.which.shape, -1)  # (C, S, *batch, F)
        return flat.gather(-1, self.which.unsqueeze(-1)).squeeze(-1)


def move_factors(factors: Factors, z: Tensor, coordinates: int | None) -> Moves:
    """Move factors of draws ``(S, *batch, *factors)`` one at a time: random few of them, or all."""
    law = factors.law
    if factors.event:
        raise TypeError(
            f"{factors.owner} steps between neighbouring numbers, but {type(law).__name__} "
            f"has atoms of shape {tuple(factors.event)}; use UnOrd, RLOO or ReinMax."
        )
    if has_family_step(law):
        neighbour, weight = _family_step(law, z, factors.validate)
    else:
        neighbour, weight = _table_step(factors.finite, z)
    lead, many = z.shape[: z.dim() - len(factors.shape)], factors.shape.numel()
    flat, neighbour, weight = (x.reshape(*lead, many) for x in (z, neighbour, weight))
    chosen = min(coordinates or many, many)
    which = torch.arange(many, device=z.device).expand(*lead, many)
    if chosen < many:
        which = torch.rand(which.shape, device=z.device).topk(chosen).indices
    to, here, weights = (x.gather(-1, which).movedim(-1, 0) for x in (neighbour, flat, weight))
    which = which.movedim(-1, 0)  # (C, S, *batch)
    moved = flat.expand(chosen, *flat.shape)  # (C, S, *batch, F)
    moved = moved.scatter(-1, which.unsqueeze(-1), to.unsqueeze(-1))
    values = moved.reshape(chosen * z.shape[0], *z.shape[1:])
    return Moves(values, which, to - here, weights * (many / chosen))


CountFamily = Poisson | Binomial | NegativeBinomial | Geometric


def has_family_step(law: Distribution) -> TypeGuard[CountFamily]:
    """Whether the law has a closed form, and so needs no table."""
    if isinstance(law, NegativeBinomial):
        return not law.total_count.requires_grad
    return isinstance(law, CountFamily)


def _family_step(law: CountFamily, z: Tensor, validate: bool) -> tuple[Tensor, Tensor]:
    """A neighbour of each draw, and the weight of the difference, with gradient."""
    if validate and any_of(z == z + 1):
        raise ValueError(
            f"{z.dtype} cannot tell a count of {z.max().item():.3g} from the next one; "
            "use float64 parameters."
        )
    if isinstance(law, Poisson):
        return z + 1, law.rate.expand_as(z)
    by_logits = was_given(law, "logits")
    parameter = (law.logits if by_logits else law.probs).expand_as(z)
    p = law.probs.detach()
    if isinstance(law, Geometric):
        return z + 1, parameter * -((1 - p) * (1 + z) if by_logits else (1 + z) / p)
    count = law.total_count.detach()
    if isinstance(law, NegativeBinomial):
        return z + 1, parameter * (p * (count + z) if by_logits else (count + z) / (1 - p))
    up = p <= 0.5  # the direction in which no small number divides
    neighbour = torch.where(up, (z + 1).minimum(count), (z - 1).clamp_min(0))
    if by_logits:
        return neighbour, parameter * torch.where(up, p * (count - z), (p - 1) * z)
    return neighbour, parameter * torch.where(
        up, (count - z) / (1 - p).clamp_min(0.5), -z / p.clamp_min(0.5)
    )


def _table_step(law: Finite, z: Tensor) -> tuple[Tensor, Tensor]:
    """A neighbour of each draw, and the weight of the difference, with gradient."""
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
