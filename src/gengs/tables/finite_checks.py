"""What a table is made of: tensors that fit each other, and atoms that may be told apart."""

from __future__ import annotations

__all__ = ["batch_of", "may_repeat", "require_values", "require_weights"]

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from ..numerics.tracing import any_of

if TYPE_CHECKING:
    from .finite import Finite


def require_weights(atoms: Any, name: str, given: Any) -> None:
    """Raise unless atoms and their ``logits`` or ``probs`` are tensors, of at least one atom."""
    for what, value in (("atoms", atoms), (name, given)):
        if not isinstance(value, Tensor):
            raise TypeError(f"Finite expects a tensor as `{what}`, but got {type(value).__name__}.")
    if given.dim() == 0 or given.shape[-1] == 0:
        raise ValueError(
            "Finite expects at least one atom in the last dimension of "
            f"`{name}`, but got shape {tuple(given.shape)}."
        )


def batch_of(atoms: Tensor, logits: Tensor, event_dim: int) -> torch.Size:
    """The batch shape of atoms and probabilities together; raises where they do not fit."""
    n, where_n = logits.shape[-1], -1 - event_dim
    if atoms.dim() < 1 + event_dim or atoms.shape[where_n] != n:
        raise ValueError(
            f"Finite expects `atoms` of shape (*batch, {n}, *event) with event_dim={event_dim}"
            f" and {n} probabilities, but got {tuple(atoms.shape)};"
            " for vector atoms pass event_dim=1."
        )
    batch, own = logits.shape[:-1], atoms.shape[:where_n]
    try:
        return torch.broadcast_shapes(batch, own) if own else batch
    except RuntimeError:
        raise ValueError(
            "Finite expects the batch shapes of `atoms` and of the probabilities to broadcast, "
            f"but got {tuple(own)} and {tuple(batch)}; for vector atoms pass event_dim=1."
        ) from None


def may_repeat(atoms: Tensor, event_dim: int) -> Tensor:
    """Whether shared atoms may hold one value twice: certain for numbers in order only."""
    n = atoms.shape[-1 - event_dim]
    shared = atoms.dim() == 1 + event_dim  # others are made by rules, not by hand
    if shared and n <= 10_000 and not event_dim:
        return atoms.detach().diff() <= 0
    return atoms.new_full((1,), shared and n <= 10_000).bool()


def require_values(law: Finite, value: Tensor, index: Tensor, found: Tensor) -> None:
    """Raise where values do not go with the batch, or are none of the atoms."""
    try:
        torch.broadcast_shapes(index.shape, law.batch_shape)
    except RuntimeError:
        raise ValueError(
            "Finite.log_prob expects values that broadcast with the batch shape "
            f"{tuple(law.batch_shape)}, but got shape {tuple(value.shape)}."
        ) from None
    if law._validate_args and any_of(~found):
        raise ValueError(
            f"Finite.log_prob expects values among the {law.num_atoms} atoms, but "
            f"{int((~found).sum())} of {found.numel()} in `value` (shape {tuple(value.shape)})"
            " are not; pass validate_args=False to give them probability zero."
        )
