r"""What a truncation asks of a law: its log-PMF on integers and the logarithms of its two tails.

==================  =================================  ==========================================
law                 log PMF                            :math:`P(X \ge a)`
==================  =================================  ==========================================
Poisson             k log λ - λ - lnΓ(k + 1)           incomplete gamma function
Geometric           k log(1 - p) + log p               (1 - p)^a
Binomial            log C(N, k) + ...                  incomplete beta function
NegativeBinomial    log C(r + k - 1, k) + ...          incomplete beta function
anything else       the law's own ``log_prob``         sum of its terms (see ``tails.py``)
==================  =================================  ==========================================

:func:`family_of` finds the row for a law. All shapes have one trailing dimension for the integers:
parameters are ``(*batch, 1)``, ``k`` is ``(n,)`` or ``(*batch, n)``. Formulas that cancel in
``float32`` (log-gammas of large numbers) run in ``float64`` inside.

**Boundaries.** At a rate of 0, or a probability of 0 or 1, a count is sure, and the derivative of
an expectation is one-sided. To first order the law leaves its sure value :math:`c` for a neighbour
:math:`c'` with a probability :math:`\varepsilon` (the rate; N p; N (1 - p); r p):
:math:`\pi = (1 - \varepsilon) \delta_c + \varepsilon \delta_{c'}`. The log-PMF has no derivative
there, so a table of probabilities takes this form instead (:meth:`Family.leaving`).
"""

from __future__ import annotations

__all__ = ["Family", "Leaving", "family_of", "leaving_trials", "register_family"]

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.distributions import (
    Bernoulli,
    Categorical,
    Distribution,
    Geometric,
)
from torch.distributions.utils import lazy_property

from ..tables.supports import integer_support
from ..numerics.tails import (
    log1mexp,
    log_success_and_failure,
    log_sum,
    log_sum_above,
    log_sum_below,
    safe_log,
    times,
    was_given,
    widen,
)
from ..numerics.tracing import tensors_of

# ---------------------------------------------------------------------------------- any law, asked


@dataclass(frozen=True)
class Leaving:
    """To first order in the parameter, where a sure count goes; all of shape ``(*batch, 1)``."""

    sure: Tensor  # which elements are at a boundary of their parameter
    here: Tensor  # their sure value
    there: Tensor  # the neighbour they leave it for
    with_probability: Tensor  # which is 0 and has a derivative


class Family:
    """A law on integers. This class asks the law itself; subclasses know closed forms.

    ``lower`` is its smallest integer, ``upper`` has the largest, ``(*batch, 1)``; or ``None``.
    """

    looks = False  # whether its formulas take a look at the data, which is for when a law is made

    def __init__(self, law: Distribution, lower: int | None = None, upper: Tensor | None = None):
        self.law, self.lower, self.upper = law, lower, upper
        self.batch_shape = torch.Size(law.batch_shape)  # other libraries' laws may have a tuple
        self.probs: Tensor | None = None  # a whole table of probabilities that was given as such

    @lazy_property
    def like(self) -> Tensor:
        """A tensor with the floating type and the device of the log-probabilities."""
        device = next((tensor.device for _, _, tensor in tensors_of(self.law)), None)
        lowest = float(self.lower or 0)
        at = torch.full(self.batch_shape, lowest, dtype=torch.float32, device=device)
        return widen(self.law.log_prob(at).detach())

    def log_pmf(self, k: Tensor) -> Tensor:
        """``log P(X = k)``, ``-inf`` outside the support."""
        inside = self.inside(k)
        # in the law's own precision: the log-gamma of a float32 count is a float32 number
        values = k.to(self.like.dtype).where(inside, float(self.lower or 0))
        values = values.expand(*self.batch_shape, k.shape[-1])
        log_pmf = self.law.log_prob(values.movedim(-1, 0)).movedim(0, -1)
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

    def leaving(self) -> Leaving | None:
        """Where sure counts go; ``None`` for a law whose parameters have no such boundary."""
        return None

    def boundary(self) -> Tensor | None:
        """Which parameters lie on a boundary, ``(*batch, ...)``; ``None`` where none can."""
        if self.probs is not None:
            return self.probs == 0
        leaving = self.leaving()
        return None if leaving is None else leaving.sure

    def clipped_pmf(self, k: Tensor, clipped: Tensor) -> Tensor:
        """The PMF of ``clip(X, k[0], k[-1])``; at a boundary to first order, so that it moves.

        ``clipped`` is its logarithm, ``(*batch, n)``, which does not move there.
        """
        if self.probs is not None:
            values = torch.arange(self.probs.shape[-1], device=k.device)
            first, last = k[..., :1], k[..., -1:]
            index = k.long().clamp(0, len(values) - 1).expand(*self.batch_shape, k.shape[-1])
            pmf = self.probs.gather(-1, index).where(self.inside(k), 0.0)
            below = self.probs.where(values < first, 0.0).sum(-1, keepdim=True)
            above = self.probs.where(values > last, 0.0).sum(-1, keepdim=True)
            return pmf + below.where(k == first, 0.0) + above.where(k == last, 0.0)
        leaving = self.leaving()
        if leaving is None:
            return clipped.exp()
        first, last = k[..., :1], k[..., -1:]
        here = k == leaving.here.maximum(first).minimum(last)
        there = k == leaving.there.maximum(first).minimum(last)
        leaves = leaving.with_probability
        return torch.where(leaving.sure, here * (1 - leaves) + there * leaves, clipped.exp())

    def for_window(self) -> Family:
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
            mean, spread = self.law.mean.unsqueeze(-1) + at, self.law.stddev.unsqueeze(-1) + at
        except NotImplementedError:
            return at + (self.lower or 0), at + 1
        usable = torch.isfinite(mean) & torch.isfinite(spread)
        return mean.detach().where(usable, 0.0).round(), spread.detach().where(usable, 1.0) + 1


# -------------------------------------------------------------------------------- the closed forms


class _Geometric(Family):
    def __init__(self, law: Geometric) -> None:
        super().__init__(law, lower=0)
        self.law: Geometric = law
        self.log_p, self.log_1mp = log_success_and_failure(law)
        self.like = self.log_p

    def log_pmf(self, k: Tensor) -> Tensor:
        log_pmf = times(k.to(self.log_p.dtype), self.log_1mp) + self.log_p
        return log_pmf.where(self.inside(k), -torch.inf)

    def log_at_least(self, a: Tensor) -> Tensor:
        return times(a.to(self.log_p.dtype).clamp_min(0), self.log_1mp)

    def log_at_most(self, a: Tensor) -> Tensor:
        log_above = self.log_at_least(a + 1)
        all_above, all_below = log_above == 0, log_above == -torch.inf
        log_below = log1mexp(log_above.masked_fill(all_above | all_below, -1.0))
        return log_below.masked_fill(all_above, -torch.inf).masked_fill(all_below, 0.0)

    def leaving(self) -> Leaving | None:
        if was_given(self.law, "logits"):
            return None
        p = widen(self.law.probs).unsqueeze(-1)
        zero = torch.zeros_like(p)
        return Leaving(p == 1, zero, zero + 1, 1 - p)


def leaving_trials(law: Distribution, total: Tensor) -> Leaving | None:
    """Of trials that never or always succeed: to the first success, or failure."""
    if was_given(law, "logits"):
        return None
    p = widen(law.probs).unsqueeze(-1)  # type: ignore[attr-defined]
    total = total.detach().to(p.dtype)
    full = p == 1
    here, there = total.where(full, 0.0), torch.where(full, total - 1, 1.0)
    leaves = total * torch.where(full, 1 - p, p)
    return Leaving(full | (p == 0), here, there.clamp_min(0).minimum(total), leaves)


class _Table(Family):
    """A law that is a table already: Bernoulli and Categorical."""

    def __init__(self, law: Bernoulli | Categorical) -> None:
        given = was_given(law, "logits")
        if isinstance(law, Bernoulli):
            log_p, log_1mp = log_success_and_failure(law)
            table = torch.cat([log_1mp, log_p], -1)
        else:
            table = widen(law.logits) if given else safe_log(widen(law.probs))
            if table.dtype != law._param.dtype:  # half precision was normalised to three digits
                table = table - table.logsumexp(-1, keepdim=True)
        last = torch.full_like(table[..., :1].detach(), table.shape[-1] - 1)
        super().__init__(law, lower=0, upper=last)
        self.table = self.like = table
        if not isinstance(law, Bernoulli) and not given:
            self.probs = widen(law.probs)
            if self.probs.dtype != law.probs.dtype:
                self.probs = self.probs / self.probs.sum(-1, keepdim=True)

    def log_pmf(self, k: Tensor) -> Tensor:
        inside = self.inside(k)
        index = k.where(inside, 0).long().expand(*self.batch_shape, k.shape[-1])
        return self.table.gather(-1, index).where(inside, -torch.inf)

    def log_at_least(self, a: Tensor) -> Tensor:
        k = torch.arange(self.table.shape[-1], device=a.device)
        return log_sum(self.table.where(k >= a, -torch.inf))

    def log_at_most(self, a: Tensor) -> Tensor:
        k = torch.arange(self.table.shape[-1], device=a.device)
        return log_sum(self.table.where(k <= a, -torch.inf))

    def leaving(self) -> Leaving | None:
        one = torch.ones_like(self.upper)  # type: ignore[arg-type]
        return leaving_trials(self.law, one) if isinstance(self.law, Bernoulli) else None


_FAMILIES: dict[type[Distribution], Callable[..., Family]] = {Geometric: _Geometric}
_FAMILIES |= {Bernoulli: _Table, Categorical: _Table}


def register_family(law: type[Distribution], family: Callable[..., Family]) -> None:
    """Let :func:`family_of` know the closed forms of one more law."""
    _FAMILIES[law] = family


def family_of(law: Distribution) -> Family:
    """The family of a law; a law without a row of its own is asked for its ``log_prob``.

    So is a subclass with a ``log_prob`` of its own: it may be another law.
    """
    for known, family in _FAMILIES.items():
        if isinstance(law, known) and type(law).log_prob is known.log_prob:
            return family(law)
    return Family(law, *integer_support(law))
