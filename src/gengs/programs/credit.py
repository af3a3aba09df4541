r"""The score rule: which costs a draw is credited with.

For replicate r, a draw whose log-probability is :math:`\ell_r` and the costs :math:`R_r` that came
after it,

.. math:: \nabla \ell_r \Big( R_r - \frac{1}{m - 1} \sum_{s \ne r} R_s \Big)

is unbiased: what was paid before the draw does not depend on it, and neither do other replicates. A
draw that all replicates share moves all of their costs, so it is credited with their mean and has
no baseline.
"""

from __future__ import annotations

__all__ = ["credited"]

from collections.abc import Sequence

import torch
from torch import Tensor

from .site import Site


def credited(costs: Sequence[Tensor], last: Tensor | None, sites: Sequence[Site]) -> Tensor:
    """The sum of all costs, one number per replicate, with the gradient of the score draws.

    Args:
        costs: The costs that arrived while the program ran.
        last: The cost in the end.
        sites: The draws, of which those by the score function have a log-probability.
    """
    parts = [*costs, *([last] if last is not None else [])]
    parts = [
        part if part.is_floating_point() else part.to(torch.get_default_dtype()) for part in parts
    ]
    total = torch.stack(parts).sum(0) if len(parts) > 1 else parts[0]
    after = [parts[-1].detach()]  # what came after each epoch
    for part in reversed(parts[:-1]):
        after.insert(0, after[0] + part.detach())
    alone = total.numel() == 1  # one run of the program: nothing to share, nothing to compare
    for site in sites:
        site.shared = not alone and (not site.shape or site.shape[0] != len(total))
    surrogate = None
    for (epoch, baseline, shared), scores in _grouped(sites, alone).items():
        returns = after[min(epoch, len(after) - 1)]
        if epoch > len(parts) - 1:  # nothing was paid after it
            continue
        term = torch.stack(scores).sum(0)
        if shared:
            weighted = term * returns.mean()
        else:
            if baseline:
                returns = returns - (returns.sum() - returns) / (len(returns) - 1)
            weighted = term * returns
        surrogate = weighted if surrogate is None else surrogate + weighted
    if surrogate is None:
        return total
    return total + (surrogate - surrogate.detach())


def _grouped(sites: Sequence[Site], alone: bool) -> dict[tuple[int, bool, bool], list[Tensor]]:
    """Log-probabilities of draws that have the same costs to their credit."""
    groups: dict[tuple[int, bool, bool], list[Tensor]] = {}
    for site in sites:
        if site.log_prob is not None:
            score = site.log_prob.sum() if site.shared or alone else site.log_prob
            groups.setdefault((site.epoch, site.baseline, site.shared), []).append(score)
    return groups
