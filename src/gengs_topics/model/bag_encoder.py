r"""From word counts to features: a multilayer perceptron on :math:`\log(1 + \text{counts})`.

On a small corpus it is the encoder that overfits; *thinning* keeps it from learning documents by
heart. While training, each token of a document is shown to the encoder with probability
``1 - thinning`` only (the counts become binomial draws), and the posterior still has to explain all
of it.

Few words of the vocabulary are in any one document: the first layer adds up the rows of those that
are, which takes a third of the time of a matrix product.
"""

__all__ = ["ACTIVATIONS", "BagEncoder"]

from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import embedding_bag

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "tanh": nn.Tanh,
}
"""By name."""


class BagEncoder(nn.Module):
    """Word counts ``(B, V)`` to features ``(B, H)``.

    Args:
        words: The size V of the vocabulary.
        hidden: The widths of the layers; the last one is H.
        activation: After each layer: a name in :data:`ACTIVATIONS`.
        dropout: The share of features that is dropped after each layer while training.
        thinning: The share of tokens that is hidden while training.
        batch_norm: Normalise before each activation.
    """

    def __init__(
        self,
        words: int,
        hidden: Sequence[int] = (500, 500),
        *,
        activation: str = "relu",
        dropout: float = 0.0,
        thinning: float = 0.0,
        batch_norm: bool = False,
    ) -> None:
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(
                f"expected one of {', '.join(ACTIVATIONS)} as `activation`, but got {activation!r}."
            )
        for name, share in (("dropout", dropout), ("thinning", thinning)):
            if not 0 <= share < 1:
                raise ValueError(f"expected a `{name}` in [0, 1), but got {share}.")
        if not hidden or min(hidden) < 1:
            raise ValueError(f"expected positive widths in `hidden`, but got {list(hidden)}.")
        self.thinning = thinning
        layers: list[nn.Module] = []
        for inputs, outputs in pairwise((words, *hidden)):
            layers.append(nn.Linear(inputs, outputs) if layers else BagLinear(inputs, outputs))
            if batch_norm:
                layers.append(nn.BatchNorm1d(outputs))
            layers.append(ACTIVATIONS[activation]())
            if dropout:
                layers.append(nn.Dropout(dropout))
        self.layers, self.words, self.features = nn.Sequential(*layers), words, hidden[-1]

    def forward(self, counts: Tensor) -> Tensor:
        if self.training and self.thinning:
            counts = thinned(counts, 1 - self.thinning)
        features: Tensor = self.layers(counts)
        return features


class BagLinear(nn.Module):
    """A linear layer of log(1 + counts) ``(B, inputs)``, most of which are zero."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(inputs, outputs).uniform_(-1, 1) / inputs**0.5)
        self.bias = nn.Parameter(torch.empty(outputs).uniform_(-1, 1) / inputs**0.5)

    def forward(self, x: Tensor) -> Tensor:
        row, column = x.nonzero(as_tuple=True)
        starts = torch.searchsorted(row, torch.arange(len(x), device=x.device))
        values = x[row, column].log1p()
        bags = embedding_bag(column, self.weight, starts, mode="sum", per_sample_weights=values)
        return bags + self.bias


def thinned(counts: Tensor, share: float) -> Tensor:
    """Counts of which each token is kept with probability ``share``, on its own.

    Where a count is not whole (weighted words), its fraction stays or goes as one.
    """
    keep = torch.full_like(counts, share)
    whole = counts.floor()
    kept = torch.binomial(whole, keep)
    if torch.equal(whole, counts):
        return kept
    return kept + (counts - whole) * torch.bernoulli(keep)
