"""The weights that a law on finitely many atoms is given: their dtype, logarithms and faults."""

from __future__ import annotations

__all__ = ["at_least_float32", "first_row", "log_of_weights"]

import torch
from torch import Tensor

from .validation import inspectable


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in: half precision is too coarse for normalising, integers too."""
    return (
        torch.promote_types(dtype, torch.float32)
        if dtype.is_floating_point
        else torch.get_default_dtype()
    )


def log_of_weights(weights: Tensor, validate: bool) -> Tensor:
    """Logarithms of non-negative weights; zero becomes ``-inf`` and sends no NaN back."""
    if validate and inspectable(weights) and (weights < 0).any():
        raise ValueError(
            "Finite expects non-negative `probs`, "
            f"but the smallest is {weights.min().item():.4g} (shape {tuple(weights.shape)})."
        )
    possible = weights > 0
    # double where: log(0) would send 0 · inf = NaN back into the network that made the weights
    return weights.where(possible, 1.0).log().where(possible | weights.isnan(), -torch.inf)


def first_row(bad: Tensor) -> tuple[int, ...]:
    """Where the first bad row is, for a message."""
    return tuple(int(i) for i in bad.nonzero()[0])
