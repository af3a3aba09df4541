r"""The toy problem of the paper's Figure 3: move a law's parameter until its draws hit a target.

.. math:: \min_\theta E_{z \sim q_\theta} \sum_i (z_i - t_i)^2

Everything about it is known. Mean and variance of every law here have closed forms, so that

.. math:: E (z - t)^2 = \operatorname{Var} z + (E z - t)^2,

the exact gradient is the derivative of that, and the minimum follows by hand. A law with mean
:math:`m` has variance :math:`m + c m^2`: Poisson with :math:`c = 0`, negative binomial with
:math:`1 / r`, geometric with 1, binomial with :math:`-1 / n`. The best mean is
:math:`(t - 1/2) / (1 + c)`, a little below the target where a smaller mean has a smaller variance.

The parameter :math:`\theta` is unconstrained: the logarithm of a rate, otherwise logits. Targets
are the mean of the same law at a given parameter.
"""

from __future__ import annotations

__all__ = ["FAMILIES", "CountFamily", "Quadratic"]

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributions import (
    Binomial,
    Distribution,
    Geometric,
    Multinomial,
    NegativeBinomial,
    Poisson,
)

if TYPE_CHECKING:
    from .synthetic import LawName


@dataclass(frozen=True)
class CountFamily:
    """A kind of law with one parameter, and where the experiment takes it from and to."""

    name: LawName
    law: Callable[[Tensor], Distribution]
    """From the unconstrained parameter."""
    unconstrain: Callable[[Tensor], Tensor]
    """From the natural parameter to the unconstrained one."""
    minimum: Callable[[Tensor], Tensor]
    """The smallest loss for a target."""
    start: tuple[float, ...]
    """The natural parameter at the first step."""
    target: tuple[float, ...]
    """The natural parameter whose mean is the target."""
    level: int | None = None
    """The number of atoms to keep of infinitely many."""


class Quadratic:
    """The objective for ``dimension`` independent coordinates, each with a parameter of its own.

    ``start`` is the natural parameter at the first step, and ``target`` the one whose mean is the
    target; by default the family's.
    """

    def __init__(
        self,
        family: CountFamily,
        start: tuple[float, ...] = (),
        target: tuple[float, ...] = (),
        dimension: int = 1,
    ) -> None:
        self.family, self.dimension = family, dimension
        self.start = self._unconstrained("start", start or family.start)
        goal = self._unconstrained("target", target or family.target)
        self.target = family.law(goal).mean  # scalar, or a vector of the multinomial's
        self.event_dim = self.target.dim()
        self.minimum = float(dimension * family.minimum(self.target))

    def parameters(self, *batch: int) -> Tensor:
        """Starting parameters, ``(*batch, dimension)`` or ``(*batch, dimension, categories)``."""
        return self.start.float().repeat(*batch, self.dimension, *(1,) * self.event_dim)

    def law(self, theta: Tensor) -> Distribution:
        """The law of the coordinates, not yet joined to a vector."""
        return self.family.law(theta)

    def cost(self, z: Tensor) -> Tensor:
        """The squared distance from the target, summed over the coordinates."""
        squares = (z - self.target.to(z)).square()
        return squares.flatten(squares.dim() - 1 - self.event_dim).sum(-1)

    def loss(self, theta: Tensor) -> Tensor:
        """The exact expectation of the cost, of the batch's shape, in ``float64``."""
        law = self.law(theta.double())
        squares = law.variance + (law.mean - self.target).square()
        return squares.flatten(squares.dim() - 1 - self.event_dim).sum(-1)

    def countable(self, theta: Tensor) -> bool:
        """Whether draws stay where 32-bit numbers tell one count from the next."""
        finite = bool(theta.isfinite().all())
        return finite and bool((self.law(theta.detach()).mean < 2**24).all())

    def gradient(self, theta: Tensor) -> Tensor:
        """The exact gradient of each element's loss, shaped like ``theta``, in ``float64``."""
        theta = theta.detach().double().requires_grad_()
        (gradient,) = torch.autograd.grad(self.loss(theta).sum(), theta)
        return gradient

    def _unconstrained(self, name: str, value: tuple[float, ...]) -> Tensor:
        expected = len(self.family.start)
        natural = torch.tensor(value, dtype=torch.float64)
        theta = self.family.unconstrain(natural)
        if len(value) != expected or not torch.isfinite(theta).all():
            shown = "a positive rate" if self.family.name == "poisson" else "a probability"
            shown = shown if expected == 1 else f"{expected} probabilities"
            raise ValueError(f"expected {shown} as the {name} of a {self.family.name}, "
                             f"but got {', '.join(map(str, value))}.")  # fmt: skip
        return theta if expected > 1 else theta.squeeze(0)


# Binomial(20, ·), Multinomial(3, ·), NegativeBinomial(3, ·), as in the paper
_TRIALS, _DRAWS, _FAILURES = 20, 3, 3


def _least_count(c: float, largest: float = math.inf) -> Callable[[Tensor], Tensor]:
    def minimum(t: Tensor) -> Tensor:
        m = ((t - 0.5) / (1 + c)).clamp(0, largest)
        return m + c * m.square() + (m - t).square()

    return minimum


def _least_multinomial(t: Tensor) -> Tensor:
    """The loss is a multiple of ``|p - t / (N - 1)|²`` and a constant: project onto the simplex."""
    point = t / (_DRAWS - 1)
    falling = point.sort(descending=True).values
    shift = (falling.cumsum(0) - 1) / torch.arange(1, len(t) + 1)
    p = (point - shift[falling > shift][-1]).clamp_min(0)
    return (_DRAWS * p * (1 - p) + (_DRAWS * p - t).square()).sum()


# the law of an unconstrained parameter, the way back to it, the least loss; start, target, atoms
_FAMILIES = (
    CountFamily(
        "poisson",
        lambda theta: Poisson(theta.exp(), validate_args=False),
        *(torch.log, _least_count(0), (10.0,), (20.0,), 50),
    ),
    CountFamily(
        "binomial",
        lambda theta: Binomial(_TRIALS, logits=theta, validate_args=False),
        *(torch.logit, _least_count(-1 / _TRIALS, _TRIALS), (0.6,), (0.3,)),
    ),
    CountFamily(
        "multinomial",
        lambda theta: Multinomial(_DRAWS, logits=theta, validate_args=False),
        *(torch.log, _least_multinomial, (1 / 3, 1 / 3, 1 / 3), (0.7, 0.2, 0.1)),
    ),
    CountFamily(
        "negative-binomial",
        lambda theta: NegativeBinomial(
            theta.new_full(theta.shape, _FAILURES), logits=theta, validate_args=False
        ),
        *(torch.logit, _least_count(1 / _FAILURES), (0.6,), (0.4,), 40),
    ),
    CountFamily(
        "geometric",
        lambda theta: Geometric(logits=theta, validate_args=False),
        *(torch.logit, _least_count(1), (0.1,), (0.25,), 60),
    ),
)
FAMILIES: dict[str, CountFamily] = {family.name: family for family in _FAMILIES}
"""The laws of the experiment, by name."""
