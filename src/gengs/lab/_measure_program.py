r"""The laboratory for programs: bias, variance and time of each rule, on the user's own simulator.

No enumeration knows the exact gradient of a simulator. Finite differences of a large mean do,
up to an error that is measured: central differences at :math:`h` and :math:`2h`, with the same
random numbers on both sides, combined as :math:`(4 D_h - D_{2h}) / 3`, whose error is of order
:math:`h^4`; their spread over independent batches is the standard error.

The result ends with a verdict, and with the rule to take: the one that needs the least time for a
given error, among those in which no bias was found.

Example:
    >>> import gengs
    >>> _ = torch.manual_seed(0)
    >>> def simulate(theta, replicates):
    ...     born = torch.poisson(theta[0].expand(replicates))
    ...     return torch.binomial(born, theta[1].expand(replicates)).square()  # the cost
    >>> theta = torch.tensor([40.0, 0.3], requires_grad=True)
    >>> result = measure_program(simulate, theta, gradients=50, reference=20_000)
    >>> result["MidCDF"].variance < result["RLOO"].variance
    True
    >>> result.recommended in ("MidCDF", "FittedScore")
    True
"""

from __future__ import annotations

__all__ = ["ProgramMeasurement", "measure_program"]

import inspect
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

import torch
from torch import Tensor

from ..estimators import RLOO, MidCDF
from ..programs import FittedScore, ProgramWarning, differentiable
from .result import Measurement, Row, row_of

_BATCHES = 20
"""Independent finite differences, whose spread is the reference's error."""


def measure_program(
    simulate: Callable[..., Any],
    theta: Tensor,
    cost: Callable[[Any], Tensor] | None = None,
    by: Any = None,
    *,
    replicates: int = 100,
    gradients: int = 200,
    reference: int = 200_000,
    step: float = 0.05,
    exact: Tensor | None = None,
    seed: int = 0,
) -> ProgramMeasurement:
    """Measure rules for the gradient of a program's mean cost.

    Args:
        simulate: The program: from ``theta`` and ``replicates=`` (if it takes that) to an outcome.
        theta: Its parameters.
        cost: From the outcome to one number per replicate; the outcome itself unless told
            otherwise.
        by: A rule or several, as for :func:`gengs.differentiable`; ``MidCDF()``, ``RLOO()`` and
            ``FittedScore()`` by default.
        replicates: How many replicates one gradient averages over.
        gradients: The number of independent gradients per rule.
        reference: How many replicates each finite difference averages over.
        step: The step of the finite differences, as a fraction of each parameter (of 1 where it is
            0); they go up to twice as far.
        exact: The exact gradient, where you know it: flattened.
        seed: Of torch's generator; its state is put back afterwards.
    """
    if gradients < 2:
        raise ValueError(f"measure_program expects at least two `gradients`, but got {gradients}.")
    if not isinstance(theta, Tensor) or not theta.is_floating_point():
        got = theta.dtype if isinstance(theta, Tensor) else type(theta).__name__
        raise TypeError(
            f"measure_program expects a floating-point tensor as `theta`, but got {got}."
        )
    if by is None:
        rules: list[Any] = [MidCDF(), RLOO(), FittedScore()]
    else:
        rules = list(by) if isinstance(by, Sequence) else [by]
    theta = theta.detach().clone().requires_grad_()
    takes = "replicates" in inspect.signature(simulate).parameters

    def costs(theta: Tensor, number: int) -> Tensor:
        outcome = simulate(theta, replicates=number) if takes else simulate(theta)
        found: Tensor = outcome if cost is None else cost(outcome)
        return found

    def row(rule: Any, exact: Tensor) -> Row:
        found, times = [], []
        with warnings.catch_warnings():
            for i in range(gradients):
                start = time.perf_counter()
                with differentiable(by=rule) as program:
                    outcome = costs(theta, replicates)
                loss = program.loss(outcome).mean()
                gradient = torch.zeros_like(theta)
                if loss.requires_grad:  # or the program has cut all of it off, which has been said
                    (gradient,) = torch.autograd.grad(loss, theta, materialize_grads=True)
                times.append(time.perf_counter() - start)
                found.append(gradient.flatten().double())
                if i == 0:  # once is enough
                    warnings.simplefilter("ignore", ProgramWarning)
        price = replicates, 1e3 * median(times)
        return row_of(rule, torch.stack(found), exact, *price, error**2)

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        error, source = 0.0, "given"
        if exact is None:
            exact, error = _finite_differences(costs, theta, reference, step, seed)
            source = f"finite differences of {reference:,} simulations each, s.e. {error:.2g}"
        exact = exact.detach().flatten().double()
        rows = [row(rule, exact) for rule in rules]
    return ProgramMeasurement(tuple(rows), exact, source, gradients)


@dataclass(frozen=True)
class ProgramMeasurement(Measurement):
    """The rows of a measurement of rules for a program, with a verdict."""

    @property
    def recommended(self) -> str | None:
        """The rule that needs the least time for a given error, of those without a bias."""
        right = [row for row in self.rows if not _is_biased(row, float(self.exact.norm()))]
        best = min(right, key=lambda row: row.variance * row.milliseconds, default=None)
        return None if best is None else best.estimator

    @property
    def verdict(self) -> str:
        """What is to be taken from it, in a sentence."""
        size = float(self.exact.norm()) or 1.0
        wrong = [
            f"{row.estimator} is off by {abs(row.bias) / size:.0%} ± {row.bias_error / size:.0%}"
            for row in self.rows
            if _is_biased(row, size)
        ]
        vague = max((row.bias_error for row in self.rows), default=0.0) / size
        found = "; ".join(wrong) or f"no bias was found (errors up to {vague:.0%} of the gradient)"
        if self.recommended is None:
            return f"{found}; no rule is right here: try gengs.FittedScore() or gengs.RLOO()."
        return f"{found}; take by=gengs.{self.recommended.partition('(')[0]}()."

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.verdict}"


def _is_biased(row: Row, size: float) -> bool:
    """Whether a bias of more than 2 % was found, beyond four standard errors."""
    return abs(row.bias) > 4 * row.bias_error and abs(row.bias) > 0.02 * size


def _finite_differences(
    costs: Callable[[Tensor, int], Tensor], theta: Tensor, number: int, step: float, seed: int
) -> tuple[Tensor, float]:
    """The gradient of the mean cost, and the norm of its standard error."""
    flat = theta.detach().flatten()
    widths = step * torch.where(flat == 0, torch.ones_like(flat), flat.abs())
    size = max(number // _BATCHES, 1)
    found = torch.zeros(_BATCHES, flat.numel(), dtype=torch.float64)
    with torch.no_grad():
        for batch in range(_BATCHES):
            for i, width in enumerate(widths):
                sides = []
                for far in (1, -1, 2, -2):
                    torch.manual_seed(seed + 1 + batch)  # common random numbers
                    moved = flat.clone()
                    moved[i] += far * width
                    sides.append(costs(moved.reshape(theta.shape), size).double().mean())
                near, wide = sides[0] - sides[1], sides[2] - sides[3]
                found[batch, i] = (4 * near / (2 * width) - wide / (4 * width)) / 3
    return found.mean(0), float(found.std(0).norm()) / _BATCHES**0.5
