"""Faces of a drawn order that are made of its swaps: the matrix, and values in drawn order.

Each adds to its value, for every swap that can happen, a zero times what that swap would change
(:func:`~gengs.laws.ranking_swaps.swap_coordinates`). Ranks and members have rules of their own.
"""

__all__ = ["arranged", "matrix_of"]

import torch
from torch import Tensor
from torch.nn.functional import pad

from .ranking_swaps import swap_coordinates


def matrix_of(logits: Tensor, order: Tensor, rows: Tensor) -> Tensor:
    """The one-hot ``rows`` of an order, ``(…, k, n)``, with the swap rule's gradient."""
    between, enters = swap_coordinates(logits, order)
    value = rows + _exchanged(between.unsqueeze(-1) * rows.diff(dim=-2))
    if order.shape[-1] == logits.shape[-1]:
        return value
    entering = enters - rows[..., -1, :] * enters.sum(-1, keepdim=True)
    return torch.cat([value[..., :-1, :], value[..., -1:, :] + entering.unsqueeze(-2)], -2)


def arranged(logits: Tensor, order: Tensor, values: Tensor) -> Tensor:
    """The items' values ``(…, n, d)`` in drawn order, ``(…, k, d)``, with the same gradient."""
    between, enters = (x.unsqueeze(-1).to(values.dtype) for x in swap_coordinates(logits, order))
    index = order.unsqueeze(-1).expand(*order.shape, values.shape[-1])
    placed = values.gather(-2, index)
    # padding stays in its places, and its values may be anything
    padding = (logits.detach() == -torch.inf).expand(values.shape[:-1])
    still = padding.gather(-1, order[..., 1:]).unsqueeze(-1)
    value = placed + _exchanged(between * placed.diff(dim=-2).detach().masked_fill(still, 0))
    if order.shape[-1] == logits.shape[-1]:
        return value
    change = (values - placed[..., -1:, :]).detach().masked_fill(padding.unsqueeze(-1), 0)
    gain = (enters * change).sum(-2, keepdim=True)
    return torch.cat([value[..., :-1, :], value[..., -1:, :] + gain], -2)


def _exchanged(change: Tensor) -> Tensor:
    """What swaps of neighbours change at k places: the m-th adds at m and takes from m + 1."""
    return pad(change, (0, 0, 0, 1)) - pad(change, (0, 0, 1, 0))
