"""The user's cost, with a clear word about wrong shapes, NaN, and gradients that do not flow.

What is wrong with values shows in the estimator's result: one look at it, after the estimate, does
for all evaluations (:meth:`CheckedCost.look`). The gradient of the cost is looked at once, where it
comes back to the draw.
"""

from __future__ import annotations

__all__ = ["BoundaryWarning", "CheckedCost", "Cost", "StepCostWarning", "leads_to"]

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor

from ..distributions.tracing import any_of, inside_transform, inspectable, not_finite
from .factors import Factors

Cost = Callable[[Tensor], Tensor]
"""Values ``(S, *batch, *event)`` to costs ``(S, *batch)``, a number for each draw."""


class BoundaryWarning(UserWarning):
    """A parameter lies on a boundary where the estimator has no one-sided derivative."""


class StepCostWarning(UserWarning):
    """A cost whose slope is zero wherever it was asked, while its values differ."""


class CheckedCost:
    """The cost, and what it returned until it is looked at.

    Args:
        cost: The user's function.
        factors: The law whose draws it sees.
    """

    def __init__(self, cost: Cost, factors: Factors) -> None:
        self.cost, self.factors = cost, factors
        self._returned: list[Tensor] = []
        self._flat: list[Tensor] = []

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
            self._returned.append(costs.detach())
        return costs

    def look(self, result: Tensor, boundary: Tensor | None) -> None:
        """One look at all that is in doubt; raise or warn where it is so.

        Args:
            result: The estimate.
            boundary: Which elements sit on a boundary that the estimator does not move off.
        """
        numbers = torch.cat([t.detach().flatten() for t in (*self._returned, result)])
        flags = [not_finite(numbers), *(doubt for doubt, _ in self.factors.doubts)]
        if boundary is not None:
            flags.append(boundary)
        if not any_of(*flags, *self._flat):
            return
        self.factors.settle()
        for costs in self._returned:
            bad = int((~torch.isfinite(costs)).sum())
            if bad:
                raise FloatingPointError(
                    f"{self.factors.owner}: `cost` returned NaN or infinity for {bad} of "
                    f"{costs.numel()} draws."
                )
        if any_of(not_finite(result)):
            raise FloatingPointError(f"{self.factors.owner}: the estimate is NaN or infinite.")
        if self._flat and any_of(*self._flat):
            warnings.warn(
                f"{self.factors.owner}: the slope of `cost` is zero at all draws, while its values "
                "differ. A cost with steps (rounding, comparisons) has no slope to follow, and the "
                "gradient is wrong for it; RLOO, UnOrd and FiniteDifference do without.",
                StepCostWarning,
                stacklevel=3,
            )
        if boundary is not None and any_of(boundary):
            warnings.warn(
                f"{self.factors.owner}: some parameter of {type(self.factors.law).__name__} lies "
                "on a boundary (a rate of 0, a probability of 0 or 1), from which a draw never "
                "leaves: the gradient there is not the one-sided derivative. Exact has it; MidCDF "
                "and FiniteDifference have it for counts.",
                BoundaryWarning,
                stacklevel=3,
            )

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
        if not costs.requires_grad:
            raise not_differentiable(self.factors.owner)
        (slope,) = torch.autograd.grad(
            costs.sum(), values, create_graph=create_graph, retain_graph=True, allow_unused=True
        )
        if slope is None:
            raise not_differentiable(self.factors.owner)
        if self.factors.validate and costs.numel() > 1:
            flat = (slope == 0).all() & (costs.amax() != costs.amin())
            self._flat.append(flat.detach())
        return costs, slope


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
    nodes, seen, goal = [costs.grad_fn], set(), values.grad_fn
    while nodes:
        node = nodes.pop()
        if node is goal:
            return True
        if node is not None and node not in seen:
            seen.add(node)
            # a layer's weights come after its inputs: the way to the values is found without them
            nodes.extend(following for following, _ in reversed(node.next_functions))
    return False


def not_differentiable(owner: str) -> TypeError:
    """What an estimator that needs the cost's gradient says when there is none."""
    return TypeError(
        f"{owner} needs a cost that is differentiable in the values, but no gradient flows back; "
        "REINFORCE, RLOO, NVIL, VIMCO, DetRB, StoRB, UnOrd and FiniteDifference do without."
    )
