r"""A law given by a network's scores, :math:`\pi_k = e^{x_k} / \sum_j e^{x_j}`, not yet normalised.

A relaxed value does not change when a constant is added to the scores, and the divergence takes the
normaliser as one number per row, so that neither asks for normalised logits.
"""

from __future__ import annotations

__all__ = ["Scored", "with_scores"]

import torch
from torch import Tensor

from .deferred import Deferred
from .finite import Finite
from .sums import row_sums
from .validation import ordinary
from .weights import at_least_float32, moderate_ends, normalise, normalise_moderate


def with_scores(law: Finite, scores: Tensor) -> Finite:
    """Another law on the atoms of ``law``, which need no second look.

    Args:
        law: A law whose atoms are taken.
        scores: Unnormalised log-probabilities, ``(*batch, n)``.
    """
    wide = scores.to(at_least_float32(scores.dtype))
    ends = moderate_ends(wide)
    if ends is not None and law.atoms.dim() == 1 + law.event_dim:
        return Scored(law, wide, ends, scores.dtype)
    log_pmf, all_possible = normalise(wide, "logits", law._validate_args)
    other = Finite._of_log_pmf(law.atoms, log_pmf, law.event_dim, scores.dtype, law._validate_args)
    other.all_possible, other.consecutive = all_possible, law.consecutive
    return other


class Scored(Deferred):
    """The law of moderate scores; its ``source`` are the scores.

    Args:
        like: A law whose atoms, shared by the batch, are taken.
        scores: Unnormalised log-probabilities, ``(*batch, n)``, neither huge nor tiny.
        ends: The smallest and the largest of them.
        dtype: The floating type of what is drawn.

    Attributes:
        weights: The exponentials of the scores, without gradient.
        total: Their sum for each row, ``(*batch, 1)``.
    """

    source: Tensor
    all_possible = True

    def __init__(
        self, like: Finite, scores: Tensor, ends: tuple[float, float], dtype: torch.dtype
    ) -> None:
        super().__init__(scores, scores.shape[:-1], like.event_shape, dtype, like._validate_args)
        self.atoms, self.consecutive, self.ends = like.atoms, like.consecutive, ends
        self.weights = scores.detach().exp()
        self.total = row_sums(self.weights)

    def _make_table(self) -> tuple[Tensor, bool]:
        if ordinary(self.source):
            return normalise_moderate(self.source), True
        return normalise(self.source, "logits", self._validate_args)

    def softmax_scores(self, temperature: float) -> Tensor:
        # with Gumbel noise, between -3 (of the winner) and 23, exp(x / temperature) stays in range
        least, largest = self.ends
        in_range = (largest + 23) / temperature < 85 and (least - 3) / temperature > -60
        return self.source if in_range and not self.has_table else self.logits
