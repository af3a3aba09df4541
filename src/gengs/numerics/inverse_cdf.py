"""Exact draws from a table of probabilities by inverting its CDF: one uniform per draw.

The CDF and the uniform are ``float64``: an atom of probability 1e-12 keeps its rate, where a
``float32`` uniform (24 bits) would never reach it.
"""

__all__ = ["inverse_cdf_index", "pick"]

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
    # Apple's GPUs have no float64; their draws are as fine as float32 allows.
    wide = torch.float32 if probs.device.type == "mps" else torch.float64
    cdf = probs.cumsum(-1, dtype=wide)
    batch = cdf.shape[:-1]
    if uniforms is None:
        shape = sample_shape + batch
        uniforms = torch.rand(shape, dtype=wide, device=probs.device, generator=generator)
    # scaled by just under the total: u·total may not round up to it and pass the last atom by
    level = uniforms.to(wide) * (cdf[..., -1] * (1 - 2 * torch.finfo(wide).eps))
    if sample_shape.numel() == 1:  # a search would copy the table; not <=, as NaN draws no atom
        return (~(cdf > level.reshape(*batch, 1))).sum(-1).view(level.shape)
    # samples last, as searchsorted pairs leading dimensions: (*batch, S)
    flat = level.reshape(sample_shape.numel(), *batch).movedim(0, -1).contiguous()
    index = torch.searchsorted(cdf, flat, right=True)
    return index.movedim(-1, 0).reshape(sample_shape + batch)


def pick(table: Tensor, index: Tensor) -> Tensor:
    """The entries of ``(*batch, n)`` at indices that broadcast with the batch."""
    shape = torch.broadcast_shapes(index.shape, table.shape[:-1])
    table = table.expand(*shape, table.shape[-1])
    return table.gather(-1, index.expand(shape).unsqueeze(-1)).squeeze(-1)
