"""Scores for n elements that were given by their number alone, as on the command line."""

__all__ = ["normal_scores"]

import torch
from torch import Tensor

_GOLDEN = 0.6180339887498949


def normal_scores(n: Tensor, what: str) -> Tensor:
    """Quantiles of a standard normal variable in no order, ``(n,)``, which require a gradient."""
    size = int(n)
    if size != n or not 1 <= size <= 100_000:
        raise ValueError(f"expected a number of {what} between 1 and 100,000, but got {n.item()}.")
    places = (torch.arange(size, dtype=torch.float64) * _GOLDEN % 1).argsort()
    scores = torch.special.ndtri((places.double() + 0.5) / size)
    return scores.float().requires_grad_()
