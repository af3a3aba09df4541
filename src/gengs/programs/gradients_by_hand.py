"""Gradients that the program makes by itself, beside those of the block: they would count twice.

Two idioms are known. *Straight-through*: ``z + p - p.detach()`` has the value of ``z`` and a
gradient in ``p``, and so has ``z * p / p.detach()``. *REINFORCE*:
``log_prob(z) * (cost - baseline).detach()`` has the gradient of the score, whatever its value is.
"""

from __future__ import annotations

__all__ = ["ADDITIVE", "DIVIDING", "ByHand"]

from collections.abc import Iterator
from typing import Any

from torch import Tensor
from torch.autograd.graph import get_gradient_edge
from torch.utils.weak import WeakTensorKeyDictionary

from ..estimators.checked_cost import nodes_behind
from .cut_operations import tensors_in
from .sample_site import place_of, where

ADDITIVE = frozenset(("add", "sub", "__radd__", "__rsub__", "rsub", "subtract", "add_", "sub_"))
DIVIDING = frozenset(("div", "true_divide", "divide", "__truediv__", "__div__", "div_"))
_PRODUCTS = ("MulBackward0", "DivBackward0")
_SUMS = ("AddBackward0", "SubBackward0", "RsubBackward1", "RsubBackward0")
_SHAPES = ("View", "Squeeze", "Unsqueeze", "Expand", "Alias", "Reshape", "Select", "Slice", "T")
_LINEAR = (*_SHAPES, "Stack", "Cat", "Sum", "Mean", "Neg", "Add", "Permute", "Transpose", "Unbind")


def _parts(node: Any, joined_by: tuple[str, ...] = _SUMS, depth: int = 5) -> Iterator[Any]:
    """The nodes that are added up (or multiplied) in a node of autograd's graph, with itself."""
    yield node
    name = type(node).__name__
    if depth and (name in joined_by or name.startswith(_SHAPES)):
        for behind, _ in node.next_functions:
            if behind is not None:
                yield from _parts(behind, joined_by, depth - 1)


class ByHand:
    """What a running program does for its own gradients."""

    def __init__(self) -> None:
        self._detached = WeakTensorKeyDictionary()  # tensors, and the nodes they were made of
        self._straight: set[str] = set()
        self._log_probs: dict[Any, str] = {}

    def __bool__(self) -> bool:
        return bool(self._detached.data)

    def tables(self) -> tuple[dict[Any, Any], ...]:
        """What is known of tensors: empty where none of them is of interest."""
        return (self._detached.data,)

    def detached(self, tensor: Tensor, result: Any) -> None:
        """A tensor with a gradient was detached."""
        if isinstance(result, Tensor):
            self._detached[result] = set(_parts(get_gradient_edge(tensor).node))

    def added(self, given: Any, result: Any, divided: bool = False) -> None:
        """An addition or a subtraction was made, or a division."""
        tensors = list(tensors_in(given))
        known = [self._detached[t] for t in tensors if t in self._detached]
        if not known or not isinstance(result, Tensor):
            return
        nodes = set().union(*known)
        if not divided:
            self._detached[result] = nodes
        for tensor in tensors[:1] if divided else tensors:
            if tensor.requires_grad:
                joined_by = _PRODUCTS if divided else _SUMS
                found = _parts(get_gradient_edge(tensor).node, joined_by)
                if any(node in nodes for node in found):
                    self._straight.add(place_of(*where()))

    def log_prob(self, result: Tensor) -> None:
        """A distribution was asked for the log-probability of what was drawn."""
        if result.grad_fn is not None:
            self._log_probs[result.grad_fn] = place_of(*where())

    def sentences(self, cost: Tensor | None) -> list[str]:
        """What is to be said of it, given the cost."""
        said = [
            f"{place}: a straight-through gradient is made by hand (x - x.detach()), which counts "
            "in addition to the draw's: the gradient is too large, by up to a factor of two; leave "
            "the draw as it is."
            for place in sorted(self._straight)
        ]
        said += [
            f"{place}: log_prob is multiplied by numbers without a gradient, as in REINFORCE by "
            "hand, which is added to the block's gradient; give program.loss the cost itself."
            for place in sorted(set(self._weighted(cost)))
        ]
        return said

    def _weighted(self, cost: Tensor | None) -> Iterator[str]:
        if not self._log_probs or cost is None or cost.grad_fn is None:
            return
        for node in nodes_behind([cost.grad_fn]):
            if type(node).__name__ != "MulBackward0":
                continue
            behind = [following for following, _ in node.next_functions]
            if behind[0] is not None and len(behind) == 2 and behind[1] is not None:
                continue
            weights = node._saved_other if behind[0] is not None else node._saved_self
            if weights is None or weights.numel() < 2:
                continue
            todo = [following for following in behind if following is not None]
            for one in todo:  # it grows
                if one in self._log_probs:
                    yield self._log_probs[one]
                elif type(one).__name__.startswith(_LINEAR) and len(todo) < 500:
                    todo += [following for following, _ in one.next_functions if following]
