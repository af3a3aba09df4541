"""Costs of subsets and rankings for the laboratory, each with its exact gradient."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import gelu

import gengs
from benchmarks.sets_references import (
    Cost,
    Reference,
    by_arrival_times,
    by_enumeration,
    by_pairs,
    by_score,
    inclusion_of_pairs,
)

DRAWS = {100: 400_000, 1000: 200_000}
"""Of the score function, where it is the reference."""


@dataclass(frozen=True)
class Case:
    """A cost, its exact gradient, and whether it has a slope."""

    name: str
    cost: Cost
    reference: Callable[[], Reference]
    smooth: bool = True
    gains: Tensor | None = None
    """Of DCG, which has estimators of its own."""


def subset_cases(n: int, k: int, seed: int) -> tuple[Tensor, list[Case]]:
    """Scores, and costs of vectors."""
    theta = torch.randn(n, generator=torch.Generator().manual_seed(seed))
    generator = torch.Generator().manual_seed(seed + 1)
    a, b, w, v = (torch.randn(s, generator=generator) for s in ((n, n), (n,), (n, 32), (32,)))
    a = a @ a.T / n
    law = gengs.Subset(k, theta)

    def network(z: Tensor) -> Tensor:
        return gelu(z @ w / math.sqrt(3)) @ v

    middle = float(b @ law.mean)

    def step(z: Tensor) -> Tensor:
        return (z @ b > middle).float()

    def other(cost: Cost) -> Callable[[], Reference]:
        if n == 10:
            return lambda: by_enumeration(law, cost)
        mean = law.mean

        def draw(many: int) -> tuple[Tensor, Tensor]:
            z = law.sample(torch.Size([many]))
            return z, z - mean

        def reference() -> Reference:
            covariance = inclusion_of_pairs(law) - torch.outer(mean, mean).double()
            return by_score(draw, cost, lambda z: z, covariance, DRAWS[n], 2_000_000 // n)

        return reference

    def quadratic(z: Tensor) -> Tensor:
        return ((z @ a) * z).sum(-1) / 2 + z @ b

    return theta, [
        Case("linear", lambda z: z @ b, lambda: by_pairs(law, 0 * a, b)),
        Case("quadratic", quadratic, lambda: by_pairs(law, a, b)),
        Case("network", network, other(network)),
        Case("step", step, other(step), smooth=False),
    ]


def ranking_cases(n: int, seed: int) -> tuple[Tensor, list[Case]]:
    """Scores, and costs of order matrices ``(…, n, n)``, places × items."""
    theta = torch.randn(n, generator=torch.Generator().manual_seed(seed))
    generator = torch.Generator().manual_seed(seed + 1)
    gains, rough = (torch.randn(s, generator=generator) for s in ((n,), (n, n)))
    features, inner = (torch.randn(s, generator=generator) for s in ((n, 3), (3, 32)))
    outer = torch.randn(32, generator=generator)
    places = torch.arange(float(n))
    discounts = 1 / torch.log2(2 + places)
    wanted = torch.randperm(n, generator=generator).float()
    law = gengs.PlackettLuce(theta)
    scale = 3 / float(discounts.sum())

    def dcg(placed: Tensor) -> Tensor:
        """Of values in their places, ``(…, n, d)``: ``(…, d)``."""
        return discounts @ placed

    def network(placed: Tensor) -> Tensor:
        return gelu(scale * dcg(placed) @ inner) @ outer

    torch.manual_seed(seed)
    drawn = law.sample_order(torch.Size([1000]))
    middle = float(dcg(gains[drawn].unsqueeze(-1)).median())

    def step(placed: Tensor) -> Tensor:
        return (dcg(placed).squeeze(-1) > middle).float()

    def other(cost: Cost, values: Tensor) -> tuple[Cost, Callable[[], Reference]]:
        """A cost of the items' values in their places."""

        def of_matrix(p: Tensor) -> Tensor:
            return cost(p @ values)

        if n == 10:
            return of_matrix, lambda: by_enumeration(law, of_matrix)

        def draw(many: int) -> tuple[Tensor, Tensor]:
            order = law.sample_order(torch.Size([many]))
            return order, scores_of(law, order)

        def reference() -> Reference:
            known = [
                by_arrival_times(law, discounts.unsqueeze(-1) * x).mean for x in values.unbind(-1)
            ]
            cost_of_order, controls = (
                lambda order: cost(values[order]),
                lambda order: dcg(values[order]),
            )
            portion = 1_000_000 // n
            return by_score(draw, cost_of_order, controls, torch.stack(known), DRAWS[n], portion)

        return of_matrix, reference

    def linear(at_place: Tensor) -> tuple[Cost, Callable[[], Reference]]:
        return lambda p: (p * at_place).sum((-1, -2)), lambda: by_arrival_times(law, at_place)

    distance = ((places.unsqueeze(-1) - wanted) / n).square()
    return theta, [
        Case("DCG", *linear(discounts.unsqueeze(-1) * gains), gains=gains),
        Case("rank distance", *linear(distance)),
        Case("unrelated places", *linear(rough)),
        Case("network", *other(network, features)),
        Case("step", *other(step, gains.unsqueeze(-1)), smooth=False),
    ]


def scores_of(law: gengs.PlackettLuce, order: Tensor) -> Tensor:
    """The gradient of the log-probability of orders ``(S, n)``."""
    w = law.logits.double().exp()
    left = w[order].flip(-1).cumsum(-1).flip(-1)
    at_place = 1 - w[order] * (1 / left).cumsum(-1)
    return torch.empty_like(at_place).scatter(-1, order, at_place)
