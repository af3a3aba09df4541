"""Counts as a network likes its inputs: centred, and of unit spread under the prior."""

from __future__ import annotations

__all__ = ["Standardise"]

import torch
from torch import Tensor
from torch.distributions import Distribution

from .fixed_prior import WideBuffers


class Standardise(WideBuffers):
    """``(z - mean) / standard deviation`` of a law; both stay what they are when it is made.

    Example:
        >>> Standardise(torch.distributions.Poisson(4.0))(torch.tensor([0.0, 4.0, 6.0]))
        tensor([-2.,  0.,  1.])
    """

    def __init__(self, law: Distribution) -> None:
        super().__init__()
        try:
            mean, spread = law.mean.detach(), law.stddev.detach()
        except NotImplementedError:
            mean = spread = torch.tensor(torch.nan)
        if not mean.is_meta and not bool((mean + spread).isfinite().all()):
            raise ValueError(
                f"the mean or the variance of the prior {law} is not known or infinite: pass "
                "standardise=False, and the decoder sees the counts as they are."
            )
        self.constant("centre", mean)
        self.constant("spread", torch.where(spread > 0, spread, 1.0))

    def forward(self, z: Tensor) -> Tensor:
        """Latents ``(*, D)`` in units of the law."""
        return (z - self.get_buffer("centre")) / self.get_buffer("spread")
