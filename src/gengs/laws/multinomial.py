r"""The multinomial: counts of N balls in m boxes. One ball gives one-hot vectors.

While they are few, its :math:`\binom{N + m - 1}{m - 1}` outcomes are atoms, vectors like any other
(:func:`enumerate_multinomial`). Past that it is a chain of conditional binomials,

.. math::
    z_1 \sim \mathrm{Bin}(N, p_1), \quad
    z_2 \mid z_1 \sim \mathrm{Bin}\Big(N - z_1, \frac{p_2}{1 - p_1}\Big), \quad \dots

whose links are relaxed one after the other (:class:`RelaxedMultinomial`): the cost is linear in
:math:`N m`.
"""

from __future__ import annotations

__all__ = [
    "OneHot",
    "enumerate_multinomial",
    "explodes",
    "multinomial_log_pmf",
    "multinomial_logits",
    "multinomial_probs",
    "number_of_outcomes",
]

import math
from itertools import combinations
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Categorical, Multinomial, OneHotCategorical
from torch.types import _size

from ..tables.finite import Finite
from ..numerics.tails import safe_log, times, was_given, widen
from ..numerics.tracing import require_memory, set_shapes

MOST_OUTCOMES = 100_000
"""Past this many outcomes enumeration refuses, and the chain takes over."""


def number_of_outcomes(total: int, boxes: int) -> int:
    """How many ways there are to put ``total`` balls into ``boxes``."""
    return math.comb(total + boxes - 1, boxes - 1)


def explodes(law: Multinomial) -> bool:
    """Whether there are too many outcomes to enumerate."""
    return number_of_outcomes(law.total_count, law.event_shape[-1]) > MOST_OUTCOMES


def enumerate_multinomial(law: Multinomial) -> tuple[Tensor, Tensor]:
    """All outcomes as vectors, ``(n, m)``, and their log-probabilities, ``(*batch, n)``."""
    total, boxes = law.total_count, law.event_shape[-1]
    outcomes = number_of_outcomes(total, boxes)
    _, log_p = multinomial_probs(law)
    if explodes(law):
        raise ValueError(
            f"Multinomial(total_count={total}) on {boxes} categories has {outcomes} outcomes, too "
            f"many to enumerate (at most {MOST_OUTCOMES}); use gumbel_relax or RelaxedMultinomial, "
            "which chain conditional binomials."
        )
    require_memory(law.batch_shape, outcomes, log_p.dtype, log_p.device)
    atoms = compositions(total, boxes).to(device=log_p.device, dtype=log_p.dtype)
    return atoms, multinomial_log_pmf(atoms, log_p, total)


def multinomial_log_pmf(counts: Tensor, log_p: Tensor, total: int) -> Tensor:
    """The log-PMF of counts ``(n, m)`` under log-probabilities ``(*batch, m)``: ``(*batch, n)``."""
    choose = math.lgamma(total + 1) - torch.lgamma(counts.double() + 1).sum(-1)
    log_power = times(counts, log_p.unsqueeze(-2)).sum(-1)
    return log_power + choose.to(log_p.dtype)


def multinomial_probs(law: Multinomial | OneHotCategorical) -> tuple[Tensor, Tensor]:
    """Probabilities of the boxes and their logarithms, without the clamp torch puts on them."""
    categorical = law._categorical
    if was_given(categorical, "logits"):
        log_p = multinomial_logits(categorical)
        return log_p.exp(), log_p
    probs = widen(categorical.probs)
    probs = probs / probs.sum(-1, keepdim=True)
    return probs, safe_log(probs)


def multinomial_logits(law: Categorical) -> Tensor:
    """Log-probabilities that were given as such; of half precision, normalised to all digits."""
    log_p = widen(law.logits)
    return log_p if log_p.dtype == law.logits.dtype else log_p.log_softmax(-1)


def compositions(total: int, boxes: int) -> Tensor:
    """Every vector of ``boxes`` counts with sum ``total``."""
    if boxes == 1:
        return torch.tensor([[total]], device="cpu")
    # torch.combinations would first build all (total + boxes)^boxes tuples
    places = combinations(range(total + boxes - 1), boxes - 1)
    bars = torch.tensor(list(places), device="cpu")  # (n, m - 1)
    before = torch.full((len(bars), 1), -1, device="cpu")
    after = torch.full((len(bars), 1), total + boxes - 1, device="cpu")
    return torch.cat([before, bars, after], -1).diff(dim=-1) - 1


class OneHot(Finite):
    """A law on the one-hot vectors: weights are values as they are, no atom is multiplied out.

    Its logits are normalised; of ``probs`` that were given, an impossible one is at a boundary.
    """

    def __init__(self, logits: Tensor, probs: Tensor | None, validate: bool) -> None:
        self.made_from = OneHot, (logits, probs, validate), {}
        self.logits = logits
        self.event_dim, self.dtype = 1, logits.dtype
        self.given_probs = probs
        set_shapes(self, logits.shape[:-1], logits.shape[-1:], validate)

    @property
    def atoms(self) -> Tensor:  # type: ignore[override]  # made when asked for: n × n numbers
        return torch.eye(self.num_atoms, dtype=self.logits.dtype, device=self.logits.device)

    def mix(self, weights: Tensor, fixed_atoms: bool = False) -> Tensor:
        return weights

    def at(self, index: Tensor) -> Tensor:
        # not one_hot, which looks at the indices
        atom = torch.arange(self.num_atoms, device=index.device)
        return (index.unsqueeze(-1) == atom).to(self.logits.dtype)

    @property
    def variance(self) -> Tensor:
        return self.probs * (1 - self.probs)

    def index_of(self, value: Tensor) -> tuple[Tensor, Tensor]:
        if value.shape[-1:] != self.event_shape:
            raise ValueError(
                f"expected one-hot vectors of length {self.num_atoms}, "
                f"but got shape {tuple(value.shape)}."
            )
        index = value.argmax(-1)
        return index, (self.at(index) == value).all(-1)

    def expand(self, batch_shape: _size, _instance: Any = None) -> OneHot:
        shape = (*batch_shape, self.num_atoms)
        probs = None if self.given_probs is None else self.given_probs.expand(shape)
        return OneHot(self.logits.expand(shape), probs, self._validate_args)
