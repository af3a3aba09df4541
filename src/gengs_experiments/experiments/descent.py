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

__all__ = ["Contender", "contenders", "descend"]

import copy
import time
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torch.distributions import Distribution, Independent

from gengs.estimators.base import Estimator
from gengs.estimators.spec import parse_estimator
from gengs.lab.quality import draws_shown, gradient_quality
from gengs.tables.truncation import truncate

from ..runs.machine import limited_threads
from .quadratic import FAMILIES, Quadratic

if TYPE_CHECKING:
    from .synthetic import Synthetic

# Side by side as many gradients as keep tables of some million entries.
_AT_ONCE = 10_000
# what an estimator may need
_TABLES = ("any distribution, as a table of atoms", "few joint outcomes")


@dataclass(frozen=True)
class Contender:
    """An estimator in the comparison."""

    label: str
    """What the paper calls it."""
    call: str
    """The estimator with its settings."""
    level: int | None
    """The atoms of the law, where it needs a table of them."""
    mass: float | None = None
    """Cut the law anew at each step, to this mass (Algorithm 2, NP)."""

    def make(self) -> Estimator:
        """A fresh copy."""
        return parse_estimator(self.call)

    def law(self, law: Distribution) -> Distribution:
        """The law it sees: a vector of independent factors, truncated where it needs a table."""
        if self.mass is not None:
            law = truncate(law, mass=self.mass)
        elif self._needs_table:
            law = truncate(law, self.level)
        return Independent(law, 1, validate_args=False)

    @cached_property
    def _needs_table(self) -> bool:
        # asked in the descent, not before: one that draws weights moves the generator on
        return self.make().needs in _TABLES


def contenders(config: Synthetic, names: Sequence[str]) -> list[Contender]:
    """The estimators of these names: the paper's (``RF*``), or calls (``GenGS(0.1)``), or ``all``.

    Of a finite family, ``all`` leaves out a search for its range.
    """
    tau, k, family = config.temperature, config.k, FAMILIES[config.law]
    calls = {
        "RF": "REINFORCE",
        "RF*": "RLOO",
        # its division by a running standard deviation is a change of the step size, which Adam
        # undoes; left out, so that its gradients can be compared with the exact one
        "NVIL": "NVIL",
        "MuProp": "MuProp",
        "VIMCO": f"VIMCO({k})",
        "DetRB": f"DetRB({k})",
        "DetRB*": f"DetRB({k}, baseline=True)",
        "StoRB": f"StoRB({k})",
        "StoRB*": f"StoRB({k}, baseline=True)",
        "UnOrd": f"UnOrd({k})",
        "REBAR": f"REBAR({tau})",
        "RELAX": f"RELAX({tau})",
        "GenGS": f"GenGS({tau})",
        "GenGS ST": f"GenGS({tau}, hard=True)",
        "GenGS NP": f"GenGS({tau})",
        "IGR": "IGR",
        "Gumbel-Rao": f"GumbelRao({tau})",
        "ReinMax": "ReinMax",
        "EAT": f"ArrivalTimes({tau})",
        "Finite differences": "FiniteDifference",
        "mid-CDF": "MidCDF",
    }
    if list(names) == ["all"]:
        names = [name for name in calls if name != "GenGS NP" or family.level is not None]
    labels = {label.lower(): label for label in calls}
    chosen: dict[str, Contender] = {}
    for name in names:
        label = labels.get(name.lower(), name)
        if label in chosen:
            raise ValueError(f"expected each estimator once, but got {label} again.")
        mass = config.mass if label == "GenGS NP" else None
        level = config.level or family.level
        chosen[label] = Contender(label, calls.get(label, label), level, mass)
        chosen[label].make()  # refuses a name that there is not
    return list(chosen.values())


def descend(config: Synthetic, label: str) -> tuple[list[dict[str, Any]], float]:
    """Minimise the problem with one estimator, on one thread; the global generator stays as it is.

    Returns:
        A record for each step and one after the last, and the milliseconds of a gradient for one
        seed, step included.
    """
    problem = Quadratic(FAMILIES[config.law], config.start, config.target, config.dimension)
    (contender,) = contenders(config, [label])
    with limited_threads(1), torch.random.fork_rng(devices=[]):
        # an estimator's numbers do not depend on which others are compared
        torch.manual_seed(config.seed + zlib.crc32(contender.label.encode()))
        copies = config.seeds if contender.make().learns else 1
        team = _Team(problem, contender, [contender.make() for _ in range(copies)])
        theta = problem.parameters(config.seeds).requires_grad_()
        learned = (part for estimator in team.estimators for part in estimator.parameters())
        optimiser = torch.optim.Adam([theta, *learned], lr=config.rate)
        path, qualities, elapsed = [theta.detach().clone()], {}, 0.0
        for step in range(config.steps):
            if step % config.every == 0:
                qualities[step] = team.quality(theta, config.gradients)
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
        qualities[config.steps] = team.quality(theta, config.final_gradients)
        estimator, law = team.frozen().problems(theta)[0]
        evaluations = draws_shown(estimator, problem.cost, law)
        losses = problem.loss(torch.stack(path))  # (steps + 1, seeds)
    records = []
    for step, loss in enumerate(losses):
        record: dict[str, Any] = {"estimator": contender.label, "step": step}
        records.append(record | _mean("loss", loss) | qualities.get(step, {}))
    records[-1] |= _mean("excess", losses[-(config.steps // 4) - 1 :].mean(0) - problem.minimum)
    records[-1] |= {"minimum": problem.minimum, "evaluations": evaluations, "last": True}
    return records, 1e3 * elapsed / config.steps / copies


@dataclass(frozen=True)
class _Team:
    """One estimator for all seeds, or one for each."""

    problem: Quadratic
    contender: Contender
    estimators: Sequence[Estimator]

    def problems(self, theta: Tensor) -> list[tuple[Estimator, Distribution]]:
        """Each estimator and the law of its seeds, of parameters ``(..., seeds, dimension)``."""
        axis = theta.dim() - 2 - self.problem.event_dim
        parts = theta.chunk(len(self.estimators), axis)
        laws = (self.contender.law(self.problem.law(part)) for part in parts)
        return list(zip(self.estimators, laws, strict=True))

    def expect(self, theta: Tensor) -> Tensor:
        """One estimate for each seed: ``theta (..., seeds, dimension)`` to ``(..., seeds)``."""
        values = [own.expect(self.problem.cost, law) for own, law in self.problems(theta)]
        return values[0] if len(values) == 1 else torch.cat(values, -1)

    def quality(self, theta: Tensor, gradients: int) -> dict[str, Any]:
        """Fresh gradients against the exact one, so many for each seed, as a part of a record.

        The estimators, their running averages too, stay as they are.
        """
        frozen = self.frozen()
        parts, at_once = [], max(1, _AT_ONCE // len(theta))
        for begin in range(0, gradients, at_once):
            repeats = min(at_once, gradients - begin)
            copies = theta.detach().expand(repeats, *theta.shape).clone().requires_grad_()
            (gradient,) = torch.autograd.grad(frozen.expect(copies).sum(), copies)
            parts.append(gradient.flatten(2).double())
        exact = self.problem.gradient(theta).flatten(1)  # (seeds, parameters)
        found = gradient_quality(torch.cat(parts), exact)
        record: dict[str, Any] = _mean("variance", found.variance)
        if self.estimators[0].objective == "expectation":  # else a distance would mislead
            record |= _mean("error", found.error)
            noise = (found.variance / gradients).sum().sqrt() / len(theta)
            record |= {"bias": found.bias.mean(0).tolist(), "bias_se": float(noise)}
        return record

    def frozen(self) -> _Team:
        """A copy whose parts no longer learn."""
        copies = copy.deepcopy(list(self.estimators))
        for estimator in copies:
            for parameter in estimator.parameters():
                parameter.requires_grad = False  # a lazy one takes this, but not requires_grad_()
        return replace(self, estimators=copies)


def _mean(name: str, values: Tensor) -> dict[str, float]:
    """The mean over the seeds, and its standard error."""
    return {name: float(values.mean()), f"{name}_se": float(values.std() / len(values) ** 0.5)}
