"""Ridge regression whose strength is chosen on data that were left out, with a memory."""

from __future__ import annotations

__all__ = ["Memory", "fit"]

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

_RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)


@dataclass(frozen=True)
class Memory:
    """Sums of squares of earlier regressions, which fade."""

    squares: Tensor
    products: Tensor
    size: float

    @classmethod
    def after(cls, before: Memory | None, x: Tensor, y: Tensor, fading: float) -> Memory:
        """What is remembered once this regression has been made, too."""
        x, y = x - x.mean(0), y - y.mean()
        squares, products, size = x.T @ x, x.T @ y, float(len(y))
        if before is not None and before.squares.shape == squares.shape:
            squares = squares + fading * before.squares
            products = products + fading * before.products
            size += fading * before.size
        return cls(squares, products, size)


def fit(x: Tensor, y: Tensor, memory: Memory | None, least: Tensor) -> Tensor:
    """Coefficients of ``y`` on the columns of ``x``, none of them where that predicts nothing.

    A column counts as varying by ``least`` at the least.

    The ridge, and whether earlier regressions help, is chosen on a third of the rows.
    """
    middle = x.mean(0)
    x, y = x - middle, y - y.mean()
    scale = torch.maximum(x.std(0), least)
    scale = torch.where(scale > 1e-12 * scale.max().clamp_min(1e-300), scale, torch.inf)
    x = x / scale
    left_out = torch.arange(len(y)) % 3 == 0
    train = ~left_out
    best, choice = float(y[left_out].square().mean()), None
    pasts: list[Memory | None] = [None]
    if memory is not None and len(memory.products) == len(scale):
        by_scale = memory.squares / scale / scale.unsqueeze(-1)
        pasts.append(Memory(by_scale, memory.products / scale, memory.size))
    part = x[train]
    sums = part.T @ part, part.T @ y[train], float(train.sum())
    for past in pasts:
        solve = _solver(*sums, past)
        for ridge in _RIDGES:
            error = float((y[left_out] - x[left_out] @ solve(ridge)).square().mean())
            if error < best:
                best, choice = error, (past, ridge)
    if choice is None:
        return torch.zeros_like(middle)
    past, ridge = choice
    return _solver(x.T @ x, x.T @ y, float(len(y)), past)(ridge) / scale


def _solver(
    squares: Tensor, products: Tensor, size: float, past: Memory | None
) -> Callable[[float], Tensor]:
    if past is not None:
        squares, products = squares + past.squares, products + past.products
        size += past.size
    own = torch.eye(len(products), dtype=squares.dtype, device=squares.device)

    def solve(ridge: float) -> Tensor:
        root = torch.linalg.cholesky(squares + ridge * size * own)
        return torch.cholesky_solve(products.unsqueeze(-1), root).squeeze(-1)

    return solve
