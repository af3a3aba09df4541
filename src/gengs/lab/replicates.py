"""The tensors a law was built from, and copies of a law with separate gradients.

A law is built from leaves (``rate``) through operations (``truncate``). To get many independent
gradients at once, :func:`split_parameters` gives each replicate its own copy of the law's tables,
and pulls their gradients back to the leaves in one batched pass.
"""

from __future__ import annotations

__all__ = ["leaves_of", "pull_back", "split_parameters"]

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge
from torch.distributions import Distribution


def leaves_of(law: Distribution) -> list[Tensor]:
    """The leaf tensors with a gradient that the law was built from, in a fixed order."""
    nodes = [get_gradient_edge(tensor).node for tensor in _tensors(law) if tensor.requires_grad]
    leaves: dict[int, Tensor] = {}
    seen: set[Any] = set()
    for node in nodes:  # it grows: breadth first
        if node not in seen:
            seen.add(node)
            if isinstance(leaf := getattr(node, "variable", None), Tensor):
                leaves[id(leaf)] = leaf
            nodes += [following for following, _ in node.next_functions if following is not None]
    return list(leaves.values())


def pull_back(
    gradients: Sequence[Tensor | None],
    originals: Sequence[Tensor],
    leaves: Sequence[Tensor],
    replicates: int,
) -> Tensor:
    """Gradients of a law's tensors, for each replicate, as gradients of the leaves, one a row.

    All replicates share the way from the leaves to the tensors: where it is small, its Jacobian
    is taken once for all of them.
    """
    total = torch.zeros(replicates, sum(leaf.numel() for leaf in leaves))
    for gradient, original in zip(gradients, originals, strict=True):
        if gradient is None:  # a law may hold what an estimator did not use
            continue
        size = original.numel()
        if size > replicates:
            rows = _pulled(original, leaves, gradient)
        else:
            basis = torch.eye(size, dtype=original.dtype).reshape(size, *original.shape)
            jacobian = _pulled(original, leaves, basis)
            rows = gradient.reshape(replicates, -1).to(jacobian.dtype) @ jacobian
        total = total.to(rows.dtype) + rows
    return total


def _pulled(original: Tensor, leaves: Sequence[Tensor], gradients: Tensor) -> Tensor:
    """Several gradients of one tensor, to the leaves: ``(how many, total size)``."""
    many = len(gradients)
    parts = torch.autograd.grad(
        *(original, list(leaves), gradients),
        retain_graph=True,
        allow_unused=True,
        is_grads_batched=True,
    )
    columns = [
        torch.zeros(many, leaf.numel(), dtype=leaf.dtype)
        if part is None
        else part.reshape(many, -1)
        for part, leaf in zip(parts, leaves, strict=True)
    ]
    return torch.cat(columns, -1)


def split_parameters(
    law: Distribution, replicates: int
) -> tuple[Distribution, list[Tensor], list[Tensor]]:
    """``replicates`` copies of a law side by side, each with gradients of its own.

    Beside it its leaves, of shape ``(replicates, ...)``, and for each of them the law's own tensor,
    with the graph back to what it was built from.
    """
    expanded = law.expand(torch.Size([replicates]) + law.batch_shape)
    tensors: list[Tensor] = []
    originals: list[Tensor] = []
    twins: dict[int, Any] = {}

    def twin(value: Any, original: Any) -> Any:
        """A copy of ``value``, a part of the expanded law, beside the same part of the law."""
        if id(value) in twins:
            return twins[id(value)]
        result = value
        if isinstance(value, Tensor) and value.requires_grad:
            result = value.detach().clone().requires_grad_()
            tensors.append(result)
            originals.append(original)
        elif isinstance(value, Distribution):
            result = object.__new__(type(value))
            # by getattr: what the copy holds, the law may make when asked
            # aliases last: after `expand`, a law's _param may be another parameter than before
            for name in sorted(value.__dict__, key=lambda name: name.startswith("_")):
                made = "probs" if name == "given_probs" else name
                result.__dict__[name] = twin(value.__dict__[name], getattr(original, made, None))
        twins[id(value)] = result
        return result

    return twin(expanded, law), tensors, originals


def _tensors(law: Distribution) -> list[Tensor]:
    found: list[Tensor] = []
    for value in law.__dict__.values():
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, Distribution):
            found.extend(_tensors(value))
    return found
