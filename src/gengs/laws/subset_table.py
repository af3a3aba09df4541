r"""The table behind k-subsets: how likely is an element, given how many are still to be taken?

With weights :math:`w_t = e^{\theta_t}` and the elementary symmetric polynomials
:math:`E_t(r) = \sum \prod w` over the r-subsets of elements t, t + 1, …, elements are decided one
after the other: with r still to be taken, element t is taken with probability

.. math:: q_t(r) = \frac{w_t}{w_t + \rho_{t+1}(r)}, \qquad \rho_t(r) = \frac{E_t(r)}{E_t(r - 1)}.

The polynomials span thousands of orders of magnitude; their ratios do not. They follow from

.. math:: \rho_t(r) = \big(\rho_{t+1}(r) + w_t\big) \big(1 - q_t(r - 1)\big),

sums and products of positive numbers, in which rounding errors add up and never grow: an error of
:math:`\log \rho_{t+1}` reaches :math:`\log \rho_t` with the weights :math:`q_t(r-1)` and
:math:`1 - q_t(r)`, whose sum is at most 1, as :math:`q_t(r)` grows with r. No logarithm is taken
until the end: the log-partition is :math:`\sum_{r \le k} \log \rho_0(r)`.

All the rest is one pass over the elements: a subset is drawn by :func:`walk`, and what a change of
the table means for the logits is carried back by :func:`flow`.

Shapes: elements first, ``(n, *batch, K + 1)`` with K the largest number to be taken, so that each
step of a pass is contiguous.

References:
    | Weighted finite population sampling to maximize entropy (Chen, Dempster & Liu, 1994),
    | Biometrika 81 (the distribution in survey sampling, its polynomials, stepwise selection)
    | Sampling Algorithms (Tillé, 2006), Springer (draws by a table of conditional probabilities)
"""

__all__ = [
    "Table",
    "at",
    "covariance_product",
    "flow",
    "make_table",
    "ratios",
    "remaining",
    "walk",
]

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import pad


class Table(NamedTuple):
    """What is computed once; where k > n/2, of the elements that are left out."""

    q: Tensor
    """The chance of each element given how many are still to be taken, ``(n, *batch, K + 1)``."""
    k: Tensor
    """How many to take, ``(*batch)``."""
    log_partition: Tensor
    """Of the elements that are taken, ``(*batch)``."""
    weights: Tensor
    """Rescaled weights, ``(n, *batch)``."""


def make_table(logits: Tensor, possible: Tensor, k: Tensor, columns: int) -> Table:
    """The table of logits ``(n, *batch)``.

    Args:
        logits: In the precision of the table, any number where an element is impossible.
        possible: Which elements may be taken, ``(n, *batch)``.
        k: How many are taken, ``(*batch)``.
        columns: The largest k.
    """
    # Weights are taken relative to the k-th largest. Logits further away than rounding can tell
    # are moved nearer: above it, an element is sure to be taken; below, it never is.
    near = 300.0 if logits.dtype == torch.float64 else 38.0
    top = logits.masked_fill(~possible, -torch.inf).movedim(0, -1).topk(max(columns, 1)).values
    centre = top.gather(-1, (k - 1).clamp_min(0).unsqueeze(-1)).squeeze(-1)
    centre = centre.clamp_min(torch.finfo(logits.dtype).min)  # of k = 0, all may be masked
    apart = logits - centre
    weights = apart.clamp(-near, near).exp() * possible
    q, rest = ratios(weights, columns)
    counted = torch.arange(columns, device=k.device) < k.unsqueeze(-1)
    log_partition = rest.where(counted, 1.0).log().sum(-1) + k * centre
    beyond = (apart - near).clamp_min(0) * possible
    return Table(q, k, log_partition + beyond.sum(0), weights)


def ratios(weights: Tensor, columns: int, every: bool = False) -> tuple[Tensor, Tensor]:
    r"""The probabilities :math:`q_t(r)`, ``(n, *batch, K + 1)``, and ratios :math:`\rho`.

    Args:
        weights: The weights, ``(n, *batch)``; 0 for an element that is never taken.
        columns: K, how many are taken at most.
        every: Whether the ratios of all t = 0, …, n are wanted, ``(n + 1, *batch, K)``, instead of
            those of t = 0, ``(*batch, K)``.
    """
    divisors = (weights + torch.finfo(weights.dtype).tiny).unsqueeze(-1)  # 0/0 is to be 0
    rest = weights.new_zeros(columns).expand(*weights.shape[1:], columns)
    rows, rests = [], [rest]
    for w, divisor in zip(weights.unsqueeze(-1).flip(0), divisors.flip(0), strict=True):
        total = rest + divisor
        rows.append(w / total)
        left = rest / total  # 1 - q, to all digits
        rest = total * pad(left[..., :-1], (1, 0), value=1.0) if columns else rest
        if every:
            rests.append(rest)
    q = pad(torch.stack(rows[::-1]), (1, 0))
    return q, torch.stack(rests[::-1]) if every else rest


def at(q: Tensor, r: Tensor) -> Tensor:
    """The entries of ``(n, *batch, K + 1)`` at r, ``(n, S, *batch)``, moved into the table."""
    r = r.clamp(0, q.shape[-1] - 1).unsqueeze(-1)
    return q.unsqueeze(1).expand(*r.shape[:-1], -1).gather(-1, r).squeeze(-1)


def walk(q: Tensor, k: Tensor, uniforms: Tensor) -> Tensor:
    """Exact draws ``(n, S, *batch)`` of 0 and 1 from uniforms of that shape.

    Args:
        q: The table.
        k: How many to take, ``(*batch)``.
        uniforms: In [0, 1): an element of probability 0 is not taken, one of probability 1 is.
    """
    r = k.expand(uniforms.shape[1:]).unsqueeze(-1)
    taken = []
    for row, u in zip(q, uniforms.unsqueeze(-1), strict=True):
        take = u < row.expand(*r.shape[:-1], -1).gather(-1, r)
        taken.append(take)
        r = r - take.to(r.dtype)
    return torch.stack(taken).squeeze(-1)


def remaining(y: Tensor, k: Tensor) -> Tensor:
    """How many are still to be taken before each element of draws ``(n, S, *batch)``."""
    y = y.to(torch.int64)
    return k - (y.cumsum(0) - y)


def flow(q: Tensor, sources: Tensor) -> Tensor:
    r"""The gradient in the logits, ``(n, *batch)``, from one in the logarithms of the polynomials.

    From :math:`\log E_t(r)` a share :math:`q_t(r)` flows to :math:`\theta_t` and to
    :math:`\log E_{t+1}(r - 1)`, the rest to :math:`\log E_{t+1}(r)`. From 1 at
    :math:`\log E_0(k)` it is the walk itself, and what reaches :math:`\theta_t` is
    :math:`P(z_t = 1)`.

    Args:
        q: The table.
        sources: The gradient in :math:`\log E_t(r)`, ``(n, *batch, K + 1)``.
    """
    mass = torch.zeros_like(q[0])
    found = []
    for row, source in zip(q, sources, strict=True):
        mass = mass + source
        taken = mass * row
        found.append(taken.sum(-1))
        mass = mass - taken + pad(taken[..., 1:], (0, 1))
    return torch.stack(found)


def covariance_product(q: Tensor, k: Tensor, mean: Tensor, vector: Tensor) -> Tensor:
    r"""The covariance matrix of the elements times a vector, :math:`\Sigma v`, all ``(n, *batch)``.

    :math:`(\Sigma v)_t = E[z_t\, v \cdot z]` for a vector with :math:`E[v \cdot z] = 0`: what was
    taken before t, t itself, and what is taken after it, on average.
    """
    vector = vector - (mean * vector).sum(0) / k.clamp_min(1)  # every z has k elements
    ahead = torch.zeros_like(q[0])  # E[v·z over later elements | r]
    onwards = []
    for row, v in zip(q.flip(0), vector.unsqueeze(-1).flip(0), strict=True):
        taking = v + pad(ahead[..., :-1], (1, 0))
        onwards.append(taking)
        ahead = ahead + row * (taking - ahead)
    mass = (torch.arange(q.shape[-1], device=q.device) == k.unsqueeze(-1)).to(q.dtype)  # P(r)
    behind = torch.zeros_like(q[0])  # E[v·z over earlier elements; r]
    found = []
    for row, v, taking in zip(q, vector.unsqueeze(-1), onwards[::-1], strict=True):
        found.append((row * (behind + mass * taking)).sum(-1))
        moved, carried = row * mass, row * (behind + v * mass)
        behind = behind - row * behind + pad(carried[..., 1:], (0, 1))
        mass = mass - moved + pad(moved[..., 1:], (0, 1))
    return torch.stack(found)
