"""The estimators of the toy problem, and the descent of each, for many seeds.

Estimators have the names that the paper gives them. One that needs a table of atoms sees a
truncated law, any other the law itself.

Every seed has its own parameter, along the batch dimension, and takes the same number of Adam
steps, each on a single gradient. An estimator with parts that learn (NVIL, REBAR, RELAX) has one
copy for each seed, trained by the same Adam: no seed knows of another.

Every few steps the parameters are frozen and many fresh gradients are drawn for each seed, with
the estimator as it is at that moment; they leave no trace in it.
"""

from __future__ import annotations

__all__ = ["Contender", "Descent", "Quality", "contenders", "descend"]

import copy
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent

from ..distributions.truncation import truncate
from ..estimators.base import Cost, Estimator
from ..estimators.spec import parse_estimator
from .quadratic import CountFamily, Quadratic

if TYPE_CHECKING:
    from .synthetic import Synthetic

# Side by side as many gradients as keep tables of some million entries.
_AT_ONCE = 10_000
_TABLES = ("any law, as a table of atoms", "few joint outcomes")  # what an estimator may need


@dataclass(frozen=True)
class Contender:
    """An estimator in the comparison."""

    label: str
    """What the paper calls it."""
    call: str
    """The estimator with its settings."""
    mass: float | None = None
    """Cut the law anew at each step, to this mass (Algorithm 2, NP)."""

    def make(self) -> Estimator:
        """A fresh copy."""
        return parse_estimator(self.call)

    def law(self, law: Distribution, level: int | None) -> Distribution:
        """The law it sees: a vector of independent factors, truncated where it needs a table."""
        if self.mass is not None:
            law = truncate(law, mass=self.mass)
        elif self._needs_table:
            law = truncate(law, level)
        return Independent(law, 1, validate_args=False)

    @cached_property
    def _needs_table(self) -> bool:
        return self.make().needs in _TABLES


def contenders(
    names: Sequence[str], family: CountFamily, temperature: float, k: int, mass: float
) -> list[Contender]:
    """The estimators of these names: the paper's (``RF*``), or calls (``GenGS(0.1)``), or ``all``.

    Of a finite family, ``all`` leaves out a search for its range. Multi-sample estimators make
    ``k`` evaluations, GenGS NP keeps the mass.
    """
    roster = {contender.label.lower(): contender for contender in _roster(temperature, k, mass)}
    if list(names) == ["all"]:
        finite = family.level is None
        return [one for one in roster.values() if not (finite and one.mass is not None)]
    chosen: dict[str, Contender] = {}
    for name in names:
        one = roster.get(name.lower()) or Contender(name, name)
        one.make()  # refuses a name that there is not
        if one.label in chosen:
            raise ValueError(f"expected each estimator once, but got {one.label} again.")
        chosen[one.label] = one
    return list(chosen.values())


def _roster(temperature: float, k: int, mass: float) -> list[Contender]:
    tau = temperature
    return [
        Contender("RF", "REINFORCE"),
        Contender("RF*", "RLOO"),
        # its division by a running standard deviation is a change of the step size, which Adam
        # undoes; left out, so that its gradients can be compared with the exact one
        Contender("NVIL", "NVIL(normalise=False)"),
        Contender("MuProp", "MuProp"),
        Contender("VIMCO", f"VIMCO({k})"),
        Contender("DetRB", f"DetRB({k})"),
        Contender("DetRB*", f"DetRB({k}, baseline=True)"),
        Contender("StoRB", f"StoRB({k})"),
        Contender("StoRB*", f"StoRB({k}, baseline=True)"),
        Contender("UnOrd", f"UnOrd({k})"),
        Contender("REBAR", f"REBAR({tau})"),
        Contender("RELAX", f"RELAX({tau})"),
        Contender("GenGS", f"GenGS({tau})"),
        Contender("GenGS ST", f"GenGS({tau}, hard=True)"),
        Contender("GenGS NP", f"GenGS({tau})", mass),
        Contender("IGR", "IGR"),
        Contender("Gumbel-Rao", f"GumbelRao({tau})"),
        Contender("ReinMax", "ReinMax"),
        Contender("EAT", f"ArrivalTimes({tau})"),
        Contender("Finite differences", "FiniteDifference"),
        Contender("mid-CDF", "MidCDF"),
    ]


@dataclass(frozen=True)
class Quality:
    """Fresh gradients against the exact one, at frozen parameters, for each seed."""

    step: int
    variance: Tensor
    """The trace of the covariance, ``(seeds,)``."""
    error: Tensor
    """The mean distance of a single gradient from the exact one, ``(seeds,)``."""
    bias: Tensor
    """The mean gradient minus the exact one, ``(seeds, parameters)``."""
    gradients: int
    """How many were drawn for each seed."""


@dataclass(frozen=True)
class Descent:
    """What one estimator did."""

    loss: Tensor
    """The exact loss before each step and after the last, ``(steps + 1, seeds)``."""
    qualities: tuple[Quality, ...]
    """At every so many steps; the last is at the end, from more gradients."""
    evaluations: int
    """Of the cost, per gradient."""
    milliseconds: float
    """The time of one gradient for one seed, step included."""


def descend(config: Synthetic, problem: Quadratic, contender: Contender) -> Descent:
    """Minimise the problem with one estimator; torch's random generator is put back afterwards."""
    level = config.level or problem.family.level
    with torch.random.fork_rng(devices=[]):
        # an estimator's numbers do not depend on which others are compared
        torch.manual_seed(config.seed + zlib.crc32(contender.label.encode()))
        copies = config.seeds if contender.make().learns else 1
        team = _Team(problem, contender, level, [contender.make() for _ in range(copies)])
        theta = problem.parameters(config.seeds).requires_grad_()
        learned = (part for estimator in team.estimators for part in estimator.parameters())
        optimiser = torch.optim.Adam([theta, *learned], lr=config.rate)
        path, qualities, elapsed = [theta.detach().clone()], [], 0.0
        for step in range(config.steps):
            if step % config.every == 0:
                qualities.append(team.quality(theta, step, config.gradients))
            begin = time.perf_counter()
            optimiser.zero_grad()
            team.expect(theta).sum().backward()
            optimiser.step()
            elapsed += time.perf_counter() - begin
            if not problem.countable(theta):
                raise FloatingPointError(
                    f"{contender.label} diverged at step {step + 1}: λ is beyond what 32-bit "
                    f"counts can show; a --rate below {config.rate:g} may help."
                )
            path.append(theta.detach().clone())
        qualities.append(team.quality(theta, config.steps, config.final_gradients))
        evaluations = team.evaluations(theta)
    milliseconds = 1e3 * elapsed / config.steps / copies
    return Descent(problem.loss(torch.stack(path)), tuple(qualities), evaluations, milliseconds)


@dataclass(frozen=True)
class _Team:
    """One estimator for all seeds, or one for each."""

    problem: Quadratic
    contender: Contender
    level: int | None
    estimators: Sequence[Estimator]

    def expect(self, theta: Tensor, cost: Cost | None = None) -> Tensor:
        """One estimate for each seed: ``theta (..., seeds, dimension)`` to ``(..., seeds)``."""
        axis = theta.dim() - 2 - self.problem.event_dim
        parts = theta.chunk(len(self.estimators), axis)
        values = []
        for estimator, part in zip(self.estimators, parts, strict=True):
            law = self.contender.law(self.problem.law(part), self.level)
            values.append(estimator.expect(cost or self.problem.cost, law))
        return values[0] if len(values) == 1 else torch.cat(values, -1)

    def quality(self, theta: Tensor, step: int, gradients: int) -> Quality:
        """Measure fresh gradients; the estimators, their running averages too, stay as they are."""
        frozen = self._frozen()
        exact = self.problem.gradient(theta).flatten(1)  # (seeds, parameters)
        parts, at_once = [], max(1, _AT_ONCE // len(theta))
        for begin in range(0, gradients, at_once):
            repeats = min(at_once, gradients - begin)
            copies = theta.detach().expand(repeats, *theta.shape).clone().requires_grad_()
            (gradient,) = torch.autograd.grad(frozen.expect(copies).sum(), copies)
            parts.append(gradient.flatten(2).double() - exact)
        off = torch.cat(parts)  # (gradients, seeds, parameters)
        return Quality(step, off.var(0).sum(-1), off.norm(dim=-1).mean(0), off.mean(0), gradients)

    def evaluations(self, theta: Tensor) -> int:
        """How many draws a gradient shows to the cost, counted."""
        shown = 0

        def counted(z: Tensor) -> Tensor:
            nonlocal shown
            shown += z.shape[0]
            return self.problem.cost(z)

        self._frozen().expect(theta, counted)
        return shown // len(self.estimators)

    def _frozen(self) -> _Team:
        copies = copy.deepcopy(list(self.estimators))
        for estimator in copies:
            for parameter in estimator.parameters():
                parameter.requires_grad = False  # a lazy one takes this, but not requires_grad_()
        return replace(self, estimators=copies)
