"""The categorical: an index, a number in an order, and a table already.

A draw moves between neighbouring indices (:mod:`gengs.laws.ordered_table`). Where the categories
have no order, one-hot vectors are the better distribution (:class:`gengs.OneHot`).
"""

__all__ = ["CategoricalLaw"]

import torch
from torch import Tensor
from torch.distributions import Categorical
from torch.distributions.utils import lazy_property

from ..numerics.inverse_cdf import pick
from ..numerics.tails import log_sum, safe_log, was_given, widen
from .law import Law, Spec, register


@register(Categorical, "pyro.Categorical")
class CategoricalLaw(Law):
    """The record of the categorical."""

    spec = Spec(
        "categorical",
        ("probs",),
        "a list of numbers >= 0 with a positive sum",
        Categorical,
        vectors=("probs",),
    )
    lower = 0

    @property
    def size(self) -> int:  # type: ignore[override]
        return int(self.q._num_events)

    @lazy_property
    def upper(self) -> Tensor:
        return torch.full_like(self.like[..., :1].detach(), self.size - 1)

    @lazy_property
    def like(self) -> Tensor:
        """The log-PMF at all values, ``(*batch, n)``."""
        by_logits = was_given(self.q, "logits")
        table = widen(self.q.logits) if by_logits else safe_log(widen(self.q.probs))
        if table.dtype != self.q._param.dtype:  # half precision was normalised to three digits
            table = table - table.logsumexp(-1, keepdim=True)
        return table

    @lazy_property
    def given_probs(self) -> Tensor | None:
        if was_given(self.q, "logits"):
            return None
        probs = widen(self.q.probs)
        if probs.dtype != self.q.probs.dtype:
            probs = probs / probs.sum(-1, keepdim=True)
        return probs

    @property
    def mean(self) -> Tensor:
        return self.table().mean  # torch leaves it NaN

    def log_pmf(self, k: Tensor) -> Tensor:
        inside = self.inside(k)
        table = self.like.unsqueeze(-2)  # (*batch, 1, K)
        return pick(table, k.where(inside, 0).long()).where(inside, -torch.inf)

    def to_first_order(
        self, k: Tensor, pmf: Tensor, ends: tuple[Tensor, Tensor] | None = None
    ) -> Tensor:
        if self.given_probs is None:
            return pmf
        inside, table = self.inside(k), self.given_probs.unsqueeze(-2)
        return pick(table, k.where(inside, 0).long()).where(inside, 0.0)

    def log_at_least(self, a: Tensor) -> Tensor:
        k = torch.arange(self.size, device=a.device)
        return log_sum(self.like.where(k >= a, -torch.inf))

    def log_at_most(self, a: Tensor) -> Tensor:
        k = torch.arange(self.size, device=a.device)
        return log_sum(self.like.where(k <= a, -torch.inf))
