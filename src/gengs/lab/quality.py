"""What gradients are worth beside the exact one, and how often they evaluate the cost."""

__all__ = ["GradientQuality", "draws_shown", "gradient_quality"]

from typing import NamedTuple

from torch import Tensor
from torch.distributions import Distribution

from ..estimators.base import Cost, Estimator


class GradientQuality(NamedTuple):
    """Of independent gradients, for each problem in a batch."""

    bias: Tensor
    """The mean gradient minus the exact one, ``(*batch, parameters)``."""
    variance: Tensor
    """The trace of the covariance of a gradient, ``(*batch)``."""
    error: Tensor
    """The mean distance of a single gradient from the exact one, ``(*batch)``."""


def gradient_quality(gradients: Tensor, exact: Tensor) -> GradientQuality:
    """Compare gradients ``(R, *batch, parameters)`` with exact ones ``(*batch, parameters)``."""
    off = gradients - exact
    return GradientQuality(off.mean(0), gradients.var(0).sum(-1), off.norm(dim=-1).mean(0))


def draws_shown(estimator: Estimator, cost: Cost, q: Distribution) -> int:
    """How many draws one ``expect`` shows to the cost, counted."""
    shown = 0

    def counted(z: Tensor) -> Tensor:
        nonlocal shown
        shown += z.shape[0]
        return cost(z)

    estimator.expect(counted, q)
    return shown
