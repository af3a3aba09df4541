"""Exact draws from a table of probabilities by inverting its CDF: one uniform per draw.

The CDF and the uniform are ``float64``: an atom of probability 1e-12 keeps its rate, where a
``float32`` uniform (24 bits) would never reach it.
"""

from __future__ import annotations

__all__ = ["index_where", "inverse_cdf_index", "wide_cdf"]

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
    cdf = wide_cdf(probs)
    if uniforms is None:
        shape = sample_shape + probs.shape[:-1]
        uniforms = torch.rand(shape, dtype=cdf.dtype, device=probs.device, generator=generator)
    return index_where(cdf, sample_shape, uniforms)


def wide_cdf(probs: Tensor) -> Tensor:
    """The cumulative sums of a table, in the widest arithmetic the device has."""
    # Apple's GPUs have no float64; their draws are as fine as float32 allows.
    wide = torch.float32 if probs.device.type == "mps" else torch.float64
    return probs.cumsum(-1, dtype=wide)


def index_where(cdf: Tensor, sample_shape: torch.Size, uniforms: Tensor) -> Tensor:
    """The first atom whose CDF exceeds the uniform, scaled to the CDF's end."""
    batch = cdf.shape[:-1]
    # scaled by just under the total: u·total may not round up to it and pass the last atom by
    top = cdf[..., -1] * (1 - 2 * torch.finfo(cdf.dtype).eps)
    level = uniforms.to(cdf.dtype) * top
    # samples last, as searchsorted pairs leading dimensions: (*batch, S)
    if sample_shape.numel() == 1:  # nothing to move
        return torch.searchsorted(cdf, level.reshape(*batch, 1), right=True).view(level.shape)
    flat = level.reshape(sample_shape.numel(), *batch).movedim(0, -1).contiguous()
    index = torch.searchsorted(cdf, flat, right=True)
    return index.movedim(-1, 0).reshape(sample_shape + batch)
