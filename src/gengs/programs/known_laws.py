"""What a block knows of a distribution: how it moves, how likely a value is, what its mean is.

All that the rules of a block ask the rest of the library about distributions is asked here.
"""

from __future__ import annotations

__all__ = [
    "boundary_of",
    "is_binomial",
    "is_categorical",
    "is_poisson",
    "mean_of",
    "move_one_hot",
    "moved_by",
    "rsample",
    "score_of",
    "sees_through",
    "stacked",
    "values_of",
    "was_given",
]

import copy
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import (
    Categorical,
    Distribution,
    Independent,
    Multinomial,
    VonMises,
)

from ..gradients import rsample
from ..laws.binomial import BinomialLaw
from ..laws.boxes import attach_counts
from ..laws.categorical import CategoricalLaw
from ..laws.law import Law, law_of
from ..laws.poisson import PoissonLaw
from ..numerics.tails import was_given
from ..tables.finite import Finite
from .picks import Picks
from .thresholds import Interval

_FEW_CATEGORIES = 8
"""A category each for the mean of an index; of more, its number."""


_RECORDS: dict[type, type[Law]] = {}
"""The record of each class: which it is depends on the class alone."""


def record_of(law: Any) -> Law:
    """What the library knows of a distribution."""
    kind = type(law)
    if kind is Independent:
        return law_of(law)
    record = _RECORDS.get(kind)
    if record is None:
        found = law_of(law)
        if kind.__module__.startswith("torch.distributions."):  # others may be registered later
            _RECORDS[kind] = type(found)
        return found
    return record(law)


def moved_by(law: Distribution) -> Callable[[Tensor], Tensor] | None:
    """The function that makes a draw of ``law`` move with its parameters, by the mid-CDF rule.

    ``None`` for a compound distribution, whose draw does not tell what its stages drew.
    """
    record = record_of(law)
    return None if record.compound else record.attach


def move_one_hot(law: Categorical, one_hot: Tensor) -> Tensor:
    """One-hot vectors, drawn from ``law``, that move with it."""
    given = "logits" if was_given(law, "logits") else "probs"
    one, parameter = law.logits.new_ones(()), getattr(law, given)
    return attach_counts(one_hot.to(law.logits.dtype), one, **{given: parameter})


def sees_through(law: Distribution, scored: bool) -> bool:
    """Whether the draws inside ``law.sample()`` are to carry the gradient."""
    record = record_of(law)
    return not record.has_pmf if scored else record.traces_sample


def is_poisson(law: Distribution) -> bool:
    """Whether it is a Poisson, drawn and weighed as that is."""
    return type(record_of(law)) is PoissonLaw


def is_binomial(law: Distribution) -> bool:
    """Whether it is a Binomial, drawn and weighed as that is."""
    return type(record_of(law)) is BinomialLaw


def is_categorical(law: Distribution) -> bool:
    """Whether it is a Categorical, drawn and weighed as that is."""
    return type(record_of(law)) is CategoricalLaw


def values_of(law: Any, z: Tensor) -> Tensor:
    """The drawn values, with the gradient of atoms that move."""
    if isinstance(law, Finite) and law.atoms.requires_grad:
        with torch.no_grad():
            index = law.index_of(z)[0]
        return law.at(index)
    return z


def score_of(law: Any, z: Tensor) -> Tensor:
    """``law.log_prob(z)``, whose gradient at a rate of 0 is not 0/0."""
    if isinstance(law, Interval):
        return law.log_width()
    base, events = law, 0
    while isinstance(base, Independent):
        base, events = base.base_dist, events + base.reinterpreted_batch_ndims
    if is_poisson(base):
        rate = base.rate
        log_rate = torch.where(rate == 0, torch.ones_like(rate), rate).log()
        joint = z * log_rate - rate - torch.lgamma(z + 1)
    else:
        joint = record_of(base).log_prob(z)
    return joint.flatten(joint.dim() - events).sum(-1) if events else joint


def mean_of(law: Any, z: Tensor) -> tuple[Tensor, Tensor] | None:
    """What was drawn and its mean, side by side, ``(*sample, *batch, channels)``.

    An index is a one-hot vector here, or a number where there are many categories. ``None`` where
    there is no finite mean. Atoms stand still: how they move is no matter of their probabilities.
    """
    if isinstance(law, Interval | VonMises):  # the mean of an angle is a direction
        return None
    while isinstance(law, Independent):
        law = law.base_dist
    if isinstance(law, Categorical):
        probs = law.probs
        if (k := probs.shape[-1]) <= _FEW_CATEGORIES:
            return (z.unsqueeze(-1) == torch.arange(k, device=z.device)).to(probs.dtype), probs
        numbers = torch.arange(k, device=z.device, dtype=probs.dtype) / k
        return z.unsqueeze(-1) / k, (probs @ numbers).unsqueeze(-1)
    if isinstance(law, Finite) and law.atoms.requires_grad:
        law = copy.copy(law)
        law.atoms = law.atoms.detach()
    try:
        mean: Tensor = record_of(law).mean
    except (NotImplementedError, TypeError):
        return None
    events = len(law.event_shape)
    mean = mean.expand(z.shape)
    if events:
        z, mean = z.flatten(z.dim() - events), mean.flatten(mean.dim() - events)
        if (k := z.shape[-1]) > _FEW_CATEGORIES:
            numbers = torch.arange(k, device=z.device, dtype=mean.dtype) / k
            return (z @ numbers).unsqueeze(-1), (mean @ numbers).unsqueeze(-1)
        return z, mean
    return z.unsqueeze(-1), mean.unsqueeze(-1)


def boundary_of(law: Any) -> Tensor | None:
    """Which elements sit on a boundary of their parameters; ``None`` where none can."""
    if isinstance(law, Interval):
        return None
    return record_of(law).boundary()


def stacked(laws: Sequence[Any]) -> Any | None:
    """One distribution for several of the same kind and shape, with a new first dimension."""
    if isinstance(laws[0], Picks):
        laws = [law.given if isinstance(law, Picks) else law for law in laws]
    first = laws[0]
    kind = type(first)
    if any(type(law) is not kind for law in laws):
        return None
    if not kind.__module__.startswith("torch.distributions.") or kind in (Independent, Multinomial):
        return None
    names = [name for name in first.arg_constraints if name in vars(first)]
    if not names or any(set(names) != {n for n in names if n in vars(law)} for law in laws):
        return None
    if {"probs", "logits"} <= set(names):
        names.remove("logits" if was_given(first, "probs") else "probs")
    parts = {}
    for name in names:
        tensors = [getattr(law, name) for law in laws]
        if not all(isinstance(t, Tensor) and t.shape == tensors[0].shape for t in tensors):
            return None
        parts[name] = torch.stack(tensors)
    try:
        return kind(**parts, validate_args=False)
    except TypeError:
        return None
