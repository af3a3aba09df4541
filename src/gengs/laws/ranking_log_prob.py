r"""The log-probability of an order, where lists may be padded.

.. math:: \log P(\pi) = \sum_{m=1}^{k} \Big( \theta_{\pi_m} - \log \sum_{l \ge m} w_{\pi_l} \Big)

The inner sums are one cumulative sum from the last place on. Padding has no weight, and one place:
behind all items, in its own order.
"""

__all__ = ["LAST", "log_prob_of"]

import torch
from torch import Tensor

LAST = -1e30
"""A score below any other: its weight is 0, and differences of it are no NaN."""


def log_prob_of(logits: Tensor, order: Tensor, k: int) -> Tensor:
    """The log-probability of the first k places, in float64 where the device has it.

    Args:
        logits: The scores, ``(*batch, n)``; ``-inf`` for padding.
        order: Indices of different items, ``(*sample, *batch, k)``.
        k: How many places count.
    """
    items = logits.shape[-1]
    shape = order.shape[:-1]
    possible = (logits.detach() > -torch.inf).expand(*shape, items)
    wide = torch.float32 if logits.device.type == "mps" else torch.float64
    logits = logits.to(wide).expand(*shape, items).where(possible, LAST)
    scores = logits.gather(-1, order)
    sums = scores
    if k < items:
        rest = logits.scatter(-1, order, LAST).logsumexp(-1, keepdim=True)
        sums = torch.cat([scores, rest], -1)
    sums = sums.flip(-1).logcumsumexp(-1).flip(-1)[..., :k]
    real = possible.gather(-1, order)
    log_prob = (scores - sums).where(real, 0.0).sum(-1)
    kept = possible.logical_not().to(torch.int8).argsort(dim=-1, stable=True)[..., :k]
    counted = torch.arange(k, device=order.device) < possible.sum(-1, keepdim=True)
    wrong = torch.where(counted, ~real, order != kept).any(-1)
    return log_prob.masked_fill(wrong, -torch.inf)
