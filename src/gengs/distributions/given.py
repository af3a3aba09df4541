"""Parameters as the user gave them: ``log p`` and ``log(1 - p)`` without torch's clamps.

torch's laws take ``probs`` or ``logits`` and make the other one when asked, clamped away from 0 and
1: that would give impossible values a probability.
"""

from __future__ import annotations

__all__ = ["gave", "log_success_and_failure", "times", "widen"]

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.nn.functional import logsigmoid

from .special import safe_log, safe_log1p


def widen(parameter: Tensor, dtype: torch.dtype = torch.float32) -> Tensor:
    """A parameter in ``dtype`` or wider."""
    return parameter.to(torch.promote_types(parameter.dtype, dtype))


def times(k: Tensor, log_p: Tensor) -> Tensor:
    """``k · log p`` with ``0 · (-inf) = 0``, and no NaN in the gradient of either."""
    never = log_p == -torch.inf
    return (k * log_p.masked_fill(never, 0.0)).masked_fill(never & (k != 0), -torch.inf)


def gave(law: Distribution, name: str) -> bool:
    """Whether the user built the law from ``name``: the other parameter is lazy, and clamped."""
    if hasattr(law, "_param"):
        return vars(law).get(name) is law._param
    # Geometric does not note it, but its attributes are in the order of their making
    return name == next(key for key in vars(law) if key in ("probs", "logits"))


def log_success_and_failure(
    law: Distribution, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """``log p`` and ``log(1 - p)``, ``(*batch, 1)``, without the clamp torch puts on logits."""
    if gave(law, "logits"):
        logits = widen(law.logits, dtype).unsqueeze(-1)  # type: ignore[attr-defined]
        return logsigmoid(logits), logsigmoid(-logits)
    probs = widen(law.probs, dtype).unsqueeze(-1)  # type: ignore[attr-defined]
    # 1 - p rounds: in float32, log(1 - p) of p = 1e-6 would be off by 1 %
    return safe_log(probs), safe_log1p(-probs)
