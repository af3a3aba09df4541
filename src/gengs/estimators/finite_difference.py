r"""Exact finite differences: what would the cost be with one count more?

Computes :math:`\nabla_\theta E_{z \sim q_\theta}[f(z)]` one factor at a time, from the cost at the
draw and at a neighbour of it. For the count families, with :math:`\Delta f(z) = f(z + 1) - f(z)`,

==================  ========================================================================
law                 identity
==================  ========================================================================
Poisson             :math:`\partial_\lambda E f = E[\Delta f(Z)]`
Binomial            :math:`\partial_p E f = E[(N - Z) \Delta f(Z)] / (1 - p)`
NegativeBinomial    :math:`\partial_p E f = E[(r + Z) \Delta f(Z)] / (1 - p)`
Geometric           :math:`\partial_p E f = -E[(1 + Z) \Delta f(Z)] / p`
==================  ========================================================================

(for a Binomial with :math:`p > 1/2` its mirror image, which steps down), and for atoms
:math:`c_0 < c_1 < \dots` of any other law, with :math:`F_k = \sum_{j \le k} \pi_j`, by parts,

.. math::
    \nabla E f = \sum_k S_k \big(f(c_{k+1}) - f(c_k)\big), \qquad S_k = -\nabla F_k.

A draw :math:`c_k` goes up with probability :math:`\beta_k = \pi_{k-1} / (\pi_{k-1} + \pi_{k+1})`,
else down: towards the neighbour that is seldom drawn itself. The gap it crosses gets the weight
:math:`S_k / (\pi_k \beta_k + \pi_{k+1} (1 - \beta_{k+1}))`, the inverse of how often it is crossed
from either side. So a rare atom between likely ones makes no huge weight, as :math:`S_k / \pi_k`
would: always going up had 1.4, 3 and 23 times the variance for twelve normal logits of standard
deviation 0.5, 1 and 3.

Unbiased; the cost need not be differentiable, nor defined off the atoms. The gradient of a factor
sees only what its own step changes, so the other factors add no noise of their own; but each factor
takes one more evaluation, or ``coordinates`` random ones do, scaled up.

References:
    | Monte Carlo Gradient Estimation in Machine Learning (Mohamed et al., 2020), section 6 (weak
    | derivatives), https://arxiv.org/abs/1906.10652
"""

from __future__ import annotations

__all__ = ["FiniteDifference"]

import torch
from torch import Tensor
from torch.distributions import Binomial, Geometric, NegativeBinomial, Poisson

from ..distributions.families import _gave
from ..distributions.finite import Finite
from .base import Cost, Estimator, attach
from .latents import Latents


class FiniteDifference(Estimator):
    """The exact identity between derivatives and differences, factor by factor.

    Args:
        coordinates: For how many random factors a neighbour is evaluated; all by default, and all
            where there are no more.
        samples: The number of draws.
    """

    paper_name = "Finite differences"
    unbiased = True
    needs_cost_gradient = False
    needs = "independent scalar factors"
    year = 2020
    reference = "Mohamed et al., Monte Carlo Gradient Estimation in Machine Learning"

    def __init__(self, coordinates: int | None = None, samples: int = 1) -> None:
        super().__init__(samples)
        good = isinstance(coordinates, int) and not isinstance(coordinates, bool)
        if coordinates is not None and not (good and coordinates > 0):
            raise ValueError(
                "FiniteDifference expects a positive integer `coordinates`, or None for all, "
                f"but got {coordinates!r}."
            )
        self.coordinates = coordinates

    @property
    def evaluations(self) -> int:
        """One per draw and one per coordinate; with ``coordinates=None``, for a single factor."""
        return self.samples * (1 + (self.coordinates or 1))

    def _estimate(self, cost: Cost, latents: Latents) -> Tensor:
        law = latents.law
        if latents.event:
            raise TypeError(
                f"FiniteDifference steps between neighbouring numbers, but {type(law).__name__} "
                f"has atoms of shape {tuple(latents.event)}; use UnOrd, RLOO or ReinMax."
            )
        r_learned = isinstance(law, NegativeBinomial) and law.total_count.requires_grad
        if isinstance(law, Poisson | Binomial | NegativeBinomial | Geometric) and not r_learned:
            z = latents.sample(self.samples)
            neighbour, weight = _family_step(law, z)
        else:
            z, neighbour, weight = _table_step(latents.finite, self.samples)
        f = cost(z)  # (S, *batch)
        lead, factors = z.shape[: z.dim() - len(latents.factors)], latents.factors.numel()
        z, neighbour, weight = (x.reshape(*lead, factors) for x in (z, neighbour, weight))
        chosen = min(self.coordinates or factors, factors)
        which = torch.arange(factors, device=z.device).expand(*lead, factors)
        if chosen < factors:
            which = torch.rand(which.shape, device=z.device).topk(chosen).indices
        moved = z.expand(chosen, *z.shape).clone()  # (chosen, S, *batch, F)
        moved.scatter_(
            -1, which.movedim(-1, 0).unsqueeze(-1), _pick(neighbour, which).unsqueeze(-1)
        )
        with torch.no_grad():
            there = cost(moved.reshape(chosen * self.samples, *latents.law.batch_shape))
        difference = there.reshape(chosen, *lead) - f.detach()
        surrogate = (difference * _pick(weight, which)).sum(0) * (factors / chosen)
        return attach(f.mean(0), surrogate.mean(0))

    def extra_repr(self) -> str:
        shown = "" if self.coordinates is None else f"coordinates={self.coordinates}"
        return ", ".join(filter(None, [shown, super().extra_repr()]))


def _pick(x: Tensor, which: Tensor) -> Tensor:
    return x.gather(-1, which).movedim(-1, 0)


def _family_step(
    law: Poisson | Binomial | NegativeBinomial | Geometric, z: Tensor
) -> tuple[Tensor, Tensor]:
    """A neighbour of each draw, and the weight of the difference, with gradient."""
    if isinstance(law, Poisson):
        return z + 1, law.rate.expand_as(z)
    by_logits = _gave(law, "logits")
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


def _table_step(law: Finite, samples: int) -> tuple[Tensor, Tensor, Tensor]:
    """Draws, a neighbour of each, and the weight of the difference, with gradient."""
    probs = law.probs
    atoms = law.atoms.expand_as(probs)
    # in rising order, impossible atoms last: they are nobody's neighbour
    order = atoms.masked_fill(probs.detach() == 0, torch.inf).argsort(dim=-1, stable=True)
    atoms, probs = atoms.gather(-1, order), probs.gather(-1, order)
    pi = probs.detach().double()
    edge = torch.zeros_like(pi[..., :1])
    below, above = torch.cat([edge, pi[..., :-1]], -1), torch.cat([pi[..., 1:], edge], -1)
    up = below / (below + above).clamp_min(torch.finfo(pi.dtype).tiny)
    up = up.masked_fill(below == 0, 1.0).masked_fill(above == 0, 0.0)  # (*batch, *factors, n)
    crossed = pi[..., :-1] * up[..., :-1] + pi[..., 1:] * (1 - up[..., 1:])
    # minus the lower tail is the upper tail, up to a constant; the smaller one rounds less
    lower = probs.cumsum(-1)[..., :-1]
    upper = probs.flip(-1).cumsum(-1).flip(-1)[..., 1:]
    tail = torch.where(lower.detach() <= 0.5, -lower, upper)
    inverse = (1 / crossed).masked_fill(crossed == 0, 0.0)
    weight = torch.cat([tail, torch.zeros_like(probs[..., :1])], -1)  # gap n - 1 goes nowhere
    inverse = torch.cat([inverse, edge], -1).to(probs.dtype)

    law_index = law.sample_index(torch.Size([samples]))  # (S, *batch, *factors)
    shape = (*law_index.shape, pi.shape[-1])
    k = order.argsort(-1).expand(shape).gather(-1, law_index.unsqueeze(-1))
    goes_up = torch.rand(k.shape, dtype=pi.dtype, device=pi.device) < up.expand(shape).gather(-1, k)
    alone = above.expand(shape).gather(-1, k) + below.expand(shape).gather(-1, k) == 0
    gap = k.where(goes_up, k - 1).clamp_min(0)
    to = torch.where(goes_up, k + 1, k - 1).where(~alone, k)
    sign = torch.where(goes_up, 1.0, -1.0).masked_fill(alone, 0.0).to(probs.dtype)
    step = weight.expand(shape).gather(-1, gap) * (sign * inverse.expand(shape).gather(-1, gap))
    atoms = atoms.expand(shape)
    here, there = atoms.gather(-1, k), atoms.gather(-1, to)
    return here.squeeze(-1), there.squeeze(-1), step.squeeze(-1)
