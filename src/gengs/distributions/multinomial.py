r"""The multinomial: counts of N balls in m boxes.

While they are few, its :math:`\binom{N + m - 1}{m - 1}` outcomes are atoms, vectors like any other
(:func:`enumerate_multinomial`). Past that it is a chain of conditional binomials,

.. math::
    z_1 \sim \mathrm{Bin}(N, p_1), \quad
    z_2 \mid z_1 \sim \mathrm{Bin}\Big(N - z_1, \frac{p_2}{1 - p_1}\Big), \quad \dots

whose links are relaxed one after the other (:class:`RelaxedMultinomial`): the cost is linear in
:math:`N m`.
"""

from __future__ import annotations

__all__ = ["enumerate_multinomial", "multinomial_log_pmf", "number_of_outcomes"]

import math
from itertools import combinations

import torch
from torch import Tensor
from torch.distributions import Multinomial

from .constant import constant
from .given import gave, times, widen
from .memory import require_memory
from .special import safe_log

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
    log_p = multinomial_log_probs(law)
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


def multinomial_log_probs(law: Multinomial) -> Tensor:
    """Log-probabilities of the boxes, without the clamp torch puts on them."""
    categorical = law._categorical
    if gave(categorical, "logits"):
        return widen(categorical.logits)
    return safe_log(widen(categorical.probs))


@constant
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
