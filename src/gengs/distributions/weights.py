r"""The weights that a law on finitely many atoms is given: dtype, logarithms, normaliser, faults.

.. math:: \log \pi_k = x_k - \log \sum_j e^{x_j}

The sum is safe when the largest :math:`x_j` of each row is taken out first. To find it costs more
than all the rest, and is needed only where :math:`e^x` could over- or underflow; a network's logits
are hardly ever so large.
"""

from __future__ import annotations

__all__ = [
    "at_least_float32",
    "log_of_weights",
    "moderate_ends",
    "normalise",
    "normalise_moderate",
]

from typing import Any

import torch
from torch import Tensor

from .sums import row_sums
from .validation import all_finite, ends_of, inspectable, ordinary


def at_least_float32(dtype: torch.dtype) -> torch.dtype:
    """The dtype to compute in: half precision is too coarse for normalising, integers too."""
    return (
        torch.promote_types(dtype, torch.float32)
        if dtype.is_floating_point
        else torch.get_default_dtype()
    )


def log_of_weights(weights: Tensor, validate: bool) -> Tensor:
    """Logarithms of non-negative weights; zero becomes ``-inf`` and sends no NaN back."""
    if validate and inspectable(weights) and (weights < 0).any():
        raise ValueError(
            "Finite expects non-negative `probs`, "
            f"but the smallest is {weights.min().item():.4g} (shape {tuple(weights.shape)})."
        )
    possible = weights > 0
    # double where: log(0) would send 0 · inf = NaN back into the network that made the weights
    return weights.where(possible, 1.0).log().where(possible | weights.isnan(), -torch.inf)


_MODERATE = 60.0
"""Between the exponentials of plus and minus this, a float32 sum keeps all its digits."""


def normalise(log_weights: Tensor, name: str, validate: bool) -> tuple[Tensor, bool]:
    """Log-probabilities, and whether it is known that none of them is ``-inf``.

    Args:
        log_weights: Unnormalised log-probabilities, ``(*batch, n)``.
        name: The argument they were given as, for messages.
        validate: Whether to raise where a row has NaN, +inf or no possible atom.
    """
    if moderate_ends(log_weights) is not None:
        return normalise_moderate(log_weights), True
    total = log_weights.logsumexp(-1, keepdim=True)
    # NaN, +inf and "every atom forbidden" all show in the normaliser, which is n times smaller
    if validate and inspectable(total) and not all_finite(total):
        row = tuple(int(i) for i in (~torch.isfinite(total[..., 0])).nonzero()[0])
        raise ValueError(
            f"Finite expects `{name}` without NaN or +inf and with at least one possible atom in "
            f"each row, but row {row} is not so."
        )
    return log_weights - total, False


def moderate_ends(log_weights: Tensor) -> tuple[float, float] | None:
    """The smallest and the largest entry, where no exponential can over- or underflow."""
    if not (ordinary(log_weights) and log_weights.numel()):
        return None
    least, most = ends_of(log_weights)
    return (least, most) if least > -_MODERATE and most < _MODERATE else None  # NaN is not


def normalise_moderate(log_weights: Tensor) -> Tensor:
    """Log-probabilities of log-weights that have :func:`moderate_ends`."""
    return _Normalise.apply(log_weights)


class _Normalise(torch.autograd.Function):
    """``log_softmax`` of moderate numbers, its sums by matrix products."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        log_pmf = x - row_sums(x.exp()).log_()
        ctx.save_for_backward(log_pmf)
        return log_pmf

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (log_pmf,) = ctx.saved_tensors
        return grad - log_pmf.exp() * row_sums(grad)
