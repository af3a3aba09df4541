r"""A linear map with positive weights: what turns intensities into rates.

.. math:: \lambda = \mathrm{softplus}(W)\, z + \mathrm{softplus}(c)

More of a super-topic never means less of a sub-topic, so each weight can be read on its own, and
the rate stays positive whatever :math:`z \ge 0` is, relaxed or discrete, zeros included.

References:
    | Deep Exponential Families (Ranganath et al., 2015), https://arxiv.org/abs/1411.2581
"""

from __future__ import annotations

__all__ = ["PositiveLinear"]

import torch
from torch import Tensor, nn
from torch.nn.functional import linear, softplus


class PositiveLinear(nn.Module):
    """A linear layer whose weights and biases are positive.

    Args:
        inputs: The number of intensities.
        outputs: The number of rates.
        rate: What each rate is to be at the beginning, for inputs around ``typical``.
        typical: The typical size of an input.

    Example:
        >>> layer = PositiveLinear(3, 2)
        >>> bool((layer.weight > 0).all() and (layer(torch.zeros(3)) > 0).all())
        True
    """

    def __init__(self, inputs: int, outputs: int, rate: float = 1.0, typical: float = 1.0) -> None:
        super().__init__()
        if inputs < 1 or outputs < 1:
            raise ValueError(f"expected positive sizes, but got {inputs} and {outputs}.")
        if not (rate > 0 and typical > 0):
            raise ValueError(
                f"expected positive `rate` and `typical`, but got {rate} and {typical}."
            )
        # one half from the weights, one half from the bias; the weights differ, to break ties
        spread = torch.empty(outputs, inputs).exponential_()
        self.raw_weight = nn.Parameter(_inverse(spread * (rate / 2 / typical / inputs)))
        self.raw_bias = nn.Parameter(_inverse(torch.full((outputs,), rate / 2)))

    @property
    def weight(self) -> Tensor:
        """The positive weights, ``(outputs, inputs)``."""
        return softplus(self.raw_weight)

    @property
    def bias(self) -> Tensor:
        """The rates without any input, ``(outputs,)``."""
        return softplus(self.raw_bias)

    def forward(self, z: Tensor) -> Tensor:
        """The rates ``(*, outputs)`` of intensities ``(*, inputs)``."""
        return linear(z, self.weight, self.bias)

    def extra_repr(self) -> str:
        return "{1}, {0}".format(*self.raw_weight.shape)


def _inverse(y: Tensor) -> Tensor:
    """The x with softplus(x) = y, also where y is tiny."""
    y = y.clamp_min(1e-6)
    return y + torch.log(-torch.expm1(-y))
