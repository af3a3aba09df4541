r"""Relaxed k-subsets: k relaxed one-hot draws in a row.

Given that j' was the last element taken and r are still to be taken, the next one is
:math:`j > j'` with probability

.. math:: P(j \mid j', r) = \frac{w_j E_{j+1}(r - 1)}{E_{j'+1}(r)},

a product of something of j and something of j': for a *relaxed* last element, weights
:math:`y_{j'}` instead of one index, the sum over j' is a cumulative sum. Each of the k draws is a
Gumbel-softmax at temperature :math:`\tau`, and the relaxed subset is their sum, with sum exactly k.
As :math:`\tau \to 0` the draws become exact ones of this distribution.

That is what sets it apart from the relaxed top-k of Gumbel-perturbed scores (Xie & Ermon, 2019),
also k softmaxes in a row, whose limit is the set of the first k of a Plackett-Luce order.

With ``hard`` an exact subset is drawn beside it with the same noise, and takes its gradient
(straight-through).

References:
    | Reparameterizable Subset Sampling via Continuous Relaxations (Xie & Ermon, 2019),
    | https://arxiv.org/abs/1901.10517
"""

__all__ = ["relax_subset"]

from typing import Any

import torch
from torch import Tensor

from ..numerics.autograd_function import AutogradFunction
from ..numerics.gumbel import log_exponential
from ..numerics.gumbel_softmax import Temperature
from .subset_table import flow, ratios

_NEVER = -1e9  # the logarithm of what cannot happen; differences of it are no NaN


def relax_subset(
    logits: Tensor,
    q: Tensor,
    k: Tensor,
    weights: Tensor,
    temperature: Temperature,
    draws: int,
    hard: bool,
    generator: torch.Generator | None,
) -> Tensor:
    """Relaxed draws ``(n, S, *batch)``.

    Args:
        logits: The logits, ``(n, *batch)``, of which only the gradient is used.
        q: The table, ``(n, *batch, K + 1)``.
        k: How many to take, ``(*batch)``.
        weights: The rescaled weights of the table, ``(n, *batch)``.
        temperature: A number, or a tensor that broadcasts with the batch.
        draws: S.
        hard: Straight-through.
        generator: Where the noise comes from.
    """
    n, columns = q.shape[0], q.shape[-1] - 1
    scores = weights.log().clamp_min(_NEVER) + (logits - logits.detach())
    sums: Tensor = _LogSums.apply(logits, q, weights)  # (n + 1, *batch, K + 1)
    shape = (n, draws, *k.shape)
    total = (0.0 * logits).unsqueeze(1).expand(shape)  # a sure subset has a gradient too: zero
    log_last, log_exact = None, None  # log-weights of the last element taken; the same, exact
    for step in range(columns):
        r = (k - step).clamp_min(1)
        noise = log_exponential(torch.Size([*shape[1:], n]), sums.dtype, sums.device, generator)
        noise = noise.movedim(-1, 0)
        log_last = ((_chances(scores, sums, r, log_last) - noise) / temperature).log_softmax(0)
        y = log_last.exp()
        if hard:
            with torch.no_grad():
                winner = (_chances(scores, sums, r, log_exact) - noise).argmax(0, keepdim=True)
                exact = torch.zeros_like(y).scatter(0, winner, 1.0)
                log_exact = torch.where(exact > 0, 0.0, 2 * _NEVER)
            y = exact + (y - y.detach())
        total = total + torch.where(k > step, y, 0.0)
    return total


def _chances(scores: Tensor, sums: Tensor, r: Tensor, log_last: Tensor | None) -> Tensor:
    """The log-probability of each element to be the next one, ``(n, S, *batch)``, up to a constant.

    Args:
        scores: The logarithms of the weights, ``(n, *batch)``.
        sums: Those of the polynomials, ``(n + 1, *batch, K + 1)``.
        r: How many are still to be taken, ``(*batch)``.
        log_last: Log-weights of the last element taken, ``(n, S, *batch)``; none so far.
    """
    n = scores.shape[0]
    index = r.reshape(1, *r.shape, 1).expand(n, *r.shape, 1)
    after = sums[1:].gather(-1, index - 1).squeeze(-1)  # (n, *batch)
    chances = (scores + after).clamp_min(_NEVER).unsqueeze(1)
    if log_last is None:
        return chances
    before = sums[1:].gather(-1, index).squeeze(-1).unsqueeze(1)
    possible = before > _NEVER / 2
    before = torch.where(possible, log_last - before, _NEVER).logcumsumexp(0)
    nothing = torch.full_like(before[:1], 2 * _NEVER)
    return chances + torch.cat([nothing, before[:-1]])


class _LogSums(AutogradFunction):
    """The logarithms of all elementary symmetric polynomials, ``(n + 1, *batch, K + 1)``."""

    @staticmethod
    def forward(logits: Tensor, q: Tensor, weights: Tensor) -> Tensor:
        logs = ratios(weights, q.shape[-1] - 1, every=True)[1].log()
        logs = torch.cat([torch.zeros_like(logs[..., :1]), logs], -1).cumsum(-1)
        return logs.clamp_min(_NEVER)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(inputs[1])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (q,) = ctx.saved_tensors
        return flow(q, grad[:-1]), None, None
