r"""The contract of a gradient estimator: ``expect(cost, q)``.

.. math:: \nabla_\theta\, E_{z \sim q_\theta}[f(z)]

An estimator returns a tensor whose *value* estimates the expectation and whose *gradient* is its
estimate of the expectation's gradient:

.. math:: \text{value} + (G - \mathrm{sg}(G)), \qquad \mathrm{sg} = \text{stop gradient}

so that one ``backward()`` serves the law's parameters, the cost's own parameters (a decoder) and
the estimator's (a baseline network): put ``estimator.parameters()`` into the optimiser.

The public method :meth:`Estimator.expect` does shapes, checks and the evaluation mode once; the
small hook :meth:`Estimator._estimate` does the mathematics.
"""

from __future__ import annotations

__all__ = ["CheckedCost", "Cost", "Estimator", "as_in_training", "attach", "train_beside"]

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.distributions import Distribution

from ..distributions.validation import all_finite, inspectable
from .latents import Latents

Cost = Callable[[Tensor], Tensor]
"""Values ``(S, *batch, *event)`` to costs ``(S, *batch)``, a number for each draw."""


class Estimator(nn.Module, ABC):
    """Estimates an expectation under a discrete law, and its gradient.

    In evaluation mode (``estimator.eval()``) or under ``torch.no_grad()``, every estimator returns
    the plain Monte Carlo value of exact discrete draws: an evaluation is honest whatever trained
    the model. (VIMCO's is its bound, also of exact draws.)

    An estimate is a gradient and no more: its own derivative is not an estimate of second
    derivatives, except where an estimator's page says so.
    """

    # ------------------------------------------------- facts; the catalogue and the tests read them
    paper_name: ClassVar[str]
    """What the literature calls it."""
    unbiased: ClassVar[bool]
    """Whether the expected gradient is exact."""
    needs_cost_gradient: ClassVar[bool]
    """Whether the cost must be differentiable in the values."""
    learns: ClassVar[bool] = False
    """Whether it has parameters of its own."""
    objective: ClassVar[Literal["expectation", "multi-sample bound"]] = "expectation"
    """What its value estimates."""
    needs: ClassVar[str] = "any law with log_prob"
    """The structure of the law it works on."""
    year: ClassVar[int]
    """When it was published."""
    reference: ClassVar[str]
    """Where."""

    def __init__(self, samples: int = 1) -> None:
        super().__init__()
        if isinstance(samples, bool) or not isinstance(samples, int) or samples < 1:
            raise ValueError(f"{self._name} expects a positive integer `samples`, got {samples!r}.")
        self.samples = samples

    @property
    def _name(self) -> str:
        return type(self).__name__

    @property
    def evaluations(self) -> int:
        """How often one ``expect`` evaluates the cost, counted in draws."""
        return self.samples

    def expect(self, cost: Cost, q: Distribution) -> Tensor:
        r"""An estimate of :math:`E_q[f]` whose gradient is this estimator's, of shape ``batch``.

        Args:
            cost: Maps values of shape ``(S, *batch, *event)`` to costs of shape ``(S, *batch)``. It
                may itself call ``expect``: stacked layers nest.
            q: Any law whose event is the latent vector, such as ``Independent(Poisson(rate), 1)``.
        """
        latents = Latents(q, self._name)
        checked = CheckedCost(cost, latents)
        if not self.training or not torch.is_grad_enabled():
            return self._evaluate(checked, latents)
        return self._estimate(checked, latents)

    def _evaluate(self, cost: CheckedCost, latents: Latents) -> Tensor:
        return cost(latents.sample(self.samples)).mean(0)

    @abstractmethod
    def _estimate(self, cost: CheckedCost, latents: Latents) -> Tensor: ...

    def extra_repr(self) -> str:
        return "" if self.samples == 1 else f"samples={self.samples}"


@contextmanager
def as_in_training(estimators: nn.Module) -> Iterator[None]:
    """Estimators (one, or a list of modules) draw as they do in training, and learn nothing.

    Afterwards their modes and buffers, such as a running mean, are what they were.
    """
    modes = [(module, module.training) for module in estimators.modules()]
    buffers = [(buffer, buffer.clone()) for buffer in estimators.buffers()]
    estimators.train()
    try:
        with torch.enable_grad():  # without it, an estimator takes exact draws
            yield
    finally:
        for module, mode in modes:
            module.training = mode
        for buffer, before in buffers:
            buffer.data.copy_(before)


def attach(value: Tensor, surrogate: Tensor) -> Tensor:
    """``value`` with the gradient of ``surrogate`` added to its own."""
    return value + (surrogate - surrogate.detach())


def train_beside(value: Tensor, loss: Tensor) -> Tensor:
    """``value``, on whose way back ``loss`` is minimised too.

    Whatever sign the caller gives the expectation (it may maximise it), the loss goes down: it
    receives the absolute value of the incoming gradient.

    Args:
        value: The result of an estimator, of shape ``batch``.
        loss: What its own parameters minimise, of shape ``batch`` or a scalar.
    """
    return _TrainBeside.apply(value, loss.expand_as(value))


class _TrainBeside(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(value: Tensor, loss: Tensor) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        return grad, grad.abs()


class CheckedCost:
    """The user's cost, with a clear word about wrong shapes and NaN."""

    def __init__(self, cost: Cost, latents: Latents) -> None:
        self.cost, self.latents = cost, latents

    def __call__(self, values: Tensor) -> Tensor:
        costs = self.cost(values)
        owner, expected = self.latents.owner, (values.shape[0], *self.latents.batch)
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
        if inspectable(costs) and not all_finite(costs):
            bad = int((~torch.isfinite(costs.detach())).sum())
            raise FloatingPointError(
                f"{owner}: `cost` returned NaN or infinity for {bad} of {costs.numel()} draws."
            )
        return costs

    def along(self, values: Tensor) -> Tensor:
        """Costs of values that carry a gradient, which must flow through the cost."""
        costs = self(values)
        if values.requires_grad and inspectable(values) and not leads_to(costs, values):
            raise not_differentiable(self.latents.owner)
        return costs

    def gradient(self, values: Tensor, create_graph: bool = False) -> tuple[Tensor, Tensor]:
        """Costs, and their gradients with respect to the values."""
        values = values if values.requires_grad else values.detach().requires_grad_()
        costs = self(values)
        if not costs.requires_grad:
            raise not_differentiable(self.latents.owner)
        (slope,) = torch.autograd.grad(
            costs.sum(), values, create_graph=create_graph, retain_graph=True, allow_unused=True
        )
        if slope is None:
            raise not_differentiable(self.latents.owner)
        return costs, slope


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
