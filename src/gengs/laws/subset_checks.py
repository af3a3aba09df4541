"""What is a k-subset: its vectors as a constraint, its k and its logits checked."""

from __future__ import annotations

__all__ = ["KOfN", "require_k", "require_logits"]

from numbers import Integral
from typing import Any

import torch
from torch import Tensor
from torch.distributions import constraints

from ..numerics.tracing import carries_gradient


class KOfN(constraints.Constraint):
    """Vectors of 0 and 1 with sum k."""

    is_discrete = True
    event_dim = 1

    def __init__(self, k: int | Tensor) -> None:
        self.k = k
        super().__init__()

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == self.k)


def require_k(k: Any, n: int) -> tuple[int | Tensor, int, int]:
    """``k`` as an integer or a tensor of them, its smallest and its largest value."""
    found: int | Tensor
    if isinstance(k, Tensor):
        if carries_gradient(k):
            raise TypeError("Subset has no gradient in `k`, which requires one; detach it.")
        whole = k.to(torch.int64)
        wrong = whole != k
        if k.dtype == torch.bool or bool(wrong.any()):
            got = k.dtype if k.dtype == torch.bool else k[wrong][0].item()
            raise ValueError(f"Subset expects integers as `k`, but got {got}.")
        least, most = (int(whole.min()), int(whole.max())) if k.numel() else (0, 0)
        found = whole if k.dim() else least
    elif isinstance(k, bool) or not isinstance(k, Integral):
        raise ValueError(f"Subset expects an integer `k` between 0 and n = {n}, but got {k!r}.")
    else:
        least = most = int(k)
        found = least
    if least < 0 or most > n:
        got = least if least < 0 else most
        raise ValueError(f"Subset expects an integer `k` between 0 and n = {n}, but got {got}.")
    return found, least, most


def require_logits(logits: Any) -> int:
    """The number of elements; raises unless there are scores of some, ``(*batch, n)``."""
    if not isinstance(logits, Tensor) or not logits.is_floating_point() or not logits.dim():
        raise ValueError(
            "Subset expects `logits` as a floating-point tensor of shape (*batch, n), but got "
            f"{_shown(logits)}."
        )
    if logits.shape[-1] == 0:
        raise ValueError(f"Subset expects at least one element, but got {_shown(logits)}.")
    return logits.shape[-1]


def _shown(logits: Any) -> str:
    if isinstance(logits, Tensor):
        return f"{logits.dtype} of shape {tuple(logits.shape)}"
    return type(logits).__name__
