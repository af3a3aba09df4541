r"""From settings to a topic model and its optimiser: shared by the experiment and the estimator.

What a step minimises, over a batch of documents d of a corpus of M documents:

.. math::
    \frac1B \sum_d v_d\, \text{loss}(d) + \frac{c}{M} \|R\|^2

**Weights of documents.** With ``"tokens"`` every document counts with all its words, v = 1: the
evidence lower bound of the corpus, which long documents dominate. With ``"documents"`` every
document counts the same, :math:`v_d = \bar N / N_d`: then training minimises what the per-document
perplexity, the number that papers print, measures. The model and its bound are the same.

**Penalty.** A Gaussian prior on the topics' entries, whose weight c does not depend on the size of
the corpus or of the batch.
"""

from __future__ import annotations

__all__ = ["TopicWeights", "document_weights", "topic_network", "topic_optimizer"]

from collections.abc import Sequence
from typing import Literal, get_args

import torch
from torch import Tensor

from ..estimators.base import Estimator
from .bag_of_words import BagEncoder
from .nvdm import NVDM
from .nvpdef import NVPDEF, Stack
from .poisson_layer import PosteriorFamily
from .topic_network import TopicNetwork

TopicWeights = Literal["documents", "tokens"]
"""What counts the same in the training loss."""


def topic_network(
    words: int,
    unigram: Tensor | None,
    estimator: Estimator | Sequence[Estimator] | None,
    *,
    topics: int = 50,
    super_topics: Sequence[int] = (),
    rates: float | Sequence[float] = 10.0,
    level: int | None = 30,
    posterior: PosteriorFamily = "tilted",
    stack: Stack = "generative",
    learn_rates: bool = False,
    hidden: Sequence[int] = (500,),
    activation: str = "relu",
    dropout: float = 0.0,
    thinning: float = 0.0,
    batch_norm: bool = False,
    samples: int = 1,
) -> TopicNetwork:
    """A topic model for a vocabulary.

    Args:
        words: The size of the vocabulary.
        unigram: The words' probabilities to begin with.
        estimator: Differentiates the expectations; without one, the topics are Gaussian (NVDM).
        topics: The number of topics.
        super_topics: The sizes of the layers above them, the uppermost first.
        rates: The prior's rate in each layer, or one for all.
        level: The number of atoms.
        posterior: The family of the posteriors.
        stack: What feeds what.
        learn_rates: Learn the prior's rates.
        hidden: The widths of the encoder's layers.
        activation: Between them.
        dropout: After them.
        thinning: The share of tokens hidden from the encoder.
        batch_norm: Normalise the encoder's layers.
        samples: Draws in the loss of Gaussian topics; an estimator has its own number.
    """
    encoder = BagEncoder(
        words,
        hidden,
        activation=activation,
        dropout=dropout,
        thinning=thinning,
        batch_norm=batch_norm,
    )
    if estimator is None:
        return NVDM(encoder, topics, samples, unigram=unigram)
    return NVPDEF(
        encoder,
        estimator,
        (*super_topics, topics),
        rates,
        level,
        posterior,
        stack,
        learn_rates=learn_rates,
        unigram=unigram,
    )


def topic_optimizer(
    model: TopicNetwork, learning_rate: float, weight_decay: float = 0.0
) -> torch.optim.Optimizer:
    """Adam, with decoupled weight decay on the matrices of the encoder alone."""
    decayed = [p for p in model.encoder.parameters() if p.dim() > 1]
    chosen = {id(p) for p in decayed}
    rest = [p for p in model.parameters() if id(p) not in chosen and p.requires_grad]
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": rest, "weight_decay": 0.0},
    ]
    # one pass over the memory instead of a dozen: four times as fast
    lazy = any(isinstance(p, torch.nn.UninitializedParameter) for p in rest)
    return torch.optim.AdamW(groups, lr=learning_rate, fused=not lazy)


def document_weights(counts: Tensor, kind: TopicWeights, mean_length: float) -> Tensor:
    """What each document's loss is multiplied with, ``(B,)``.

    Args:
        counts: Documents, ``(B, V)``.
        kind: What counts the same.
        mean_length: The mean number of words of the corpus's documents.
    """
    if kind not in get_args(TopicWeights):
        options = " or ".join(get_args(TopicWeights))
        raise ValueError(f"expected `weigh` to be {options}, but got {kind!r}.")
    lengths = counts.sum(-1)
    if kind == "tokens":
        return torch.ones_like(lengths)
    return torch.where(lengths > 0, mean_length / lengths.clamp_min(1e-6), torch.ones_like(lengths))
