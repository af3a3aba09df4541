r"""The two networks of a topic model: from word counts to features, from topics to words.

**Encoder**: a multilayer perceptron on :math:`\log(1 + \text{counts})`. On a small corpus it is the
encoder that overfits; *thinning* keeps it from learning documents by heart. While training, each
token of a document is shown to the encoder with probability ``1 - thinning`` only (the counts
become binomial draws), and the posterior still has to explain all of it.

**Decoder**: multinomial logistic regression,

.. math:: \log p(w \mid z) = \mathrm{log\,softmax}(R\,(z - c) + b)_w,

with the bias at the corpus's log-frequencies to begin with, so that a model without topics is the
unigram model. The constant :math:`c` is the prior's mean: it moves into the bias, and changes how
fast the bias and the weights are learned but not what they can say.

References:
    | Neural Variational Inference for Text Processing (Miao et al., 2016),
    | https://arxiv.org/abs/1511.06038
"""

from __future__ import annotations

__all__ = ["ACTIVATIONS", "BagEncoder", "WordDecoder"]

from collections.abc import Sequence

import torch
from torch import Tensor, nn

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
        width = words
        for outputs in hidden:
            layers.append(nn.Linear(width, outputs))
            if batch_norm:
                layers.append(nn.BatchNorm1d(outputs))
            layers.append(ACTIVATIONS[activation]())
            if dropout:
                layers.append(nn.Dropout(dropout))
            width = outputs
        self.layers, self.words, self.features = nn.Sequential(*layers), words, width

    def forward(self, counts: Tensor) -> Tensor:
        if self.training and self.thinning:
            counts = thinned(counts, 1 - self.thinning)
        features: Tensor = self.layers(torch.log1p(counts))
        return features


class WordDecoder(nn.Module):
    """Topic intensities ``(*, D)`` to the words' logits ``(*, V)``.

    Args:
        topics: The number D of topics.
        words: The size V of the vocabulary.
        unigram: The words' probabilities without any topic, ``(V,)``; uniform by default.
        centre: The intensity that changes nothing.
        scale: The typical distance from it.
    """

    def __init__(
        self,
        topics: int,
        words: int,
        unigram: Tensor | None = None,
        centre: float = 0.0,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        if unigram is None:
            unigram = torch.full((words,), 1 / words)
        if unigram.shape != (words,) or not bool((unigram > 0).all()):
            raise ValueError(
                f"expected positive probabilities of shape ({words},) as `unigram`, but got shape "
                f"{tuple(unigram.shape)} with least value {float(unigram.min()):.3g}."
            )
        self.centre, self.scale = centre, scale
        self.weight = nn.Parameter(torch.randn(topics, words) * (0.1 / scale))
        self.bias = nn.Parameter(unigram.log().to(self.weight.dtype))

    def forward(self, z: Tensor) -> Tensor:
        return (z - self.centre) @ self.weight + self.bias

    def cost(self, counts: Tensor, z: Tensor) -> Tensor:
        r""":math:`-\sum_w n_w \log p(w \mid z)` for counts ``(B, V)`` and z ``(*, B, D)``."""
        logits = self(z)  # (*, B, V)
        return logits.logsumexp(-1) * counts.sum(-1) - (logits * counts).sum(-1)


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
