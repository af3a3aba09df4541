r"""Rankings: in which order? Plackett-Luce, for all n items or the first k places.

.. math::
    P(\pi) = \prod_{m=1}^{k} \frac{w_{\pi_m}}{\sum_{l \ge m} w_{\pi_l}}, \qquad w = e^\theta

Items are drawn one after the other without replacement, each with a probability proportional to
its weight; the same order comes from sorting :math:`\theta` + Gumbel noise downwards.

A drawn order has several faces. The event is the matrix P, ``(k, n)``, with :math:`P_{mi} = 1`
where item i has place m. Each face is made from the drawn indices and carries its gradient at its
own cost (:mod:`gengs.laws.ranking_swaps`); several faces of one draw may be used together.

==========================  ====================  ========
face                        shape                 cost
==========================  ====================  ========
``q.matrix(order)``         ``(k, n)``            O(k n)
``q.ranks(order)``          ``(n,)``              O(n)
``q.members(order)``        ``(n,)``              O(n)
``q.arrange(order, x)``     ``(k, *event of x)``  O(n d)
==========================  ====================  ========
"""

from __future__ import annotations

__all__ = ["PlackettLuce"]

from itertools import permutations
from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints
from torch.types import _size

from ..numerics.gumbel import log_exponential
from ..numerics.sorting import highest_first
from ..numerics.tracing import any_of, set_shapes, validates
from ..tables.discrete import Discrete
from .outcomes import log_orders, refuse_many, require_tensor
from .ranking_faces import arranged, matrix_of
from .ranking_log_prob import LAST, log_prob_of
from .ranking_members import members_of
from .ranking_orders import Orders, for_batch, require_order
from .ranking_swaps import ranks_of


class PlackettLuce(Discrete):
    r"""The distribution of orders, :math:`P(\pi) = \prod_m w_{\pi_m} / \sum_{l \ge m} w_{\pi_l}`.

    Args:
        logits: The scores :math:`\theta`, ``(*batch, n)``; the larger, the earlier. ``-inf`` marks
            padding of a shorter list, which comes after all items, in its own order.
        k: How many places count, 1 to n; all by default.
        validate_args: Whether to check the arguments; on by default.

    Example:
        >>> scores = torch.tensor([0.0, 500.0, 1000.0], requires_grad=True)
        >>> q = PlackettLuce(logits=scores)
        >>> order = q.sample_order()
        >>> order.tolist(), q.ranks(order).tolist()
        ([2, 1, 0], [2.0, 1.0, 0.0])
        >>> q.arrange(order, torch.tensor([10.0, 20.0, 30.0])).tolist()
        [30.0, 20.0, 10.0]
    """

    arg_constraints = {"logits": constraints.independent(constraints.real, 1)}
    has_enumerate_support = True

    def __init__(
        self, logits: Tensor, k: int | None = None, validate_args: bool | None = None
    ) -> None:
        if not isinstance(logits, Tensor) or not logits.is_floating_point() or not logits.dim():
            got = type(logits).__name__
            if isinstance(logits, Tensor):
                got = f"{logits.dtype} of shape {tuple(logits.shape)}"
            raise ValueError(
                "PlackettLuce expects `logits` as a floating-point tensor of shape (*batch, n), "
                f"but got {got}."
            )
        n = logits.shape[-1]
        if n == 0:
            raise ValueError(
                f"PlackettLuce expects at least one item, but got shape {tuple(logits.shape)}."
            )
        if k is not None and (isinstance(k, bool) or not isinstance(k, Integral)):
            raise ValueError(f"PlackettLuce expects an integer `k` or None, but got {k!r}.")
        self.k = n if k is None else int(k)
        if not 1 <= self.k <= n:
            raise ValueError(
                f"PlackettLuce expects `k` between 1 and the number of items, {n}, but got {k}."
            )
        self.logits = logits
        event = torch.Size([self.k, n])
        set_shapes(self, logits.shape[:-1], event, validates(validate_args))
        if self._validate_args:
            bad = logits.detach().isnan() | (logits.detach() == torch.inf)
            empty = (logits.detach() == -torch.inf).all(-1)
            if any_of(bad, empty):
                what = "NaN or +inf" if any_of(bad) else "a row that is all -inf (no item)"
                raise ValueError(
                    f"PlackettLuce expects `logits` without {what}, but got some in shape "
                    f"{tuple(logits.shape)}."
                )

    @constraints.dependent_property(is_discrete=True, event_dim=2)
    def support(self) -> constraints.Constraint:
        """Matrices of k rows, each the one-hot vector of another item."""
        return Orders()

    @property
    def items(self) -> int:
        """How many items there are, n."""
        return self.logits.shape[-1]

    @property
    def _dtype(self) -> torch.dtype:
        """Of numbers; matrices and members are 0 and 1, and have the type of the logits."""
        return torch.promote_types(self.logits.dtype, torch.float32)

    # ------------------------------------------------------------------------------------- drawing

    def sample_order(self, sample_shape: _size = torch.Size()) -> Tensor:
        """Exact draws as indices of items in their places, ``(*sample, *batch, k)``."""
        with torch.no_grad():
            return self.best(self.perturbed(torch.Size(sample_shape)))

    def perturbed(
        self, shape: torch.Size = torch.Size(), generator: torch.Generator | None = None
    ) -> Tensor:
        """The scores plus Gumbel noise, ``(*sample, *batch, n)``."""
        logits = self.logits.to(self._dtype)
        shape = shape + logits.shape
        size = torch.Size([shape.numel()])
        noise = log_exponential(size, logits.dtype, logits.device, generator)
        return logits - noise.view(shape)

    def best(self, scores: Tensor) -> Tensor:
        """The items of the k highest scores, in order; padding stays in its own order."""
        if self.k < self.items:
            places = torch.linspace(LAST, 2 * LAST, self.items, device=scores.device)
            return scores.maximum(places.to(scores.dtype)).topk(self.k).indices
        return highest_first(scores)

    def sample(self, sample_shape: _size = torch.Size()) -> Tensor:
        return self.one_hot(self.sample_order(sample_shape)).to(self.logits.dtype)

    def one_hot(self, order: Tensor) -> Tensor:
        """The matrix of an order, ``(…, k, n)``, without a gradient, in float32 at least."""
        item = torch.arange(self.items, device=order.device)
        return (order.unsqueeze(-1) == item).to(self._dtype)

    # ----------------------------------------------------------------------- the faces of an order

    def _checked(self, order: Tensor) -> Tensor:
        """An order of indices, for each element of the batch."""
        order = require_order(order, self.k, self.items, self._validate_args)
        return for_batch(order, self.batch_shape)

    def matrix(self, order: Tensor) -> Tensor:
        """The matrix of an order, ``(…, k, n)``, with the swap rule's gradient."""
        return self.wide_matrix(order).to(self.logits.dtype)

    def wide_matrix(self, order: Tensor) -> Tensor:
        """The same in float32 at least."""
        order = self._checked(order)
        return matrix_of(self.logits.to(self._dtype), order, self.one_hot(order))

    def ranks(self, order: Tensor) -> Tensor:
        """The place of each item, ``(…, n)``, from 0; k for those beyond the first k.

        The gradient is exact for costs that are linear or quadratic in the ranks, and biased for
        others: of ``gains / torch.log2(2 + ranks)`` it is some 17 % too large. Give the discount to
        places instead, ``q.arrange(order, gains) / torch.log2(2 + torch.arange(k))``, which is
        exact. Ranks are numbers up to n, so they are float32 at least.
        """
        return ranks_of(self.logits.to(self._dtype), self._checked(order))

    def members(self, order: Tensor) -> Tensor:
        """Which items are among the first k, ``(…, n)``, as 0 and 1; padding never is."""
        members = members_of(self.logits.to(self._dtype), self._checked(order))
        return members.to(self.logits.dtype)

    def arrange(self, order: Tensor, values: Tensor) -> Tensor:
        """The items' values in drawn order: ``(…, n, *rest)`` to ``(…, k, *rest)``.

        The gradient in the scores is exact for costs that are linear or quadratic in the result,
        such as DCG (any discount by place, times a value), and for products of values at different
        places. It has the type of ``values``.

        Args:
            order: The drawn indices, ``(*sample, *batch, k)``.
            values: What belongs to each item, ``(*batch, n, *rest)``; it may carry a gradient.
                Those of padding only move to its places.
        """
        order, rest = self._checked(order), self._rest(values)
        shape = (*order.shape[:-1], self.items)
        wide = values.expand(*shape, *rest).reshape(*shape, rest.numel())  # (…, n, d)
        return arranged(self.logits.to(self._dtype), order, wide).reshape(*order.shape, *rest)

    def _rest(self, values: Tensor) -> torch.Size:
        """The shape of one item's value."""
        if not isinstance(values, Tensor) or values.dtype == torch.bool:
            kind = values.dtype if isinstance(values, Tensor) else type(values).__name__
            raise TypeError(f"PlackettLuce.arrange expects a tensor of numbers, but got {kind}.")
        wanted = (*self.batch_shape, self.items)
        lead = len(wanted)
        pairs = zip(values.shape, wanted, strict=False)
        if values.dim() < lead or any(a not in (1, b) for a, b in pairs):
            raise ValueError(
                f"PlackettLuce.arrange expects `values` of shape (*batch, n, *rest) with batch "
                f"{tuple(self.batch_shape)} and n = {self.items}, but got {tuple(values.shape)}."
            )
        return values.shape[lead:]

    # ------------------------------------------------------------------------- what is known of it

    def order_of(self, value: Tensor) -> Tensor:
        """The indices of a matrix ``(…, k, n)``."""
        return value.to(self._dtype).argmax(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        require_tensor("PlackettLuce", value)
        if value.shape[-2:] != self.event_shape:
            raise ValueError(
                f"PlackettLuce.log_prob expects matrices of shape {tuple(self.event_shape)}, but "
                f"got a `value` of shape {tuple(value.shape)}."
            )
        if self._validate_args:
            wrong = ~self.support.check(value)
            if any_of(wrong):
                raise ValueError(
                    "PlackettLuce.log_prob expects matrices whose rows are one-hot vectors of "
                    f"different items, but {int(wrong.sum())} of {wrong.numel()} in `value` are "
                    "not."
                )
        return self.log_prob_order(self.order_of(value))

    def log_prob_order(self, order: Tensor) -> Tensor:
        """The log-probability of orders given as indices, ``(*sample, *batch, k)``."""
        order = self._checked(order)
        return log_prob_of(self.logits, order, self.k).to(self._dtype)

    @property
    def mode(self) -> Tensor:
        """The items sorted by their scores."""
        return self.one_hot(self.best(self.logits.to(self._dtype))).to(self.logits.dtype)

    @property
    def mean(self) -> Tensor:
        """Of the first place alone, the softmax; there is no closed form for more."""
        if self.k == 1:
            return self.logits.to(self._dtype).softmax(-1).unsqueeze(-2)
        raise NotImplementedError(
            "PlackettLuce has no closed form of its mean beyond k = 1; average draws, or enumerate "
            "the orders of a few items."
        )

    @property
    def variance(self) -> Tensor:
        """Of each entry of the matrix, where the mean is known."""
        mean = self.mean
        return mean * (1 - mean)

    def entropy(self) -> Tensor:
        if self.k == 1:
            log_p = self.logits.to(self._dtype).log_softmax(-1)
            return -(log_p.exp() * log_p.masked_fill(log_p == -torch.inf, 0.0)).sum(-1)
        raise NotImplementedError(
            "PlackettLuce has no closed form of its entropy beyond k = 1; -q.log_prob(q.sample()) "
            "is an unbiased estimate, and RLOO differentiates it."
        )

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = self.one_hot(self.outcomes()).to(self.logits.dtype)
        values = values.reshape(-1, *(1,) * len(self.batch_shape), *self.event_shape)
        return values.expand(-1, *self.batch_shape, -1, -1) if expand else values

    def outcomes(self) -> Tensor:
        """All orders of the first k places as indices, ``(N, k)``."""
        refuse_many(self, log_orders(self.items, self.k))
        orders = torch.tensor(list(permutations(range(self.items), self.k)), dtype=torch.int64)
        return orders.to(self.logits.device)

    def expand(self, batch_shape: _size, _instance: Any = None) -> PlackettLuce:
        logits = self.logits.expand(*torch.Size(batch_shape), -1)
        law = PlackettLuce(logits, self.k, validate_args=False)
        law._validate_args = self._validate_args
        return law

    def __repr__(self) -> str:
        what = f"{self.items}" if self.k == self.items else f"first {self.k} of {self.items}"
        return f"PlackettLuce({what}, batch {tuple(self.batch_shape)})"
