"""Score draws on a boundary: from a value that is sure a draw never leaves.

At a rate of 0, or a probability of 0 or 1, the one-sided derivative of an expectation is a
difference of costs, of which a draw at the boundary shows one side only: the score has no part in
it. That is an error only if the parameter would leave the boundary: a rate ``theta * infected``
stays 0 where nobody is infected, whatever ``theta``.
"""

from __future__ import annotations

__all__ = ["keep_boundary", "say_what_never_leaves"]

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..distributions.tracing import tensors_of
from ..estimators import BoundaryWarning
from ..estimators.factors import Factors
from .site import Site


def keep_boundary(site: Site, law: Distribution) -> None:
    """Remember the parameters of a draw that lie on a boundary, until the loss is asked for.

    Args:
        site: The draw, which keeps a weighted sum of them.
        law: The law of one draw.
    """
    edge = Factors(law, site.rule).boundary()
    if edge is None or not edge.any():
        return
    for _, _, parameter in tensors_of(law):
        if not parameter.requires_grad:
            continue
        mask = edge if edge.shape == parameter.shape else edge.any(-1)
        if mask.shape == parameter.shape:
            there = parameter[mask]  # no two weights are alike, so that nothing cancels
            weights = torch.linspace(1, 2, len(there), dtype=there.dtype, device=there.device)
            site.edge = there @ weights


def say_what_never_leaves(sites: Sequence[Site]) -> None:
    """Warn of lines whose parameters would leave a boundary, if the draws could."""
    edges: dict[tuple[str, int, str], list[Tensor]] = {}
    for site in sites:
        if site.edge is not None:
            edges.setdefault((site.file, site.line, site.law), []).append(site.edge)
            site.edge = None
    for (file, line, law), kept in edges.items():
        total = torch.stack(kept).sum()
        leaves = list(_leaves(total))
        slopes = torch.autograd.grad(total, leaves, retain_graph=True) if leaves else ()
        if any(bool(slope.any()) for slope in slopes):
            warnings.warn_explicit(
                f"{Site(law, file, line, '').place}: some parameter of {law} lies on a boundary (a "
                "rate of 0, a probability of 0 or 1), from which a draw never leaves: the score "
                "has no part of the one-sided derivative there; the path has it.",
                BoundaryWarning,
                file,
                line,
            )


def _leaves(value: Tensor) -> Iterator[Tensor]:
    """What a gradient of ``value`` would be kept by."""
    todo: list[Any] = [value.grad_fn]
    seen: set[Any] = set()
    while todo:
        node = todo.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        if hasattr(node, "variable"):
            yield node.variable
        todo.extend(following for following, _ in node.next_functions)
