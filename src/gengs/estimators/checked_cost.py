"""The user's cost, with a clear word about wrong shapes, NaN, and gradients that do not flow.

Values are in doubt until one look, after the estimate, does for all evaluations
(:meth:`Factors.settle`). The gradient of the cost is looked at once, where it comes back to the
draw.
"""

__all__ = ["CheckedCost", "Cost", "StepCostWarning", "graph_of", "leads_to", "nodes_behind"]

from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from ..numerics.tracing import any_of, inside_transform, inspectable, not_finite
from .factors import Factors

Cost = Callable[[Tensor], Tensor]
"""Values ``(S, *batch, *event)`` to costs ``(S, *batch)``, a number for each draw."""


class StepCostWarning(UserWarning):
    """A cost whose slope is zero wherever it was asked, while its values differ."""


_STEPS = (
    "the slope of `cost` is zero at all draws, while its values differ. A cost with steps "
    "(rounding, comparisons) has no slope to follow, and the gradient is wrong for it; RLOO, UnOrd "
    "and FiniteDifference do without."
)


class CheckedCost:
    """The cost of draws; what is in doubt about it is noted in ``factors.doubts``."""

    def __init__(self, cost: Cost, factors: Factors) -> None:
        self.cost, self.factors = cost, factors

    def __call__(self, values: Tensor) -> Tensor:
        costs = self.cost(values)
        owner, expected = self.factors.owner, (values.shape[0], *self.factors.batch)
        if not isinstance(costs, Tensor):
            raise TypeError(
                f"{owner}: `cost` must return a tensor of shape {expected}, "
                f"but returned {type(costs).__name__}."
            )
        if tuple(costs.shape) != expected:
            raise ValueError(
                f"{owner}: `cost` must return one number per draw, shape {expected} for values of "
                f"shape {tuple(values.shape)}, but returned shape {tuple(costs.shape)}."
            )
        if not costs.is_floating_point():  # a count is a cost like any other
            costs = costs.to(values.dtype)
        if self.factors.validate:
            seen = costs.detach()
            self.factors.doubts.append((not_finite(seen), lambda: _bad_costs(owner, seen)))
        return costs

    def along(self, values: Tensor) -> Tensor:
        """Costs of values that carry a gradient, which must flow through the cost and be finite."""
        if not values.requires_grad or not inspectable(values):
            return self(values)
        if self.factors.validate and not inside_transform():
            values.register_hook(partial(_refuse_bad_gradient, self.factors.owner))
        costs = self(values)
        if not leads_to(costs, values):
            raise not_differentiable(self.factors.owner)
        return costs

    def gradient(self, values: Tensor, create_graph: bool = False) -> tuple[Tensor, Tensor]:
        """Costs, and their gradients with respect to the values."""
        if not inspectable(values) or inside_transform():
            out: Any = torch.func.vjp(self, values)
            return out[0], out[1](torch.ones_like(out[0]))[0]
        values = values if values.requires_grad else values.detach().requires_grad_()
        costs = self(values)
        if not leads_to(costs, values):
            raise not_differentiable(self.factors.owner)
        (slope,) = torch.autograd.grad(
            costs.sum(), values, create_graph=create_graph, retain_graph=True
        )
        if self.factors.validate and costs.numel() > 1:
            flat = (slope.detach() == 0).all() & (costs.amax() != costs.amin())
            sentence = f"{self.factors.owner}: {_STEPS}"
            self.factors.doubts.append((flat, partial(StepCostWarning, sentence)))
        return costs, slope


def _bad_costs(owner: str, costs: Tensor) -> FloatingPointError:
    bad = f"{int((~torch.isfinite(costs)).sum())} of {costs.numel()}"
    return FloatingPointError(f"{owner}: `cost` returned NaN or infinity for {bad} draws.")


def _refuse_bad_gradient(owner: str, grad: Tensor | None) -> None:
    """A hook of the draws: their gradient must be finite."""
    if grad is not None and any_of(not_finite(grad)):
        bad = int((~torch.isfinite(grad)).sum())
        raise FloatingPointError(
            f"{owner}: {bad} of {grad.numel()} entries of the cost's gradient with respect to the "
            f"draws of shape {tuple(grad.shape)} are NaN or infinite."
        )


def leads_to(costs: Tensor, values: Tensor) -> bool:
    """Whether a gradient of ``costs`` reaches ``values``; a decoder's own weights do not count."""
    return get_gradient_edge(values).node in graph_of(costs)


def graph_of(*tensors: Tensor) -> Iterator[Any]:
    """The nodes of the autograd graph behind ``tensors``."""
    return nodes_behind([get_gradient_edge(t).node for t in tensors if t.requires_grad])


def nodes_behind(nodes: Iterable[Any], ends: Container[Any] = ()) -> Iterator[Any]:
    """The nodes of autograd's graph from these on, each once; what is behind ``ends`` is not."""
    todo, seen = list(nodes), {None}
    for node in todo:  # it grows
        if node not in seen:
            seen.add(node)
            yield node
            todo += [following for following, _ in node.next_functions if node not in ends]


def not_differentiable(owner: str) -> TypeError:
    """What an estimator that needs the cost's gradient says when there is none."""
    return TypeError(
        f"{owner} needs a cost that is differentiable in the values, but no gradient flows back; "
        "REINFORCE, RLOO, NVIL, VIMCO, DetRB, StoRB, UnOrd and FiniteDifference do without."
    )
