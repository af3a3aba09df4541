"""The tensors a distribution was built from, and copies of it with separate gradients.

A law is built from leaves (``rate``) through operations (``truncate``). To get many independent
gradients at once, :class:`Replicates` gives each replicate its own copy of the law's tables, and
pulls their gradients back to the leaves in one batched pass.
"""

__all__ = ["Replicates", "leaves_of"]

from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..estimators.checked_cost import graph_of
from ..numerics.tracing import tensors_of


def leaves_of(law: Distribution) -> list[Tensor]:
    """The leaf tensors with a gradient that the distribution was built from, in a fixed order."""
    nodes = graph_of(*(tensor for *_, tensor in tensors_of(law)))
    return [node.variable for node in nodes if hasattr(node, "variable")]


class Replicates:
    """Copies of a distribution side by side, each with gradients of its own.

    Args:
        law: The distribution.
        number: How many copies.

    Attributes:
        law: The copies, as a distribution of batch shape ``(number, *batch)``.
    """

    def __init__(self, law: Distribution, number: int) -> None:
        self.number, self._leaves = number, leaves_of(law)
        many, one = (law.expand(torch.Size([n, *law.batch_shape])) for n in (number, 1))
        pairs = zip(tensors_of(many), tensors_of(one), strict=True)
        # the same tensor of a single copy has the graph back to what the law was built from
        self._single = {id(tensor): x for (*_, tensor), (*_, x) in pairs if tensor.requires_grad}
        self._own: dict[int, Tensor] = {}
        self.law: Distribution = self._cut(many)

    def _cut(self, value: Any) -> Any:
        """A copy whose tensors are leaves, one for each tensor that is held under several names."""
        if isinstance(value, Distribution):
            result = object.__new__(type(value))
            result.__dict__ |= {name: self._cut(part) for name, part in vars(value).items()}
            return result
        if id(value) in self._single and id(value) not in self._own:
            self._own[id(value)] = value.detach().clone().requires_grad_()
        return self._own.get(id(value), value)

    def gradients(self, value: Tensor) -> Tensor:
        """The gradient of ``value`` for each copy, one a row, in the leaves of the distribution.

        All copies share the way from the leaves to the tensors: where it is small, its Jacobian is
        taken once for all of them.
        """
        own = list(self._own.values())
        found = torch.autograd.grad(value, own, retain_graph=True, allow_unused=True)
        total = torch.zeros(self.number, sum(leaf.numel() for leaf in self._leaves))
        for key, gradient in zip(self._own, found, strict=True):
            if gradient is None:  # a law may hold what an estimator did not use
                continue
            single = self._single[key]
            size = single.numel()
            if size > self.number:
                rows = self._pull_back(single, gradient.reshape(self.number, *single.shape))
            else:
                basis = torch.eye(size, dtype=single.dtype).reshape(size, *single.shape)
                jacobian = self._pull_back(single, basis)
                rows = gradient.reshape(self.number, -1).to(jacobian.dtype) @ jacobian
            total = total.to(rows.dtype) + rows
        return total

    def _pull_back(self, single: Tensor, gradients: Tensor) -> Tensor:
        """Several gradients of one tensor, to the leaves: ``(how many, total size)``."""
        options = {"retain_graph": True, "allow_unused": True, "is_grads_batched": True}
        parts = torch.autograd.grad(single, self._leaves, gradients, **options)
        columns = [
            gradients.new_zeros(len(gradients), leaf.numel(), dtype=leaf.dtype)
            if part is None
            else part.reshape(len(gradients), -1)
            for part, leaf in zip(parts, self._leaves, strict=True)
        ]
        return torch.cat(columns, -1)
