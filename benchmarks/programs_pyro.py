"""What a block costs on models that others wrote: Pyro's epidemiology, a distribution of one's own.

Processor time of forward and backward, by the path, over that of the same simulation without
gradients.

    python -m benchmarks.programs_pyro > results/programs/pyro.md
"""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable
from typing import Any

import pyro
import torch
from pyro.contrib.epidemiology.models import OverdispersedSEIRModel, SimpleSEIRModel
from torch import Tensor
from torch.distributions import Beta, Binomial, Distribution, constraints

import gengs

from .programs_overhead import least

REPLICATES, PEOPLE, STEPS = 1000, 1000, 30


def run_seir(kind: Any, theta: Tensor, *more: float) -> Tensor:
    """A model of Pyro's, step by step, as its own ``generate`` does it, for many replicates."""
    model = kind(PEOPLE, 2.0, 5.0, [0.0])
    state = {
        "S": torch.full((REPLICATES,), PEOPLE - 50.0),
        "E": torch.full((REPLICATES,), 25.0),
        "I": torch.full((REPLICATES,), 25.0),
    }
    params = (theta[0], 2.0, 5.0, theta[1], *map(torch.tensor, more))
    for t in range(1, STEPS + 1):  # the first day alone has data
        model.transition(params, state, t)
    return 1 - state["S"] / PEOPLE


def sir(theta: Tensor) -> Tensor:
    """In the manner of Pyro's ``sir_hmc`` example: binomials with probabilities of their own."""
    susceptible = torch.full((REPLICATES,), PEOPLE - 50.0)
    infected = torch.full((REPLICATES,), 50.0)
    for t in range(STEPS):
        risk = -(-theta[0] / 5 * infected / PEOPLE).expm1()
        new = pyro.sample(f"S2I_{t}", pyro.distributions.Binomial(susceptible, risk))
        gone = pyro.sample(f"I2R_{t}", pyro.distributions.Binomial(infected, theta[1] / 2))
        susceptible, infected = susceptible - new, infected + new - gone
    return 1 - susceptible / PEOPLE


class OwnBetaBinomial(Distribution):
    """A beta-binomial as people write it: drawn in two steps, with its own ``log_prob``."""

    arg_constraints = {"a": constraints.positive, "b": constraints.positive}

    def __init__(self, a: Tensor, b: Tensor, total_count: int) -> None:
        self.a, self.b, self.total_count = a, b, total_count
        super().__init__(a.shape, validate_args=False)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self) -> Any:
        return constraints.integer_interval(0, self.total_count)

    def sample(self, sample_shape: Any = ()) -> Tensor:
        with torch.no_grad():
            p = Beta(self.a, self.b).sample(sample_shape)
            return Binomial(self.total_count, p).sample()

    def log_prob(self, value: Tensor) -> Tensor:
        n = self.total_count
        choose = torch.lgamma(torch.tensor(n + 1.0)) - torch.lgamma(value + 1)
        choose = choose - torch.lgamma(n - value + 1)
        a, b = self.a + value, self.b + n - value
        found = torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b)
        rest = torch.lgamma(self.a) + torch.lgamma(self.b) - torch.lgamma(self.a + self.b)
        return choose + found - rest


def own(theta: Tensor) -> Tensor:
    total = torch.zeros(REPLICATES)
    for _ in range(STEPS):
        a = theta[0] * (1 + total / 1000)
        total = total + OwnBetaBinomial(a, 3 * theta[1].expand(REPLICATES), 50).sample()
    return total


PROGRAMS: dict[str, Callable[[Tensor], Tensor]] = {
    "SimpleSEIRModel": lambda theta: run_seir(SimpleSEIRModel, theta),
    "OverdispersedSEIRModel": lambda theta: run_seir(OverdispersedSEIRModel, theta, 0.2),
    "SIR of binomials (`pyro.sample`)": sir,
    "a BetaBinomial of one's own": own,
}


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    theta = torch.tensor([1.5, 0.4], requires_grad=True)

    def plain(simulate: Callable[[Tensor], Tensor]) -> None:
        with torch.no_grad():
            simulate(theta)

    def block(simulate: Callable[[Tensor], Tensor]) -> None:
        with gengs.differentiable() as program:
            cost = simulate(theta)
        program.loss(cost).mean().backward()

    print("# What a block costs on models that others wrote\n")
    print("`python -m benchmarks.programs_pyro > results/programs/pyro.md`\n")
    print(
        f"{REPLICATES:,} replicates, {STEPS} steps; processor time of the path, forward and "
        "backward, over that of the simulation without gradients; the least of 5 runs, one thread. "
        f"torch {torch.__version__}, Pyro {pyro.__version__}, gengs {gengs.__version__}, "
        f"Python {platform.python_version()}.\n"
    )
    print("| program | draws | without gradients, ms | path |")
    print("| --- | ---: | ---: | ---: |")
    for name, simulate in PROGRAMS.items():
        with gengs.differentiable() as program:
            simulate(theta)
        base, ours = (least(lambda s=simulate, r=r: r(s), 5) for r in (plain, block))  # type: ignore[misc]
        print(f"| {name} | {len(program.sites)} | {base:.1f} | {ours / base:.1f} |", flush=True)


if __name__ == "__main__":
    main()
