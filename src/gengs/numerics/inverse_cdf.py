"""Exact draws from a table of probabilities by inverting its CDF: one uniform per draw.

The CDF and the uniform are ``float64``: an atom of probability 1e-12 keeps its rate, where a
``float32`` uniform (24 bits) would never reach it.
"""

__all__ = ["antithetic_uniforms", "inverse_cdf_index", "pick"]

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
    batch = probs.shape[:-1]
    if uniforms is None:
        shape = sample_shape + batch
        uniforms = torch.rand(shape, dtype=wide, device=probs.device, generator=generator)
    # samples last, as searchsorted pairs leading dimensions: (*batch, S)
    u = uniforms.to(wide).reshape(sample_shape.numel(), *batch).movedim(0, -1).contiguous()
    if probs.shape[-1] > _MANY:
        index = _in_two_levels(probs, u)
    elif sample_shape.numel() == 1:  # a search would copy the table; not <=, as NaN draws no atom
        cdf = probs.cumsum(-1, dtype=wide)
        index = (~(cdf > u * _just_below(cdf[..., -1:]))).sum(-1, keepdim=True)
    else:
        cdf = probs.cumsum(-1, dtype=wide)
        index = torch.searchsorted(cdf, u * _just_below(cdf[..., -1:]), right=True)
    return index.movedim(-1, 0).reshape(sample_shape + batch)


def _just_below(total: Tensor) -> Tensor:
    # u · total may not round up to it and pass the last atom by
    return total * (1 - 2 * torch.finfo(total.dtype).eps)


_MANY, _BLOCK = 128, 32


def _in_two_levels(probs: Tensor, u: Tensor) -> Tensor:
    """Find a block of atoms first, then the atom in it: ten times less to sum for many atoms."""
    n = probs.shape[-1]
    blocks = -(-n // _BLOCK)
    padded = torch.nn.functional.pad(probs, (0, blocks * _BLOCK - n))
    padded = padded.reshape(*probs.shape[:-1], blocks, _BLOCK)
    ends = padded.sum(-1, dtype=u.dtype).cumsum(-1)  # the CDF at the end of each block
    level = u * _just_below(ends[..., -1:])
    block = torch.searchsorted(ends, level, right=True).clamp_max(blocks - 1)  # (*batch, S)
    before = torch.nn.functional.pad(ends, (1, 0)).gather(-1, block)
    at = block.unsqueeze(-1).expand(*block.shape, _BLOCK)
    within = padded.gather(-2, at).cumsum(-1, dtype=u.dtype)  # (*batch, S, block)
    inside = ((level - before) / (ends.gather(-1, block) - before)).clamp(0, 1)
    inside = inside * _just_below(within[..., -1])
    index = block * _BLOCK + (~(within > inside.unsqueeze(-1))).sum(-1)
    return index.clamp_max(n - 1).where(ends[..., -1:] == ends[..., -1:], n)  # NaN draws no atom


def antithetic_uniforms(shape: torch.Size, batch: torch.Size, device: torch.device) -> Tensor:
    """Uniforms of shape ``shape + batch``, stratified over ``shape`` for each batch element.

    They cover [0, 1) more evenly than independent ones: each coordinate gets its own Latin
    hypercube, in antithetic pairs (u, 1 - u). Every single uniform is uniform, so every draw made
    from one is exact, while averages vary less.
    """
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


def pick(table: Tensor, index: Tensor) -> Tensor:
    """The entries of ``(*batch, n)`` at indices that broadcast with the batch."""
    shape = torch.broadcast_shapes(index.shape, table.shape[:-1])
    table = table.expand(*shape, table.shape[-1])
    return table.gather(-1, index.expand(shape).unsqueeze(-1)).squeeze(-1)
