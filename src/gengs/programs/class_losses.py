r"""``cross_entropy`` and ``nll_loss`` whose target class was drawn.

The loss of an element is looked up at its class, :math:`\ell = \sum_k h_k \ell_k`, and so is the
weight :math:`\omega = \sum_k h_k w_k` (0 for the class to be ignored), by whose sum a mean divides.
Both are linear in the one-hot vector h of the class, which carries the gradient on.
"""

__all__ = ["CLASS_LOSSES", "slope_of_class_loss"]

from typing import Any

import torch
from torch import Tensor

CLASS_LOSSES = frozenset(("cross_entropy", "nll_loss"))


def slope_of_class_loss(
    name: str, scores: Tensor, one_hot: Tensor, loss: Tensor, kwargs: dict[str, Any]
) -> Tensor:
    """Zeros in the shape of a loss, with its gradient in the one-hot vectors of the target.

    Args:
        name: One of :data:`CLASS_LOSSES`.
        scores: Its input, ``(N, C, ...)`` or ``(C,)``.
        one_hot: Of the target, ``(N, ..., K)``; it may have other classes than the scores.
        loss: What the function returned.
        kwargs: Its other arguments, all by name, as torch passes them on.
    """
    classes = min(scores.dim() - 1, 1)
    scores = scores.detach()
    scores = scores.log_softmax(classes) if name == "cross_entropy" else scores
    losses = -scores.movedim(classes, -1)  # (N, ..., C)
    k = min(losses.shape[-1], one_hot.shape[-1])
    weights = losses.new_ones(losses.shape[-1])
    if kwargs.get("weight") is not None:
        weights = kwargs["weight"].detach().to(losses.dtype)
    # what can never be drawn may well be infinite, and 0 times that is no number
    losses = (losses * weights).nan_to_num(posinf=0.0, neginf=0.0)
    smooth = kwargs.get("label_smoothing", 0.0)
    losses = (1 - smooth) * losses + smooth * losses.mean(-1, keepdim=True)
    kept = torch.arange(len(weights), device=losses.device) != kwargs["ignore_index"]
    h = (one_hot - one_hot.detach())[..., :k].to(losses.dtype)
    slope = (h * (losses * kept)[..., :k]).sum(-1)
    if kwargs["reduction"] == "none":
        return slope
    if kwargs["reduction"] == "sum":
        return slope.sum()
    weights = weights * kept
    total = (one_hot.detach()[..., :k].to(losses.dtype) @ weights[:k]).sum()
    mean = loss.detach().nan_to_num(posinf=0.0)
    return (slope.sum() - mean * (h @ weights[:k]).sum()) / total
