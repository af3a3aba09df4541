r"""Counts of balls in boxes: one ball changes its box.

With :math:`y \sim \mathrm{Mult}(n - 1, p)`, from
:math:`\partial E f = n\, E_y[\sum_i \partial p_i\, f(y + e_i)]` and the trapezoid rule along
:math:`e_i - e_j`, for a draw z of n balls

.. math::
    \frac{dz_k}{dp_i} = \tfrac12 \Big[ n \delta_{ik} + \frac{z_i}{p_i} (\delta_{ik} - p_k) \Big],
    \qquad \frac{dz_k}{dn} = \tfrac12 \Big( p_k + \frac{z_k}{n} \Big).

It is exact for quadratic costs, costs O(K) and needs no table of outcomes. For n = 1 (one-hot
vectors) it is ReinMax (Liu et al., 2023), for K = 2 the binomial rule. A difference of the cost is
taken by moving one of the balls, from box j to a new box :math:`i \sim p`, with the weight
:math:`\tfrac{n}{2} \nabla (\log p_i - \log p_j)`.

References:
    | Bridging Discrete and Backpropagation: Straight-Through and Beyond (Liu et al., 2023),
    | https://arxiv.org/abs/2304.08612
"""

__all__ = ["attach_counts", "draw_counts", "move_ball", "new_box"]

import torch
from torch import Tensor

from ..numerics.attach import attach_gradient, nonzero, ratio
from ..numerics.inverse_cdf import inverse_cdf_index, pick


def _by_probs(g: Tensor, z: Tensor, p: Tensor, n: Tensor) -> Tensor:
    share = ratio(z, p, n)  # an empty box: the whole one-sided slope
    return (n * g + share * (g - (p * g).sum(-1, keepdim=True))) / 2


def _by_logits(g: Tensor, z: Tensor, logits: Tensor, n: Tensor) -> Tensor:
    p = logits.softmax(-1)
    mean = (p * g).sum(-1, keepdim=True)
    return ((n * p + z) * (g - mean) - p * ((z * g).sum(-1, keepdim=True) - n * mean)) / 2


def _by_count(g: Tensor, z: Tensor, p: Tensor, n: Tensor) -> Tensor:
    return g * torch.where(n == 0, p, (p + z / nonzero(n)) / 2)


def _by_count_and_logits(g: Tensor, z: Tensor, logits: Tensor, n: Tensor) -> Tensor:
    return _by_count(g, z, logits.softmax(-1), n)


def attach_counts(
    z: Tensor, n: Tensor, *, probs: Tensor | None = None, logits: Tensor | None = None
) -> Tensor:
    """Counts ``z``, ``(*sample, *batch, K)``, moving with the boxes and the number of balls.

    Args:
        z: The counts that were drawn.
        n: The number of balls, a scalar or ``(*batch, 1)``.
        probs: The normalised probabilities of the boxes, ``(*batch, K)``, or
        logits: log-probabilities, normalised or not.
    """
    if probs is not None:
        return attach_gradient((_by_probs, _by_count), z, probs, n)
    if logits is None:
        raise TypeError("attach_counts expects one of `probs` and `logits`.")
    return attach_gradient((_by_logits, _by_count_and_logits), z, logits, n)


def draw_counts(n: Tensor, probs: Tensor) -> Tensor:
    """Counts of ``n`` balls, ``(*batch,)``, in boxes of ``probs``, ``(*batch, K)``.

    A chain of conditional binomials: each element may have a total of its own, and the cost does
    not grow with it.
    """
    with torch.no_grad():
        beyond = probs.flip(-1).cumsum(-1).flip(-1)  # the mass from each box on
        share = (probs / nonzero(beyond)).clamp(0.0, 1.0)
        left, counts = n.to(probs.dtype).expand(probs.shape[:-1]), []
        for k in range(probs.shape[-1] - 1):
            counts.append(torch.binomial(left.contiguous(), share[..., k].contiguous()))
            left = left - counts[-1]
        return torch.stack([*counts, left], -1)


def move_ball(
    z: Tensor, n: Tensor, log_p: Tensor, probs: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Counts with one ball moved to a new box, and the weight of the difference, with gradient.

    Args:
        z: The counts, ``(*sample, *batch, K)``.
        n: The number of balls, a scalar.
        log_p: Log-probabilities of the boxes, ``(*batch, K)``.
        probs: The probabilities, where those are the parameter: one of 0 may grow.
    """
    leaves = inverse_cdf_index(z.detach() / n, torch.Size())
    enters, weight = new_box(leaves, log_p, probs)
    boxes = torch.arange(z.shape[-1], device=z.device)
    there = z + (enters.unsqueeze(-1) == boxes).to(z) - (leaves.unsqueeze(-1) == boxes).to(z)
    return there, n * weight


def new_box(leaves: Tensor, log_p: Tensor, probs: Tensor | None) -> tuple[Tensor, Tensor]:
    r"""A box for a ball that leaves its own: the index, and the weight of the difference.

    Boxes are drawn with their probabilities, :math:`w = \tfrac12 \nabla(\log p_i - \log p_j)`. An
    impossible one that may grow is drawn as well, as if it had 1/K of the mass, with
    :math:`w = K \nabla p_i`: the one-sided derivative.
    """
    shape = (*leaves.shape, log_p.shape[-1])
    fixed = log_p.detach().exp()
    log_p = log_p.masked_fill(log_p == -torch.inf, 0.0)  # which is not drawn, or not used
    if probs is None:
        enters = inverse_cdf_index(fixed.expand(shape), torch.Size())
        return enters, (pick(log_p, enters) - pick(log_p, leaves)) / 2
    impossible = probs.detach() == 0
    chance = probs.detach().masked_fill(impossible, 1 / shape[-1])
    enters = inverse_cdf_index(chance.expand(shape), torch.Size())
    usual = (pick(log_p, enters) - pick(log_p, leaves)) / 2
    weight = torch.where(pick(impossible, enters), shape[-1] * pick(probs, enters), usual)
    return enters, weight * chance.sum(-1)
