"""Replicates: independent runs of a program, side by side in one dimension of its draws."""

from __future__ import annotations

__all__ = ["per_replicate", "replicate_dim", "require_replicates"]

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from .sample_site import Site


def per_replicate(x: Tensor, dim: int) -> Tensor:
    """Sum over all dimensions but ``dim``."""
    x = x.movedim(dim, 0) if dim else x
    return x.flatten(1).sum(1) if x.dim() > 1 else x


def replicate_dim(
    site: Site, shape: tuple[int, ...], replicates: int | None, dim: int | None
) -> int | None:
    """The dimension of a draw that counts replicates; ``None`` if they share it."""
    if replicates is None:
        return None
    if dim is not None:
        which = dim if dim >= 0 else len(site.shape) + dim
        if not 0 <= which < len(shape):
            return None
        if shape[which] != replicates:
            if not site.scored:
                return None
            raise ValueError(
                f"{site.place}: {site.law} has shape {site.shape}, whose dimension dim={dim} is "
                f"expected to count the {replicates} replicates of the cost."
            )
        return which
    if not shape or shape[0] != replicates:
        return None
    if site.baseline and replicates > 1 and replicates in shape[1:]:
        other = 1 + shape[1:].index(replicates)
        raise ValueError(
            f"{site.place}: {site.law} has shape {site.shape}, of which several dimensions may "
            f"count the {replicates} replicates; say which: gengs.differentiable(..., dim=0) or "
            f"dim={other}."
        )
    return 0


def require_replicates(
    name: str, values: Any, costs: Sequence[Tensor], sites: Sequence[Site], dim: int | None
) -> None:
    """Raise where a cost, given to the method ``name``, is not one number per replicate."""
    if not isinstance(values, Tensor):
        raise TypeError(f"program.{name} expects a tensor, but got {type(values).__name__}.")
    scored = [site for site in sites if site.scored]
    firsts = {site.shape[0] for site in scored if site.shape} if dim is None else set()
    known = f", {min(firsts)} by its draws" if len(firsts) == 1 else ""
    expected = (
        f"program.{name} expects one number per replicate, shape (replicates,){known}, but got "
        f"shape {tuple(values.shape)}"
    )
    if values.dim() > 1:
        raise ValueError(f"{expected}; average or sum the other dimensions.")
    alone = values.numel() == 1
    if not alone and len(firsts) == 1 and len(values) not in firsts:
        raise ValueError(
            f"{expected}; the first dimension of a draw counts the replicates, or the one that "
            "gengs.differentiable(dim=) names."
        )
    if costs and values.shape != costs[0].shape:
        raise ValueError(f"{expected}; earlier costs had {tuple(costs[0].shape)}.")
    if alone and any(site.baseline for site in scored):
        raise ValueError(
            f"{expected}: RLOO compares at least two runs; leave the replicates' dimension of the "
            "cost (cost.sum(-1), not cost.sum()), and take program.loss(cost).mean() afterwards; "
            "for one run of the program, by=gengs.REINFORCE()."
        )
