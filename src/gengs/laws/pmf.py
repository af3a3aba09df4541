r"""A distribution on integers, as a truncation needs it: its log-PMF and log-tails.

All shapes have one trailing dimension for the integers: parameters are ``(*batch, 1)``, ``k`` is
``(n,)`` or ``(*batch, n)``. Formulas that cancel in ``float32`` (log-gammas of large numbers) run
in ``float64`` inside.

**Boundaries.** At a rate of 0, or a probability of 0 or 1, a count is sure, and the derivative of
an expectation is one-sided. To first order the law leaves its sure value :math:`c` for a neighbour
:math:`c'` with a probability :math:`\varepsilon` (the rate; N p; N (1 - p); r p):
:math:`\pi = (1 - \varepsilon) \delta_c + \varepsilon \delta_{c'}`. The log-PMF has no derivative
there, so a table of probabilities takes this form instead (:meth:`PMF.boundary_expansion`).
"""

from __future__ import annotations

__all__ = ["PMF", "BoundaryExpansion"]

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.distributions.utils import lazy_property

from ..numerics.tails import log_sum_above, log_sum_below, widen
from ..numerics.tracing import tensors_of
from ..tables.supports import integer_support


@dataclass(frozen=True)
class BoundaryExpansion:
    """To first order in the parameter, where a sure count goes; all of shape ``(*batch, 1)``."""

    sure: Tensor  # which elements are at a boundary of their parameter
    here: Tensor  # their sure value
    there: Tensor  # the neighbour they leave it for
    probability: Tensor  # of leaving: it is 0 and has a derivative


class PMF:
    """Integers with probabilities. This class calls ``log_prob``; records know better.

    Args:
        q: The distribution.
    """

    data_dependent = False
    """Whether its formulas read the parameters, which is for when a law is made."""
    size: int | None = None
    """How many values it has, where that is known without reading the parameters."""
    learned_total = False
    """Whether a number of trials requires a gradient, which its log-PMF does not have."""
    learned_transforms = False
    """Whether transforms of its values require a gradient, which its log-PMF does not have."""

    def __init__(self, q: Distribution) -> None:
        self.q: Any = q
        self.batch_shape = torch.Size(q.batch_shape)  # other libraries' laws may have a tuple

    @lazy_property
    def lower(self) -> int | None:
        """The smallest integer; ``None`` where there is none."""
        return integer_support(self.q)[0]

    @lazy_property
    def upper(self) -> Tensor | None:
        """The largest integers, ``(*batch, 1)``; ``None`` where there is none."""
        return integer_support(self.q)[1]

    @lazy_property
    def like(self) -> Tensor:
        """A tensor with the floating type and the device of the log-probabilities."""
        device = next((tensor.device for _, _, tensor in tensors_of(self.q)), None)
        lowest = float(self.lower or 0)
        at = torch.full(self.batch_shape, lowest, dtype=torch.float32, device=device)
        return widen(self.q.log_prob(at).detach())

    @property
    def normalised(self) -> bool:
        """Whether the log-PMF is a formula of this library's, not a ``log_prob`` from outside."""
        return type(self).log_pmf is not PMF.log_pmf

    @property
    def given_probs(self) -> Tensor | None:
        """A whole table of probabilities that the distribution was made of, ``(*batch, n)``."""
        return None

    def log_pmf(self, k: Tensor) -> Tensor:
        """``log P(X = k)``, ``-inf`` outside the support."""
        inside = self.inside(k)
        # in the law's own precision: the log-gamma of a float32 count is a float32 number
        values = k.to(self.like.dtype).where(inside, float(self.lower or 0))
        values = values.expand(*self.batch_shape, k.shape[-1])
        log_pmf = self.q.log_prob(values.movedim(-1, 0)).movedim(0, -1)
        return log_pmf.where(inside, -torch.inf).to(self.like.dtype)

    def log_at_least(self, a: Tensor) -> Tensor:
        """``log P(X >= a)``."""
        return log_sum_above(self.log_pmf, a, self.lower)

    def log_at_most(self, a: Tensor) -> Tensor:
        """``log P(X <= a)``."""
        return log_sum_below(self.log_pmf, a, self.lower)

    def log_clipped(self, k: Tensor, first: int | None) -> Tensor:
        """The log-PMF of ``clip(X, k[0], k[-1])``; ``first`` is ``k[0]`` if no mass lies before."""
        parts = [self.log_pmf(k[..., int(first is None) : -1]), self.log_at_least(k[..., -1:])]
        return self.join(parts if first is not None else [self.log_at_most(k[..., :1]), *parts])

    def join(self, parts: Sequence[Tensor]) -> Tensor:
        """Parts of a table, ``(*batch, n)`` together, atoms first in memory, in one type."""
        atoms = [part.expand(*self.batch_shape, part.shape[-1]).movedim(-1, 0) for part in parts]
        return torch.cat(atoms).to(self.like.dtype).movedim(0, -1)

    def boundary_expansion(self) -> BoundaryExpansion | None:
        """Where sure counts go; ``None`` for a law whose parameters have no such boundary."""
        return None

    def boundary(self) -> Tensor | None:
        """Which parameters lie on a boundary, ``(*batch, ...)``; ``None`` where none can."""
        if self.given_probs is not None:
            return self.given_probs == 0
        expansion = self.boundary_expansion()
        return None if expansion is None else expansion.sure

    def clipped_pmf(self, k: Tensor, clipped: Tensor) -> Tensor:
        """The PMF of ``clip(X, k[0], k[-1])``; at a boundary to first order, so that it moves.

        ``clipped`` is its logarithm, ``(*batch, n)``, which does not move there.
        """
        first, last = k[..., :1], k[..., -1:]
        if self.given_probs is not None:
            given = self.given_probs
            values = torch.arange(given.shape[-1], device=k.device)
            index = k.long().clamp(0, len(values) - 1).expand(*self.batch_shape, k.shape[-1])
            pmf = given.gather(-1, index).where(self.inside(k), 0.0)
            below = given.where(values < first, 0.0).sum(-1, keepdim=True)
            above = given.where(values > last, 0.0).sum(-1, keepdim=True)
            return pmf + below.where(k == first, 0.0) + above.where(k == last, 0.0)
        return self.to_first_order(k, clipped.exp(), (first, last))

    def to_first_order(
        self, k: Tensor, pmf: Tensor, ends: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        """``pmf``, the PMF at ``k``, and at a boundary one that moves; clipped to ``ends``."""
        expansion = self.boundary_expansion()
        if expansion is None:
            return pmf
        here, there, leaves = expansion.here, expansion.there, expansion.probability
        if ends is not None:
            first, last = ends
            here, there = (x.maximum(first).minimum(last) for x in (here, there))
        moving = (k == here) * (1 - leaves) + (k == there) * leaves
        return torch.where(expansion.sure, moving, pmf)

    def for_window(self) -> Self:
        """A law whose bulk is where this one's is, or will be: what a window is chosen for."""
        return self

    def inside(self, k: Tensor) -> Tensor:
        """Which integers belong to the support."""
        inside = k == k.round()
        if self.lower is not None:
            inside = inside & (k >= self.lower)
        return inside if self.upper is None else inside & (k <= self.upper)

    def centre_and_spread(self) -> tuple[Tensor, Tensor]:
        """Where to start to look for the bulk of the mass, and with which step; ``(*batch, 1)``."""
        at = torch.zeros(*self.batch_shape, 1, dtype=torch.float64, device=self.like.device)
        try:
            mean, spread = self.q.mean.unsqueeze(-1) + at, self.q.stddev.unsqueeze(-1) + at
        except NotImplementedError:
            return at + (self.lower or 0), at + 1
        usable = torch.isfinite(mean) & torch.isfinite(spread)
        return mean.detach().where(usable, 0.0).round(), spread.detach().where(usable, 1.0) + 1
