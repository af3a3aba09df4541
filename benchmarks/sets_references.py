r"""Gradients of expectations under subsets and rankings that no swap rule had a part in.

=================  =================================================================================
enumeration        all outcomes
pair inclusion     subsets, quadratic costs: :math:`P(z_a = z_b = 1) = (w_b \mu_a - w_a \mu_b) /
                   (w_b - w_a)` of the means :math:`\mu`, and its derivative
arrival times      rankings, costs that are linear in the order matrix: an item that arrives at time
                   t is behind each other item j with probability :math:`1 - e^{-w_j t}`,
                   independently, so its place is a sum of coins; an integral over t
score              all others: the score function on many draws, less a control variate whose
                   gradient is known by one of the above; a standard error remains
=================  =================================================================================
"""

from __future__ import annotations

__all__ = [
    "Reference",
    "by_arrival_times",
    "by_enumeration",
    "by_pairs",
    "by_score",
    "inclusion_of_pairs",
]

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain, permutations
from math import factorial

import numpy as np
import torch
from torch import Tensor

import gengs

Cost = Callable[[Tensor], Tensor]
GROUPS = 20


@dataclass(frozen=True)
class Reference:
    """The gradient, as the means of independent groups of draws; one group where it is exact."""

    kind: str
    groups: Tensor
    """``(GROUPS, n)``, or ``(1, n)``."""

    @property
    def mean(self) -> Tensor:
        return self.groups.mean(0)

    @property
    def squared_error(self) -> float:
        """The expected squared distance of the mean from the gradient."""
        many = len(self.groups)
        return float(self.groups.var(0).sum() / many) if many > 1 else 0.0


def by_enumeration(law: gengs.Subset | gengs.PlackettLuce, cost: Cost) -> Reference:
    """All outcomes of a distribution without a batch."""
    leaf = law.logits.detach().double().requires_grad_()
    if isinstance(law, gengs.Subset):
        ours = gengs.Subset(law.k, leaf)
        z = ours.outcomes()
        (ours.log_prob(z).exp() * cost(z.float()).double()).sum().backward()
    else:
        places = gengs.PlackettLuce(leaf, law.k)
        if law.k != law.items:
            raise ValueError("orders of all items are listed.")
        many = factorial(law.items)
        listed = chain.from_iterable(permutations(range(law.items)))
        orders = np.fromiter(listed, np.int8, many * law.items).reshape(many, law.items)
        for part in torch.from_numpy(orders).split(1 << 16):
            p = places.one_hot(part.long())
            (places.log_prob_order(part.long()).exp() * cost(p.float()).double()).sum().backward()
    assert leaf.grad is not None
    return Reference("enumeration", leaf.grad.unsqueeze(0))


def by_pairs(law: gengs.Subset, a: Tensor, b: Tensor) -> Reference:
    r"""Of the cost :math:`z^\top A z / 2 + b \cdot z` with a symmetric A; logits must differ."""
    leaf = law.logits.detach().double().requires_grad_()
    ours = gengs.Subset(law.k, leaf)
    both = inclusion_of_pairs(ours)
    ((both * a.double()).sum() / 2 + (ours.mean * b.double()).sum()).backward()
    assert leaf.grad is not None
    return Reference("pair inclusion", leaf.grad.unsqueeze(0))


def inclusion_of_pairs(law: gengs.Subset) -> Tensor:
    """The probability that both a and b are chosen, ``(n, n)``; logits must differ."""
    logits = law.logits.double()
    mean = gengs.Subset(law.k, logits).mean
    w = (logits - logits.detach().mean()).exp()
    itself = torch.eye(len(w), dtype=torch.bool)
    apart = torch.where(itself, 1.0, w - w.unsqueeze(-1))
    both = (w * mean.unsqueeze(-1) - w.unsqueeze(-1) * mean) / apart
    return torch.where(itself, mean, both)


def by_arrival_times(law: gengs.PlackettLuce, at_place: Tensor, step: float = 0.2) -> Reference:
    """Of the cost ``(P * at_place).sum()``, places × items, by the trapezoid rule in log t."""
    leaf = law.logits.detach().double().requires_grad_()
    n = len(leaf)
    top = float(leaf.detach().max())
    low = float(leaf.detach().min())
    turns = torch.exp(2j * torch.pi * torch.arange(n // 2 + 1, dtype=torch.float64) / n) - 1
    waves = torch.fft.rfft(at_place.double(), dim=0)  # (n // 2 + 1, items)
    twice = torch.full((n // 2 + 1, 1), 2.0, dtype=torch.float64)
    twice[0] = 1.0
    if n % 2 == 0:
        twice[-1] = 1.0
    for s in torch.arange(-16.0 - top, 4.0 - low, step, dtype=torch.float64).split(1):
        t = s.exp()
        w = leaf.exp()
        coins = 1 + torch.special.expm1(-w * t).neg() * turns.unsqueeze(-1)  # (n // 2 + 1, n)
        one = torch.ones_like(coins[:, :1])
        before = torch.cat([one, coins[:, :-1].cumprod(-1)], -1)
        after = torch.cat([coins[:, 1:].flip(-1).cumprod(-1).flip(-1), one], -1)
        # E[cost of item | t], by the Fourier transform of its place
        given = (twice * (before * after * waves).real).sum(0) / n
        (step * t * w * (-w * t).exp() * given).sum().backward()
    assert leaf.grad is not None
    return Reference("arrival times", leaf.grad.unsqueeze(0))


def by_score(
    draw: Callable[[int], tuple[Tensor, Tensor]],
    cost: Cost,
    controls: Callable[[Tensor], Tensor],
    known: Tensor,
    draws: int,
    portion: int,
) -> Reference:
    """The score function on the residual of a regression.

    Args:
        draw: A number of draws, and their scores ``(S, n)``.
        cost: Of the draws.
        controls: C control variates of draws, ``(S, C)``.
        known: The gradient of their expectations, ``(C, n)``.
        draws: How many draws in all.
        portion: How many at once.
    """
    z, _ = draw(max(10 * known.shape[0], 4000))
    features, values = controls(z).double(), cost(z).double()
    centre, constant = features.mean(0), values.mean()
    gram = (features - centre).T @ (features - centre)
    gram.diagonal().add_(1e-9 * gram.diagonal().mean())  # subsets: their sum is known
    weights = torch.linalg.solve(gram, (features - centre).T @ (values - constant))
    constant = constant - weights @ centre
    groups = []
    for _ in range(GROUPS):
        total, done = torch.zeros(known.shape[-1], dtype=torch.float64), 0
        while done < draws // GROUPS:
            z, score = draw(portion)
            residual = cost(z).double() - controls(z).double() @ weights - constant
            total += residual @ score.double()
            done += portion
        groups.append(total / done + weights @ known)
    return Reference("score", torch.stack(groups))
