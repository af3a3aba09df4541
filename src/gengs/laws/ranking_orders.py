"""What is an order: its matrix as a constraint, its indices checked."""

__all__ = ["Orders", "for_batch", "require_order"]

import torch
from torch import Tensor
from torch.distributions import constraints

from ..numerics.tracing import any_of


class Orders(constraints.Constraint):
    """Matrices of k rows, each the one-hot vector of another item."""

    is_discrete = True
    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        binary = ((value == 0) | (value == 1)).flatten(-2).all(-1)
        return binary & (value.sum(-1) == 1).all(-1) & (value.sum(-2) <= 1).all(-1)


def require_order(order: Tensor, k: int, items: int, validate: bool) -> Tensor:
    """The indices ``(…, k)`` of different items; raises where they are something else.

    Args:
        order: What may be an order.
        k: How many places it has.
        items: How many items there are.
        validate: Whether to look at the values.
    """
    if not isinstance(order, Tensor) or order.dtype not in (torch.int64, torch.int32):
        kind = order.dtype if isinstance(order, Tensor) else type(order).__name__
        raise TypeError(f"PlackettLuce expects an order of integer indices, but got {kind}.")
    if order.shape[-1:] != (k,):
        raise ValueError(
            f"PlackettLuce expects the indices of {k} items in the last dimension of an order, but "
            f"got shape {tuple(order.shape)}."
        )
    if validate:
        index = order.detach().to(torch.int64).clamp(0, items - 1)
        there = torch.zeros(*order.shape[:-1], items, device=order.device)
        repeated = there.scatter(-1, index, 1.0).sum(-1) < k
        if any_of(repeated, index != order):
            raise ValueError(
                f"PlackettLuce expects each of the items 0 … {items - 1} at most once in an order, "
                "but one is repeated or is no item."
            )
    return order


def for_batch(order: Tensor, batch: torch.Size) -> Tensor:
    """An order for each element of a batch, ``(*sample, *batch, k)``."""
    lead = order.shape[:-1]
    if lead[max(0, len(lead) - len(batch)) :] == batch:
        return order
    try:
        return order.expand(*torch.broadcast_shapes(lead, batch), -1)
    except RuntimeError:
        raise ValueError(
            f"PlackettLuce expects orders of shape (*sample, *batch, k) with batch {tuple(batch)}, "
            f"but got an order of shape {tuple(order.shape)}."
        ) from None
