"""The order of scores, from the highest down.

torch sorts a few hundred numbers more slowly than it makes noise for them. numpy, which nearly
every installation of torch has beside it, sorts integers by vector instructions: a third to a half
of the time. It sorts values alone, so each carries its place in its lower 32 bits; with it, equal
scores stay in the order in which they came, as torch's stable sort leaves them.
"""

__all__ = ["highest_first"]

from importlib.util import find_spec

import torch
from torch import Tensor

from .tracing import is_eager

_HAS_NUMPY = find_spec("numpy") is not None


def highest_first(scores: Tensor) -> Tensor:
    """Indices that sort the last dimension downwards; equal scores keep their order.

    Example:
        >>> highest_first(torch.tensor([0.0, 2.0, -1.0, 2.0]))
        tensor([1, 3, 0, 2])
    """
    scores = scores.detach()
    if scores.dtype != torch.float32 or not is_eager(scores):
        return scores.sort(dim=-1, descending=True, stable=True).indices
    bits = scores.view(torch.int32)
    ordered = bits ^ ((bits >> 31) & 0x7FFFFFFF)  # integers in the order of the numbers
    if not _HAS_NUMPY or scores.device.type != "cpu":
        return ordered.sort(dim=-1, descending=True, stable=True).indices
    keys = ordered.to(torch.int64).mul_(-(1 << 32)).add_(torch.arange(scores.shape[-1]))
    keys.numpy().sort()
    return keys.bitwise_and_(0xFFFFFFFF)
