r"""The multinomial: counts of N balls in m boxes. One ball gives one-hot vectors.

While they are few, its :math:`\binom{N + m - 1}{m - 1}` outcomes are atoms, vectors like any other
(:func:`enumerate_multinomial`). Past that it is a chain of conditional binomials,

.. math::
    z_1 \sim \mathrm{Bin}(N, p_1), \quad
    z_2 \mid z_1 \sim \mathrm{Bin}\Big(N - z_1, \frac{p_2}{1 - p_1}\Big), \quad \dots

whose links are relaxed one after the other (:mod:`gengs.laws.relaxed_multinomial`): the cost is
linear in :math:`N m`. A draw moves as one ball changes its box (:mod:`gengs.laws.boxes`).
"""

__all__ = [
    "MultinomialLaw",
    "enumerate_multinomial",
    "explodes",
    "multinomial_log_pmf",
    "multinomial_probs",
    "number_of_outcomes",
]

import math
from itertools import combinations

import torch
from torch import Tensor
from torch.distributions import Multinomial
from torch.distributions.kl import register_kl

from ..numerics.gumbel_softmax import Temperature
from ..numerics.tails import safe_log, times, was_given, widen
from ..numerics.tracing import require_memory
from ..tables.finite import Finite
from ..tables.kl import categorical_kl
from .boxes import attach_counts, move_ball
from .law import Law, law_of, register
from .relaxed_multinomial import relax_multinomial

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
            f"many to enumerate (at most {MOST_OUTCOMES}); use rsample, or gumbel_relax, which "
            "chains conditional binomials."
        )
    require_memory(law.batch_shape, outcomes, log_p.dtype, log_p.device)
    atoms = compositions(total, boxes).to(device=log_p.device, dtype=log_p.dtype)
    return atoms, multinomial_log_pmf(atoms, log_p, total)


def multinomial_log_pmf(counts: Tensor, log_p: Tensor, total: int) -> Tensor:
    """The log-PMF of counts ``(n, m)`` under log-probabilities ``(*batch, m)``: ``(*batch, n)``."""
    choose = math.lgamma(total + 1) - torch.lgamma(counts.double() + 1).sum(-1)
    log_power = times(counts, log_p.unsqueeze(-2)).sum(-1)
    return log_power + choose.to(log_p.dtype)


def multinomial_probs(law: Multinomial) -> tuple[Tensor, Tensor]:
    """Probabilities of the boxes and their logarithms, without the clamp torch puts on them."""
    categorical = law._categorical
    if was_given(categorical, "logits"):
        log_p = widen(categorical.logits)
        if log_p.dtype != categorical.logits.dtype:  # of half precision, to all digits
            log_p = log_p.log_softmax(-1)
        return log_p.exp(), log_p
    probs = widen(categorical.probs)
    probs = probs / probs.sum(-1, keepdim=True)
    return probs, safe_log(probs)


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


@register(Multinomial, "pyro.Multinomial")
class MultinomialLaw(Law):
    """The record of the multinomial."""

    def whole_table(self, validate: bool) -> Finite:
        atoms, log_pmf = enumerate_multinomial(self.q)
        table = Finite(atoms, logits=log_pmf, event_dim=1, validate_args=validate)
        if was_given(self.q._categorical, "probs"):
            # of an impossible box the products themselves, whose derivative is one-sided
            p = multinomial_probs(self.q)[0].unsqueeze(-2)
            ways = multinomial_log_pmf(atoms, torch.zeros_like(p.squeeze(-2)), self.q.total_count)
            direct = ways.exp() * p.pow(atoms).prod(-1)
            table.given_probs = torch.where((p == 0).any(-1), direct, table.probs)
        return table

    def relax(
        self,
        temperature: Temperature,
        shape: torch.Size,
        hard: bool = False,
        generator: torch.Generator | None = None,
    ) -> Tensor:
        if not explodes(self.q):
            return super().relax(temperature, shape, hard, generator)
        log_p, total = multinomial_probs(self.q)[1], self.q.total_count
        return relax_multinomial(log_p, total, temperature, shape, hard, generator)

    def boundary(self) -> Tensor | None:
        inner = self.q._categorical
        return inner.probs == 0 if was_given(inner, "probs") else None

    def draw(self, shape: torch.Size) -> Tensor:
        inner = self.q._categorical
        if inner.logits.dtype.itemsize < 4:  # counts in half precision round
            probs, total = multinomial_probs(self.q)[0].detach(), self.q.total_count
            return Multinomial(total, probs, validate_args=False).sample(shape)
        return super().draw(shape)

    def attach(self, z: Tensor) -> Tensor:
        inner = self.q._categorical
        n = inner.logits.new_tensor(float(self.q.total_count))
        if was_given(inner, "logits"):
            return attach_counts(z, n, logits=inner.logits)
        return attach_counts(z, n, probs=inner.probs)

    def neighbour(self, z: Tensor, validate: bool = True) -> tuple[Tensor, Tensor]:
        probs, log_p = multinomial_probs(self.q)
        given = probs if was_given(self.q._categorical, "probs") else None
        return move_ball(z, z.new_tensor(float(self.q.total_count)), log_p, given)


@register_kl(Multinomial, Multinomial)
def _kl(q: Multinomial, p: Multinomial) -> Tensor:
    if q.total_count != p.total_count:
        raise ValueError(
            "kl_divergence of two Multinomials expects equal total_count, but got "
            f"{q.total_count} and {p.total_count}."
        )
    if not all(type(law_of(law)) is MultinomialLaw for law in (q, p)):
        for law in (q, p):
            law_of(law).require_pmf()
        atoms, _ = enumerate_multinomial(q)
        shape = (len(atoms), *[1] * len(q.batch_shape), atoms.shape[-1])
        log_q, log_p = (law.log_prob(atoms.reshape(shape)).movedim(0, -1) for law in (q, p))
        return categorical_kl(log_q, log_p)
    return q.total_count * categorical_kl(multinomial_probs(q)[1], multinomial_probs(p)[1])
