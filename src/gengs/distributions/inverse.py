"""Exact draws from a table of probabilities by inverting its CDF: one uniform per draw.

The CDF and the uniform are ``float64``: an atom of probability 1e-12 keeps its rate, where a
``float32`` uniform (24 bits) would never reach it.
"""

from __future__ import annotations

__all__ = ["inverse_cdf_index"]

import torch
from torch import Tensor


def inverse_cdf_index(
    probs: Tensor,
    sample_shape: torch.Size,
    generator: torch.Generator | None = None,
    uniforms: Tensor | None = None,
) -> Tensor:
    """Indices into the last dimension of ``probs``, of shape ``sample_shape + batch``.

    ``uniforms`` in [0, 1), of that shape, may be given (stratified or antithetic ones, say).
    """
    batch = probs.shape[:-1]
    # Apple's GPUs have no float64; their draws are as fine as float32 allows.
    wide = torch.float32 if probs.device.type == "mps" else torch.float64
    cdf = probs.to(wide).cumsum(-1)
    if uniforms is None:
        uniforms = torch.rand(
            sample_shape + batch, dtype=wide, device=probs.device, generator=generator
        )
    # scaled by just under the total: u·total may not round up to it and pass the last atom by
    top = cdf[..., -1:] * (1 - 2 * torch.finfo(wide).eps)
    # samples last, as searchsorted pairs leading dimensions: (*batch, S)
    flat = uniforms.to(wide).reshape(sample_shape.numel(), *batch).movedim(0, -1)
    index = torch.searchsorted(cdf, (flat * top).contiguous(), right=True)
    return index.movedim(-1, 0).reshape(sample_shape + batch)
