"""Sums over a ``(*batch, n)`` table that cost little: short rows are torch's slow case.

Matrix products do them, in the precision of their factors: under autocast, torch would take them to
bfloat16, which has three digits and cannot hold a count of 257.
"""

from __future__ import annotations

__all__ = ["product", "row_sums", "sum_to"]

import torch
from torch import Tensor

from .constant import constant


def product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` in their own precision, also under autocast."""
    if not a.is_meta and torch.is_autocast_enabled(a.device.type):  # meta has no autocast
        with torch.autocast(a.device.type, enabled=False):
            return a @ b
    return a @ b


def row_sums(table: Tensor) -> Tensor:
    """``table.sum(-1, keepdim=True)`` as a matrix product: a third of the time for short rows."""
    n = table.shape[-1]
    ones = _ones(n, table.dtype, table.device)
    return product(table.reshape(-1, n), ones).view(*table.shape[:-1], 1)


@constant
def _ones(n: int, dtype: torch.dtype, device: torch.device) -> Tensor:
    return torch.ones(n, 1, dtype=dtype, device=device)


def sum_to(gradient: Tensor, shape: torch.Size) -> Tensor:
    """A gradient summed over what was broadcast; nothing is copied where nothing was."""
    if gradient.numel() == shape.numel():
        return gradient.reshape(shape)
    return gradient.sum_to_size(shape)
