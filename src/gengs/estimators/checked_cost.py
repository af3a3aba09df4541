"""The user's cost, with clear errors about wrong shapes, NaN, and gradients that do not flow.

Checks of its values are grouped into one, after the estimate (:meth:`Factors.run_checks`). Its
gradient is checked once, where it comes back to the draw.

**Costs with steps.** Rounding and comparisons have a slope of zero everywhere, and so has the
gradient of whoever follows the slope. A zero slope at all draws is no proof: the cost may not
depend on the draw at all, or its slope may lie between these draws. So then, and only then, a few
more draws are evaluated: if their costs differ, and all slopes are zero again, there is a
:class:`StepCostWarning`. The random numbers that this takes are given back.
"""

__all__ = ["CheckedCost", "Cost", "StepCostWarning", "graph_of", "leads_to", "nodes_behind"]

import math
import sys
import warnings
from collections.abc import Callable, Container, Iterable, Iterator
from contextlib import nullcontext
from functools import partial
from types import FrameType
from typing import Any

import torch
from torch import Tensor
from torch.autograd.graph import get_gradient_edge

from ..numerics.tracing import inside_transform, inspectable, not_finite
from .factors import Factors
from .surrogate import second_derivatives_of_surrogates

Cost = Callable[[Tensor], Tensor]
"""Values ``(S, *batch, *event)`` to costs ``(S, *batch)``, a number for each draw."""


Redraw = Callable[[], Tensor]
"""Makes values like those that the cost was asked for, independent of them."""

Warn = Callable[[Warning], None]


class StepCostWarning(UserWarning):
    """A cost whose slope is zero wherever it was evaluated, while its values differ."""


_STEPS = (
    "the slope of `cost` is zero at all draws, while its values differ. A cost with steps "
    "(rounding, comparisons) has no slope to follow, and the gradient is wrong for it; RLOO, UnOrd "
    "and FiniteDifference do without."
)
_ENOUGH = 32
"""Costs that must differ, or have a slope: those of a batch, or of a few more draws."""


def _remedy(shape: tuple[int, ...], expected: tuple[int, ...], values: tuple[int, ...]) -> str:
    """What to do about a cost of the wrong shape, where that can be told from the shapes."""
    if not shape:
        return "; take the mean after expect, not in the cost"
    if shape == values:
        return "; sum over the last dimension"
    if len(shape) < len(expected) and shape == expected[: len(shape)]:
        return f"; if a draw is a vector, wrap q: Independent(q, {len(expected) - len(shape)})"
    return ""


class CheckedCost:
    """The cost of draws; its checks are noted in ``factors.deferred_checks``."""

    def __init__(self, cost: Cost, factors: Factors) -> None:
        if not callable(cost):
            raise TypeError(
                f"{factors.owner} expects a function as `cost`, but got {type(cost).__name__}."
            )
        self.cost, self.factors = cost, factors

    def __call__(self, values: Tensor) -> Tensor:
        costs = self.cost(values.clone())  # which it may change in place
        owner, expected = self.factors.owner, (values.shape[0], *self.factors.batch)
        if not isinstance(costs, Tensor):
            raise TypeError(
                f"{owner}: `cost` must return a tensor of shape {expected}, "
                f"but returned {type(costs).__name__}."
            )
        if tuple(costs.shape) != expected:
            raise ValueError(
                f"{owner}: `cost` must return one number per draw, shape {expected} for values of "
                f"shape {tuple(values.shape)}, but returned shape {tuple(costs.shape)}"
                f"{_remedy(tuple(costs.shape), expected, tuple(values.shape))}."
            )
        if costs.is_complex():
            raise TypeError(
                f"{owner}: `cost` must return real numbers, but returned {costs.dtype}."
            )
        if not costs.is_floating_point():  # a count is a cost like any other
            costs = costs.to(values.dtype)
        if self.factors.validate:
            seen = costs.detach()
            self.factors.deferred_checks.append((not_finite(seen), lambda: _bad_costs(owner, seen)))
        return costs

    def along(self, values: Tensor, redraw: Redraw | None = None) -> Tensor:
        """Costs of values that carry a gradient, which must flow through the cost and be finite.

        With ``redraw`` a cost with steps has a warning.
        """
        if not values.requires_grad or not inspectable(values):
            return self(values)
        costs = self(values)
        if not leads_to(costs, values):
            raise not_differentiable(self.factors.owner)
        if self.factors.validate and not inside_transform():
            values.register_hook(
                partial(self._check_slope, costs.detach(), redraw, _warn_at_caller())
            )
        return costs

    def gradient(
        self, values: Tensor, create_graph: bool = False, redraw: Redraw | None = None
    ) -> tuple[Tensor, Tensor]:
        """Costs, and their gradients with respect to the values; a warning as in :meth:`along`.

        With ``create_graph`` they can be differentiated again, also where the cost is an estimate.
        """
        if not inspectable(values) or inside_transform():
            out: Any = torch.func.vjp(self, values)
            return out[0], out[1](torch.ones_like(out[0]))[0]
        values = values if values.requires_grad else values.detach().requires_grad_()
        with second_derivatives_of_surrogates() if create_graph else nullcontext():
            costs = self(values)
        if not leads_to(costs, values):
            raise not_differentiable(self.factors.owner)
        (slope,) = torch.autograd.grad(
            costs.sum(), values, create_graph=create_graph, retain_graph=True
        )
        if redraw is not None and self.factors.validate:
            seen = costs.detach()
            flat = (slope.detach() == 0).all()
            self.factors.deferred_checks.append((flat, partial(self._check_steps, seen, redraw)))
        return costs, slope

    def _check_slope(
        self, costs: Tensor, redraw: Redraw | None, warn: Warn, grad: Tensor | None
    ) -> None:
        """A hook of the draws: their gradient must be finite, and zero for a reason."""
        if grad is None or not grad.numel() or not inspectable(grad):
            return
        low, high = torch.stack(grad.detach().aminmax()).tolist()  # the one synchronisation
        if not (math.isfinite(low) and math.isfinite(high)):
            bad = int((~torch.isfinite(grad)).sum())
            raise FloatingPointError(
                f"{self.factors.owner}: {bad} of {grad.numel()} entries of the cost's gradient "
                f"with respect to the draws of shape {tuple(grad.shape)} are NaN or infinite."
            )
        if low == high == 0 and redraw is not None:
            found = self._check_steps(costs, redraw)
            if found is not None:
                warn(found)

    def _check_steps(self, costs: Tensor, redraw: Redraw) -> StepCostWarning | None:
        """What to say of costs whose slopes are all zero; ``None`` where there is a reason."""
        differ = costs.ne(costs[:1]).any()  # of an element, from draw to draw
        device = costs.device
        with torch.random.fork_rng([device] if device.type == "cuda" else []), torch.enable_grad():
            for _ in range(min(8, 1 + _ENOUGH // max(costs.numel(), 1))):
                values = redraw().detach().requires_grad_()
                again = self.cost(values.clone())
                if again.requires_grad:
                    (slope,) = torch.autograd.grad(again.sum(), values, materialize_grads=True)
                    if slope.any():
                        return None
                differ = differ | again.detach().ne(costs).any()
        return StepCostWarning(f"{self.factors.owner}: {_STEPS}") if differ else None


def _bad_costs(owner: str, costs: Tensor) -> FloatingPointError:
    bad = f"{int((~torch.isfinite(costs)).sum())} of {costs.numel()}"
    return FloatingPointError(f"{owner}: `cost` returned NaN or infinity for {bad} draws.")


def _warn_at_caller() -> Warn:
    """``warnings.warn``, for the way back, as if from the line that called ``expect``."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").startswith("gengs.estimators"):
        frame = frame.f_back
    if frame is None:
        return warnings.warn
    said = frame.f_globals.setdefault("__warningregistry__", {})
    where = {"filename": frame.f_code.co_filename, "lineno": frame.f_lineno, "registry": said}
    return lambda word: warnings.warn_explicit(word, type(word), **where)


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
