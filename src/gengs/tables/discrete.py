"""What the discrete distributions of gengs have in common: they say where gradients come from."""

__all__ = ["Discrete"]

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.types import _size


class Discrete(Distribution):
    """A discrete distribution, whose draws have no derivative of their own."""

    def rsample(self, sample_shape: _size = torch.Size()) -> Tensor:
        raise NotImplementedError(
            f"{type(self).__name__} has no rsample: a discrete draw has no derivative of its own. "
            "Call gengs.rsample(q), which attaches a gradient, by=... the estimator of your choice."
        )
