r"""k-subsets: which k of n? Vectors of 0 and 1 with sum k.

.. math:: P(z) \propto \exp(\theta \cdot z), \qquad z \in \{0, 1\}^n, \quad \sum_i z_i = k

(the conditional Bernoulli distribution: n coins with logits :math:`\theta`, given that k of them
come up heads). It is *not* the distribution of the k largest of :math:`\theta` + Gumbel noise: that
one is :class:`~gengs.PlackettLuce`, seen as a set.

=====================  ==================================================================
draw                   element by element, exactly; O(n k) for the table, O(n) for a draw
log-partition          :math:`\log E_k(e^\theta)`, its gradient the mean, twice differentiable
mean                   inclusion probabilities
entropy, KL            closed forms of the log-partition and the mean
gradient of a draw     the swap rule (:mod:`gengs.laws.subset_swaps`)
relaxation             k relaxed one-hot draws in a row (:mod:`gengs.laws.subset_relaxed`)
=====================  ==================================================================
"""

from __future__ import annotations

__all__ = ["Subset"]

from itertools import combinations
from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.distributions.utils import lazy_property
from torch.types import _size

from ..numerics.tracing import any_of, set_shapes, validates
from ..tables.discrete import Discrete
from .outcomes import NEED_NO_LIST, log_choose, refuse_many, require_tensor
from .subset_checks import KOfN, require_k, require_logits
from .subset_swaps import LogPartition, Mean
from .subset_table import Table, make_table, walk


class Subset(Discrete):
    r"""The distribution of k of n elements, :math:`P(z) \propto \exp(\theta \cdot z)`.

    Args:
        k: How many elements are chosen, 0 to n: an integer, or a tensor of them that broadcasts
            with the batch.
        logits: The scores :math:`\theta`, ``(*batch, n)``; ``-inf`` for an element that is never
            chosen (a mask). Adding a constant changes nothing.
        validate_args: Whether to check the arguments; on by default.

    Example:
        >>> q = Subset(2, logits=torch.tensor([1.0, 0.0, 0.0, -torch.inf]))
        >>> q.mean
        tensor([0.8446, 0.5777, 0.5777, 0.0000])
        >>> q.sample((5,)).sum(-1)
        tensor([2., 2., 2., 2., 2.])
    """

    arg_constraints = {"logits": constraints.independent(constraints.real, 1)}
    has_enumerate_support = True

    def __init__(self, k: int | Tensor, logits: Tensor, validate_args: bool | None = None) -> None:
        n = require_logits(logits)
        self.k, least, most = require_k(k, n)
        batch = logits.shape[:-1]
        if isinstance(self.k, Tensor):
            try:
                batch = torch.broadcast_shapes(batch, self.k.shape)
            except RuntimeError:
                raise ValueError(
                    f"Subset expects a `k` that broadcasts with the batch {tuple(batch)}, but got "
                    f"shape {tuple(self.k.shape)}."
                ) from None
            self.k = self.k.to(logits.device)
        self.logits = logits if batch == logits.shape[:-1] else logits.expand(*batch, n)
        # whichever is the smaller: those that are taken, or those that are left out
        self.columns = max(min(least, n - least), min(most, n - most))
        if least <= n / 2 < most:
            self.columns = max(self.columns, n // 2)
        set_shapes(self, batch, torch.Size([n]), validates(validate_args))
        if self._validate_args:
            self._refuse_bad_logits()

    def _refuse_bad_logits(self) -> None:
        logits = self.logits.detach()
        bad = logits.isnan() | (logits == torch.inf)
        few = (logits > -torch.inf).sum(-1) < self.k
        if not any_of(bad, few):
            return
        if any_of(bad):
            raise ValueError(
                "Subset expects `logits` without NaN or +inf, but "
                f"{int(bad.sum())} of {bad.numel()} are (shape {tuple(logits.shape)})."
            )
        row = tuple(int(i) for i in few.nonzero()[0])
        left = int((logits[row] > -torch.inf).sum())
        k = int(torch.as_tensor(self.k).expand(few.shape)[row])
        raise ValueError(
            f"Subset expects at least k = {k} elements with `logits` above -inf, but "
            + (f"row {row} has {left}." if row else f"got {left}.")
        )

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self) -> constraints.Constraint:
        """Vectors of 0 and 1 with sum k."""
        return KOfN(self.k)

    # ------------------------------------------------------------------------------- the table

    @lazy_property
    def _left_out(self) -> Tensor:
        """Where the table is that of the elements left out, ``(*batch)``."""
        k = torch.as_tensor(self.k, device=self.logits.device).expand(self.batch_shape)
        return 2 * k > self.event_shape[0]

    @lazy_property
    def _possible(self) -> Tensor:
        return (self.logits.detach() != -torch.inf).movedim(-1, 0)  # (n, *batch), also of NaN

    @property
    def _table_logits(self) -> Tensor:
        """The logits of the table, elements first and in its precision; 0 where impossible."""
        wide = torch.float32 if self.logits.device.type == "mps" else torch.float64
        logits = self.logits.movedim(-1, 0).to(wide).where(self._possible, 0.0)
        return torch.where(self._left_out, -logits, logits)

    @lazy_property
    def table(self) -> Table:
        """The table of probabilities, O(n k) numbers for each element of the batch."""
        possible = self._possible
        k = torch.as_tensor(self.k, device=possible.device).expand(self.batch_shape)
        k = torch.where(self._left_out, (possible.sum(0) - k).clamp_min(0), k)
        with torch.no_grad():
            return make_table(self._table_logits.detach(), possible, k, self.columns)

    def _log_partition(self) -> Tensor:
        logits, table = self._table_logits, self.table
        value: Tensor = LogPartition.apply(logits, table.q, table.k, table.log_partition)
        # Σ over all elements = taken + left out
        return torch.where(self._left_out, value - logits.sum(0), value)

    @property
    def log_partition(self) -> Tensor:
        r"""The logarithm of :math:`\sum_z \exp(\theta \cdot z)`, ``(*batch)``."""
        return self._log_partition().to(self._dtype)

    @property
    def _dtype(self) -> torch.dtype:
        """Of numbers; draws are 0 and 1, and have the type of the logits."""
        return torch.promote_types(self.logits.dtype, torch.float32)

    def _out(self, y: Tensor) -> Tensor:
        """Draws or means of the table, ``(n, …, *batch)``, as the subset's, elements last."""
        possible = self._possible.to(y.dtype)
        possible = possible.reshape(
            *possible.shape[:1], *(1,) * (y.dim() - possible.dim()), *possible.shape[1:]
        )
        return torch.where(self._left_out, possible - y, y).movedim(0, -1).to(self._dtype)

    def _in(self, z: Tensor) -> Tensor:
        """The same for draws ``(*sample, *batch, n)``, as ``(n, S, *batch)``."""
        z = z.expand(torch.broadcast_shapes(z.shape, self.logits.shape))
        lead = z.shape[: z.dim() - self.logits.dim()].numel()
        z = z.reshape(lead, *self.batch_shape, self.event_shape[0]).movedim(-1, 0)
        z = z.to(self.table.q.dtype)
        return torch.where(self._left_out, self._possible.unsqueeze(1).to(z.dtype) - z, z)

    # ------------------------------------------------------------------------ what is known of it

    def log_prob(self, value: Tensor) -> Tensor:
        require_tensor("Subset", value)
        if self._validate_args:
            self._refuse_bad_value(value)
        logits = self.logits.to(self.table.q.dtype)
        possible = self.logits.detach() != -torch.inf
        score = (value.to(logits.dtype) * logits.where(possible, 0.0)).sum(-1)
        forbidden = ((value != 0) & ~possible).any(-1)
        return (score - self._log_partition()).masked_fill(forbidden, -torch.inf).to(self._dtype)

    def _refuse_bad_value(self, value: Tensor) -> None:
        n = self.event_shape[0]
        if value.shape[-1:] != self.event_shape:
            raise ValueError(
                f"Subset.log_prob expects vectors of length n = {n}, but got a `value` of shape "
                f"{tuple(value.shape)}."
            )
        wrong = ~self.support.check(value)
        if any_of(wrong):
            raise ValueError(
                "Subset.log_prob expects vectors of 0 and 1 with k ones, but "
                f"{int(wrong.sum())} of {wrong.numel()} in `value` are not."
            )

    @property
    def mean(self) -> Tensor:
        """The inclusion probabilities, ``(*batch, n)``."""
        mean: Tensor = Mean.apply(self._table_logits, self.table.q, self.table.k)
        return self._out(mean)

    @property
    def variance(self) -> Tensor:
        mean = self.mean
        return mean * (1 - mean)

    @property
    def mode(self) -> Tensor:
        """The k elements with the largest logits; of equal ones, some."""
        rank = self.logits.argsort(dim=-1, descending=True, stable=True).argsort(-1)
        k = torch.as_tensor(self.k, device=rank.device).unsqueeze(-1)
        return (rank < k).to(self.logits.dtype)

    def entropy(self) -> Tensor:
        mean: Tensor = Mean.apply(self._table_logits, self.table.q, self.table.k)
        table = self.table
        log_partition = LogPartition.apply(
            self._table_logits, table.q, table.k, table.log_partition
        )
        return (log_partition - (mean * self._table_logits).sum(0)).clamp_min(0).to(self._dtype)

    # ----------------------------------------------------------------------------------- drawing

    def sample(self, sample_shape: _size = torch.Size()) -> Tensor:
        shape = torch.Size(sample_shape)
        q, k, log_partition, _ = self.table
        with torch.no_grad():
            size = (q.shape[0], shape.numel(), *self.batch_shape)
            y = walk(q, k, torch.rand(size, dtype=q.dtype, device=q.device))
            one = 1 + 0 * log_partition  # NaN if a logit is
            z = self._out(y * one).to(self.logits.dtype)
        return z.reshape(shape + self.batch_shape + self.event_shape)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = self.outcomes()
        values = values.reshape(-1, *(1,) * len(self.batch_shape), *self.event_shape)
        return values.expand(-1, *self.batch_shape, -1) if expand else values

    def outcomes(self) -> Tensor:
        """All k-subsets, ``(N, n)``."""
        n, k = self.event_shape[0], self.k
        if isinstance(k, Tensor):
            raise NotImplementedError(
                "the outcomes of a Subset can be listed where k is the same for the whole batch; "
                + NEED_NO_LIST
            )
        refuse_many(self, log_choose(n, k))
        chosen = torch.tensor(list(combinations(range(n), k)), dtype=torch.int64)
        values = torch.zeros(len(chosen), n).scatter(-1, chosen, 1.0)
        return values.to(self.logits.device, self.logits.dtype)

    def expand(self, batch_shape: _size, _instance: Any = None) -> Subset:
        shape = torch.Size(batch_shape)
        k = self.k.expand(shape) if isinstance(self.k, Tensor) else self.k
        return Subset(k, self.logits.expand(*shape, -1), validate_args=False)._checked_as(self)

    def _checked_as(self, other: Subset) -> Subset:
        self._validate_args = other._validate_args
        return self

    def __repr__(self) -> str:
        k = f"k of {tuple(self.k.shape)}" if isinstance(self.k, Tensor) else f"{self.k}"
        return f"Subset({k} of {self.event_shape[0]}, batch {tuple(self.batch_shape)})"
