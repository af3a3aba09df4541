r"""Joint outcomes of independent factors: drawn without replacement, or the most likely ones.

A latent vector of :math:`F` factors with :math:`n` atoms each has :math:`n^F` joint outcomes: too
many to list, yet :math:`k` distinct ones can be drawn without ever listing them.

*Stochastic beam search* (:func:`sample_without_replacement`). Perturb the log-probability of every
outcome with Gumbel noise; the :math:`k` largest are :math:`k` draws without replacement, in order.
The outcomes that share a prefix have a largest perturbed value :math:`G`, whose distribution is
known from the prefix's probability alone, so the search keeps :math:`k` prefixes and extends them
factor by factor. Given :math:`G`, one child inherits it, child :math:`a` with probability
:math:`\pi_a`, and the others lie below:

.. math:: G_i = -\log\big(e^{-G} + E_i / q_i\big), \qquad E_i \sim \mathrm{Exp}(1)

with :math:`q_i` the probability of the child's prefix. Only sums of positive terms in log space: it
is as exact for outcomes of probability :math:`e^{-1000}` as for large ones.

*Most likely outcomes* (:func:`most_likely`). The same search without noise: log-probabilities add
up, so the prefixes of the :math:`k` best outcomes are among the :math:`k` best prefixes.

*Outside of a set* (:func:`sample_outside`). What lies outside of :math:`m` outcomes falls into
boxes "this prefix of an outcome, then an atom that leaves it, then anything": their masses are
products, so neither the draw nor the mass suffers from cancellation when little is left.

All work on a batch at once, from normalised log-probabilities of independent factors,
``(*batch, F, n)``; Python loops over factors only.

References:
    | Stochastic Beams and Where to Find Them (Kool et al., 2019), https://arxiv.org/abs/1903.06059
"""

__all__ = [
    "JointOutcomes",
    "joint_log_prob",
    "most_likely",
    "sample_outside",
    "sample_without_replacement",
]

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ..numerics.gumbel import log_exponential
from ..numerics.inverse_cdf import inverse_cdf_index


@dataclass(frozen=True)
class JointOutcomes:
    """Distinct joint outcomes, ``k`` for each element of a batch, or all if there are fewer.

    Where fewer than ``k`` outcomes are *possible* the rest repeats the first one, and is marked.
    """

    index: Tensor
    """The atom of each factor, ``(k, *batch, F)``."""
    log_prob: Tensor
    """Joint log-probabilities, ``(k, *batch)``, differentiable."""
    perturbed: Tensor
    """The values they were ranked by, falling, ``(k, *batch)``; ``-inf`` where impossible."""
    possible: Tensor
    """Whether the outcome is a real one, ``(k, *batch)``."""


def sample_without_replacement(logits: Tensor, k: int) -> JointOutcomes:
    """Draw ``k`` joint outcomes without replacement, or all there are, in their order."""
    with torch.no_grad():
        table = _flat(logits)  # (B, F, n)
        n, beams = table.shape[-1], min(k, table.shape[-1] ** table.shape[-2])
        heirs = inverse_cdf_index(table.exp(), torch.Size([beams])).movedim(0, 1)  # (B, beams, F)
        log_q = table.new_zeros(len(table), 1)
        best = -log_exponential(log_q.shape, table.dtype, table.device)  # (B, width)
        steps: list[tuple[Tensor, Tensor]] = []
        for f in range(table.shape[-2]):
            width = log_q.shape[-1]
            heir = heirs[:, :width, f, None]
            log_child = log_q.unsqueeze(-1) + table[:, f, None]  # (B, width, n)
            noise = log_exponential(log_child.shape, table.dtype, table.device)
            child = -torch.logaddexp(-best.unsqueeze(-1), noise - log_child)
            child = child.scatter(-1, heir, best.unsqueeze(-1))
            best, chosen = child.flatten(1).topk(min(k, width * n))
            log_q = log_child.flatten(1).gather(-1, chosen)
            steps.append((chosen // n, chosen % n))
        index = _trace_back(steps)
    return _finish(logits, index, best)


def most_likely(logits: Tensor, k: int) -> JointOutcomes:
    """The ``k`` most likely joint outcomes, or all there are; the likeliest first."""
    with torch.no_grad():
        table, n = _flat(logits), logits.shape[-1]
        best = table.new_zeros(len(table), 1)  # (B, width)
        steps: list[tuple[Tensor, Tensor]] = []
        for log_atom in table.unbind(1):
            child = best.unsqueeze(-1) + log_atom.unsqueeze(1)  # (B, width, n)
            best, chosen = child.flatten(1).topk(min(k, best.shape[-1] * n))
            steps.append((chosen // n, chosen % n))
        index = _trace_back(steps)
    return _finish(logits, index, best)


def sample_outside(logits: Tensor, excluded: Tensor) -> tuple[Tensor, Tensor]:
    """Draw a joint outcome ``(*batch, F)`` from all but the excluded ones, ``(m, *batch, F)``.

    With it comes the logarithm of the mass outside, ``(*batch)``, which is exact, however small:
    where nothing is left it is ``-inf``, and the outcome is the first excluded one. Repetitions
    among the excluded do no harm.
    """
    with torch.no_grad():
        table, m = _flat(logits), len(excluded)
        anything = inverse_cdf_index(table.exp(), torch.Size())  # (B, F)
        if m == 0:
            return anything.reshape(logits.shape[:-1]), logits.new_zeros(logits.shape[:-2])
        size, factors, n = table.shape
        out = excluded.reshape(m, size, factors).movedim(0, 1)  # (B, m, F)
        step = torch.arange(factors, device=table.device)
        same = out.unsqueeze(2) == out.unsqueeze(1)  # (B, m, m, F)
        shared = same.to(torch.uint8).argmin(-1)  # the length of the common prefix
        shared = shared.masked_fill(same.all(-1), factors)
        # a prefix shared with an earlier outcome is that outcome's; each prefix counts once
        earlier = torch.ones(m, m, dtype=torch.bool, device=table.device).tril(-1)
        seen = shared.masked_fill(~earlier, -1).amax(-1, keepdim=True)  # (B, m, 1)
        follows = shared.unsqueeze(-2) >= step.unsqueeze(-1)  # (B, m, F, m)
        atom = out.movedim(1, -1).unsqueeze(1).where(follows, n)
        leaves = torch.ones(size, m, factors, n + 1, dtype=torch.bool, device=table.device)
        leaves = leaves.scatter(-1, atom, False)[..., :n] & (step > seen).unsqueeze(-1)
        along = table.gather(-1, out.movedim(1, -1)).movedim(-1, 1)  # (B, m, F)
        prefix = torch.cat([torch.zeros_like(along[..., :1]), along[..., :-1].cumsum(-1)], -1)
        box = (prefix.unsqueeze(-1) + table.unsqueeze(1)).where(leaves, -torch.inf).flatten(1)
        log_mass = box.logsumexp(-1)
        empty = log_mass == -torch.inf
        weights = (box - log_mass.masked_fill(empty, 0.0).unsqueeze(-1)).exp()
        first = torch.arange(weights.shape[-1], device=weights.device) == 0
        weights = weights + (first & empty.unsqueeze(-1)).to(weights.dtype)
        box_index = inverse_cdf_index(weights, torch.Size()).unsqueeze(-1)  # (B, 1)
        which, where = box_index // (factors * n), box_index // n % factors
        chosen = out.gather(1, which.unsqueeze(-1).expand(-1, 1, factors)).squeeze(1)
        drawn = torch.where(step == where, box_index % n, anything).where(step >= where, chosen)
        drawn = drawn.where(~empty.unsqueeze(-1), out[:, 0])
    return drawn.reshape(logits.shape[:-1]), log_mass.reshape(logits.shape[:-2])


def joint_log_prob(logits: Tensor, index: Tensor) -> Tensor:
    """The log-probability of joint outcomes ``(k, *batch, F)``: ``(k, *batch)``."""
    return logits.gather(-1, index.movedim(0, -1)).sum(-2).movedim(-1, 0)


def _flat(logits: Tensor) -> Tensor:
    return logits.detach().reshape(math.prod(logits.shape[:-2]), *logits.shape[-2:])


def _trace_back(steps: list[tuple[Tensor, Tensor]]) -> Tensor:
    """The atoms along each surviving path, ``(B, k, F)``, from parents and atoms of each step."""
    at: Tensor | None = None
    path = []
    for parent, atom in reversed(steps):
        path.append(atom if at is None else atom.gather(-1, at))
        at = parent if at is None else parent.gather(-1, at)
    return torch.stack(path[::-1], -1)


def _finish(logits: Tensor, index: Tensor, ranking: Tensor) -> JointOutcomes:
    possible = ranking > -torch.inf  # (B, k)
    index = index.where(possible.unsqueeze(-1), index[:, :1]).movedim(1, 0)
    batch = logits.shape[:-2]
    index = index.reshape(len(index), *logits.shape[:-1])
    shape = (len(index), *batch)
    return JointOutcomes(
        index,
        joint_log_prob(logits, index),
        ranking.movedim(1, 0).reshape(shape),
        possible.movedim(1, 0).reshape(shape),
    )
