"""Whether a ``log_prob`` from outside gives its integers a total probability of 1.

A tail is 1 less the rest where that is more exact than its sum. So a table sums to 1 whatever a
``log_prob`` leaves out, and its end atom would hold what lies nowhere: the total is checked first.
"""

__all__ = ["require_total_mass"]

import torch
from torch import Tensor

from ..laws.pmf import PMF
from ..numerics.tracing import any_of, inspectable, tensors_of

_FIRST = 64
_LAST = 1 << 20
"""The search for mass ends after so many integers,"""
_MOST = 1 << 22
"""or after so many log-probabilities,"""
_AT_ONCE = 1 << 20
"""so many of them at a time."""


@torch.no_grad()
def require_total_mass(law: PMF) -> None:
    """Raise where probabilities grow without end, or where mass is missing that lies nowhere."""
    batch = law.batch_shape.numel()
    parameters = [x for _, _, x in tensors_of(law.q) if x.is_floating_point()]
    if batch == 0 or not inspectable(law.like, *parameters):
        return
    eps = max(torch.finfo(x.dtype).eps for x in (law.like, *parameters))
    found = torch.zeros((), dtype=torch.float64, device=law.like.device)
    done, block, bulk = 0, _FIRST, _FIRST
    while True:
        part = _mass_of(law, torch.arange(done, done + block, device=found.device))
        found, done = found + part, done + block
        missing = 1 - found
        if any_of(part > 1e-4):
            bulk = done
        # the log-gammas of large counts cancel, the more the larger they are
        slack = 1e-3 + 16 * eps * bulk
        if any_of(missing < -slack) or _ends_within(law, done):
            break
        if not any_of(missing > slack):
            return
        if done >= _LAST or done * batch >= _MOST:
            # a heavy tail still adds to it, and the bulk may lie farther out
            if any_of((part > 1e-3 * missing) | (found < 1e-3)):
                return
            break
        block = max(_FIRST, min(done, _AT_ONCE // batch))
    if any_of(missing.abs() > slack):
        worst = found.flatten()[missing.abs().argmax()].item()
        raise ValueError(
            f"{type(law.q).__name__} has a log_prob that is not normalised: the probabilities of "
            f"{done:,} integers sum to {worst:.4g}."
        )


def _mass_of(law: PMF, steps: Tensor) -> Tensor:
    """The mass of integers, counted upwards from the smallest, or else to both sides from 0."""
    if law.lower is not None:
        k = law.lower + steps
    else:
        k = torch.where(steps % 2 == 0, steps // 2, -1 - steps // 2)
    return law.log_pmf(k).double().exp().sum(-1)


def _ends_within(law: PMF, done: int) -> bool:
    """Whether these are all of the integers."""
    if law.lower is None or law.upper is None:
        return False
    return not any_of(law.upper >= law.lower + done)
