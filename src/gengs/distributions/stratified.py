"""Uniforms for several draws at once that cover [0, 1) more evenly than independent ones.

Each coordinate gets its own Latin hypercube, in mirrored pairs (u, 1 - u): every single uniform is
uniform, so every draw made from one is exact, while their averages vary less.
"""

from __future__ import annotations

__all__ = ["stratified_uniforms"]

import torch
from torch import Tensor


def stratified_uniforms(shape: torch.Size, batch: torch.Size, device: torch.device) -> Tensor:
    """Uniforms of shape ``shape + batch``, stratified over ``shape`` for each batch element."""
    wide = torch.float32 if device.type == "mps" else torch.float64
    draws = shape.numel()
    if draws <= 1:
        return torch.rand(shape + batch, dtype=wide, device=device)
    pairs = (draws + 1) // 2
    # a random order of the strata for each element: argsort of uniforms
    strata = torch.rand((pairs, *batch), device=device).argsort(0)
    u = (strata + torch.rand((pairs, *batch), dtype=wide, device=device)) / pairs
    both = torch.cat([u, 1 - u]).clamp_max(1 - torch.finfo(wide).eps)
    return both[:draws].reshape(shape + batch)
