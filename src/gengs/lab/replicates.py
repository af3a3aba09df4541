"""The tensors a law was built from, and copies of a law with separate gradients.

A law is built from leaves (``rate``) through operations (``truncate``). To get many independent
gradients at once, :func:`split_parameters` gives each replicate its own copy of the law's tables,
and pulls their gradients back to the leaves in one batched pass.
"""

__all__ = ["leaves_of", "pull_back", "split_parameters"]

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..distributions.tracing import tensors_of
from ..estimators.checked_cost import graph_of


def leaves_of(law: Distribution) -> list[Tensor]:
    """The leaf tensors with a gradient that the law was built from, in a fixed order."""
    nodes = graph_of(*(tensor for *_, tensor in tensors_of(law)))
    return [node.variable for node in nodes if hasattr(node, "variable")]


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
            rows = _pulled(original, leaves, gradient.reshape(replicates, *original.shape))
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

    Beside it its leaves, of shape ``(replicates, ...)``, and for each of them the same tensor of a
    single copy, ``(1, ...)``, with the graph back to what the law was built from.
    """
    many, one = (law.expand(torch.Size([n]) + law.batch_shape) for n in (replicates, 1))
    pairs = zip(tensors_of(many), tensors_of(one), strict=True)
    originals = {id(tensor): of_one for (*_, tensor), (*_, of_one) in pairs if tensor.requires_grad}
    leaves: dict[int, Tensor] = {}

    def cut(value: Any) -> Any:
        """A law whose tensors are leaves, one for each tensor that it holds under several names."""
        if isinstance(value, Distribution):
            result = object.__new__(type(value))
            result.__dict__ |= {name: cut(part) for name, part in vars(value).items()}
            return result
        if id(value) in originals and id(value) not in leaves:
            leaves[id(value)] = value.detach().clone().requires_grad_()
        return leaves.get(id(value), value)

    return cut(many), list(leaves.values()), [originals[key] for key in leaves]
