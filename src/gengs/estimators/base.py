r"""The contract of a gradient estimator: ``expect(cost, q)``.

.. math:: \nabla_\theta\, E_{z \sim q_\theta}[f(z)]

An estimator returns a tensor whose *value* estimates the expectation and whose *gradient* is its
estimate of the expectation's gradient:

.. math:: \text{value} + (G - \mathrm{sg}(G)), \qquad \mathrm{sg} = \text{stop gradient}

(:mod:`gengs.estimators.surrogate`), so that one ``backward()`` serves the distribution's
parameters, the cost's own parameters (a decoder) and the estimator's (a baseline network): put
``estimator.parameters()`` into the optimiser.

The public method :meth:`Estimator.expect` does shapes, checks and the evaluation mode once; the
small hook :meth:`Estimator._estimate` does the mathematics. An estimator whose gradient belongs to
the draw itself is a :class:`Pathwise` one: its ``_draw`` is all it has to say.
"""

__all__ = ["Cost", "Estimator", "Pathwise", "as_in_training", "positive_integer"]

import inspect
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.distributions import Distribution
from torch.types import _size

from ..numerics.autograd_function import AutogradFunction
from ..numerics.tracing import not_finite
from .checked_cost import CheckedCost, Cost
from .factors import Factors


class Estimator(nn.Module, ABC):
    """Estimates an expectation under a discrete distribution, and its gradient.

    In evaluation mode (``estimator.eval()``) or under ``torch.no_grad()``, every estimator returns
    the plain Monte Carlo value of exact discrete draws: an evaluation is honest whatever trained
    the model. (VIMCO's is its bound, also of exact draws.)

    An estimate is a gradient and no more: to differentiate it again raises, but for ``Exact``, and
    where the draw itself is differentiable twice (``MidCDF`` of counts, relaxations).
    """

    # ------------------------------------------------- facts; the catalogue and the tests read them
    paper_name: ClassVar[str]
    """What the literature calls it."""
    unbiased: bool = True
    """Whether the expected gradient is exact."""
    needs_cost_gradient: ClassVar[bool] = False
    """Whether the cost must be differentiable in the values."""
    handles_steps: bool = True
    """Whether its gradient is right for a cost with steps (rounding, comparisons)."""
    learns: ClassVar[bool] = False
    """Whether it has parameters of its own."""
    objective: ClassVar[Literal["expectation", "multi-sample bound"]] = "expectation"
    """What its value estimates."""
    needs: ClassVar[str] = "any distribution with log_prob"
    """The structure of the distribution it works on."""
    one_sided: ClassVar[bool] = False
    """Whether it has the one-sided derivative at a boundary, of linear costs at least."""
    moves_totals: ClassVar[bool] = False
    """Whether it differentiates in a binomial's number of trials."""
    vmaps: ClassVar[bool] = True
    """Whether it works inside ``torch.func.vmap(torch.func.grad(...))``."""
    compiles: ClassVar[bool] = True
    """Whether it works inside ``torch.compile(fullgraph=True)``."""
    year: ClassVar[int]
    """When it was published."""
    reference: ClassVar[str]
    """Where."""
    always_shown: ClassVar[tuple[str, ...]] = ()
    """Settings that its name always shows; others where they are not the default."""

    def __init__(self, samples: int = 1) -> None:
        super().__init__()
        self.samples = positive_integer(type(self).__name__, "samples", samples)

    @property
    def evaluations(self) -> int:
        """How often one ``expect`` evaluates the cost, counted in draws."""
        return self.samples

    def expect(self, cost: Cost, q: Distribution, *, context: Tensor | None = None) -> Tensor:
        r"""An estimate of :math:`E_q[f]` whose gradient is this estimator's, of shape ``batch``.

        Args:
            cost: Maps values of shape ``(S, *batch, *event)`` to costs of shape ``(S, *batch)``. It
                may itself call ``expect``: stacked layers nest.
            q: A distribution whose event is the latent vector: ``Independent(Poisson(rate), 1)``.
            context: What a learned baseline may see, too, ``(*batch, features)``: the data, for
                example. Estimators without one ignore it.
        """
        factors = Factors(q, type(self).__name__, context)
        checked = CheckedCost(cost, factors)
        if trains := self.training and torch.is_grad_enabled():
            self._refuse_totals(factors)
        result = (self._estimate if trains else self._evaluate)(checked, factors)
        if factors.validate:
            wrong = f"{factors.owner}: the estimate is NaN or infinite."
            factors.deferred_checks.append((not_finite(result), partial(FloatingPointError, wrong)))
            if trains and not self._moves_off_boundaries(factors):
                factors.check_boundary()
            factors.run_checks()
        return result

    def _moves_off_boundaries(self, factors: Factors) -> bool:
        """Whether it has the one-sided derivative of this distribution."""
        return self.one_sided

    def _evaluate(self, cost: CheckedCost, factors: Factors) -> Tensor:
        return cost(factors.sample(self.samples)).mean(0)

    @abstractmethod
    def _estimate(self, cost: CheckedCost, factors: Factors) -> Tensor: ...

    def _refuse_totals(self, factors: Factors) -> None:
        if not self.moves_totals and factors.record.learned_total:
            raise TypeError(
                f"{factors.owner} has no gradient in a number of trials (total_count), which "
                "requires one; "
                "MidCDF, StraightThroughMean and gengs.rsample have it, or detach it."
            )

    def extra_repr(self) -> str:
        shown = []
        for name, parameter in inspect.signature(type(self)).parameters.items():
            value = getattr(self, name)
            if isinstance(value, nn.Module):
                continue
            if isinstance(value, Tensor) and value.numel() == 1:
                value = float(f"{value.item():.3g}")
            if name in self.always_shown or value is not parameter.default != value:
                shown.append(f"{name}={value!r}")
        return ", ".join(shown)


class Pathwise(Estimator):
    """An estimator whose gradient belongs to the draw: the cost of a draw is all there is to it."""

    unbiased = False
    needs_cost_gradient = True
    handles_steps = False

    def draw(self, law: Distribution, sample_shape: _size = torch.Size()) -> Tensor:
        """Draws that carry this estimator's gradient, ``(*sample, *batch, *event)``."""
        factors = Factors(law, type(self).__name__)
        self._refuse_totals(factors)
        drawn = self._draw(factors, torch.Size(sample_shape))
        factors.run_checks()
        return drawn

    @abstractmethod
    def _draw(self, factors: Factors, shape: torch.Size) -> Tensor: ...

    def _estimate(self, cost: CheckedCost, factors: Factors) -> Tensor:
        draw = partial(self._draw, factors, torch.Size([self.samples]))
        return cost.along(draw(), draw).mean(0)


def positive_integer(owner: str, name: str, value: Any, least: int = 1) -> int:
    """``value`` if it is an integer of at least ``least``; else a ``ValueError`` that names it."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        kind = "a positive integer" if least == 1 else f"an integer of at least {least} as"
        who = f"{owner} expects" if owner else "expected"
        raise ValueError(f"{who} {kind} `{name}`, but got {value!r}.")
    return value


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


def add_auxiliary_loss(value: Tensor, loss: Tensor) -> Tensor:
    """``value``, on whose way back ``loss`` is minimised too.

    Whatever sign the caller gives the expectation (it may maximise it), the loss, of shape
    ``batch`` or a scalar, goes down: it receives the absolute value of the incoming gradient.
    """
    return _AddAuxiliaryLoss.apply(value, loss.expand_as(value))


class _AddAuxiliaryLoss(AutogradFunction):
    @staticmethod
    def forward(value: Tensor, loss: Tensor) -> Tensor:
        return value.view_as(value)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        pass

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        return grad, grad.abs()
