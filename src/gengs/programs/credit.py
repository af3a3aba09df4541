r"""The score rule: which costs a draw is credited with.

For replicate r, a draw whose log-probability is :math:`\ell_r` and the costs :math:`R_r` that came
after it,

.. math:: \nabla \ell_r \Big( R_r - \frac{1}{m - 1} \sum_{s \ne r} R_s \Big)

is unbiased: what was paid before the draw does not depend on it, and neither do other replicates. A
draw that all replicates share moves all of their costs, so it is credited with their mean and has
no baseline.
"""

__all__ = ["credited", "require_replicates"]

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import torch
from torch import Tensor

from ..draws.once_differentiable import OnceDifferentiable
from .sample_site import Site


def credited(costs: Sequence[Tensor], last: Tensor | None, sites: Sequence[Site]) -> Tensor:
    """The sum of all costs, one number per replicate, with the gradient of the score draws.

    ``costs`` arrived while the program ran, ``last`` in the end.
    """
    parts = [*costs, *([last] if last is not None else [])]
    parts = [p if p.is_floating_point() else p.to(torch.get_default_dtype()) for p in parts]
    total = torch.stack(parts).sum(0) if len(parts) > 1 else parts[0]
    returns = list(accumulate(part.detach() for part in reversed(parts)))[::-1]  # from each on
    alone = total.numel() == 1  # one run of the program: nothing to share, nothing to compare
    for site in sites:
        site.shared = not alone and (not site.shape or site.shape[0] != len(total))
    terms = []
    for (epoch, baseline, shared), scores in _grouped(sites, alone).items():
        if epoch >= len(returns):  # nothing was paid after it
            continue
        after = returns[epoch]
        if shared:
            after = after.mean()
        elif baseline:
            after = after - (after.sum() - after) / (len(after) - 1)
        terms.append(torch.stack(scores).sum(0) * after)
    return total + _Score.apply(sum(terms[1:], terms[0])) if terms else total


def _grouped(sites: Sequence[Site], alone: bool) -> dict[tuple[int, bool, bool], list[Tensor]]:
    """Log-probabilities of draws that have the same costs to their credit."""
    groups: dict[tuple[int, bool, bool], list[Tensor]] = {}
    for site in sites:
        if site.log_prob is not None:
            score = site.log_prob.sum() if site.shared or alone else site.log_prob
            groups.setdefault((site.epoch, site.baseline, site.shared), []).append(score)
    return groups


class _Score(torch.autograd.Function):
    """Zero, whose gradient is that of the surrogate: once, as it is no estimate of the second."""

    generate_vmap_rule = True

    @staticmethod
    def forward(surrogate: Tensor) -> Tensor:
        return torch.zeros_like(surrogate)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        result: Tensor = OnceDifferentiable.apply(grad, _NOT_TWICE, *ctx.saved_tensors)
        return result


_NOT_TWICE = (
    "the score rule of gengs.differentiable has no second derivative: that of its estimate is no "
    "estimate of the second; the path has one, where its draws have closed forms."
)


def require_replicates(
    name: str, values: Any, costs: Sequence[Tensor], sites: Sequence[Site]
) -> None:
    """Raise where a cost, given to the method ``name``, is not one number per replicate."""
    if not isinstance(values, Tensor):
        raise TypeError(f"program.{name} expects a tensor, but got {type(values).__name__}.")
    firsts = {site.shape[0] for site in sites if site.shape}
    known = f", {min(firsts)} by its draws" if len(firsts) == 1 else ""
    expected = (
        f"program.{name} expects one number per replicate, shape (replicates,){known}, but got "
        f"shape {tuple(values.shape)}"
    )
    if values.dim() > 1:
        raise ValueError(f"{expected}; average or sum the other dimensions.")
    alone = values.numel() == 1
    if not alone and len(firsts) == 1 and len(values) not in firsts:
        raise ValueError(f"{expected}; the first dimension of a draw counts the replicates.")
    if costs and values.shape != costs[0].shape:
        raise ValueError(f"{expected}; earlier costs had {tuple(costs[0].shape)}.")
    if alone and any(site.baseline for site in sites):
        raise ValueError(f"{expected}: RLOO needs at least two, REINFORCE() does with one.")
