r"""The perplexity of documents, by a topic model's bound: two ways to average.

.. math::
    \text{per document: } \exp \frac1D \sum_d \frac{-\mathrm{ELBO}(d)}{N_d}, \qquad
    \text{of the corpus: } \exp \frac{\sum_d -\mathrm{ELBO}(d)}{\sum_d N_d}.

Papers print the first one. Short documents weigh more in it. Documents without a word have no
perplexity and are left out.
"""

__all__ = ["Perplexity", "completion", "perplexity"]

from collections.abc import Iterable
from math import exp, inf
from typing import NamedTuple

import torch
from torch import Tensor

from .topic_network import TopicNetwork

_MOST_NATS = 700.0  # exp of more is infinite in double precision


class Perplexity(NamedTuple):
    """Two ways to average over documents, and the divergence's part in nats per document."""

    document: float
    corpus: float
    kl: float


def perplexity(
    model: TopicNetwork, batches: Iterable[Tensor], samples: int = 1, refine: int = 0
) -> Perplexity:
    """The perplexities of documents that come in batches.

    Args:
        model: In evaluation mode.
        batches: Counts, ``(B, V)`` each.
        samples: Draws per document, averaged in the bound.
        refine: Steps that refine each document's posterior.
    """
    return _averaged((x, *model.averages(x, samples, refine)) for x in batches)


def completion(
    model: TopicNetwork,
    batches: Iterable[tuple[Tensor, Tensor]],
    samples: int = 1,
    refine: int = 0,
) -> Perplexity:
    """The perplexities of the rest of documents, of which some words are given.

    Args:
        model: In evaluation mode.
        batches: Given counts and those of the rest, ``(B, V)`` each.
        samples: Draws per document, averaged in the likelihood.
        refine: Steps that refine each document's posterior.
    """
    return _averaged(
        (rest, -model.predictive(given, rest, samples, refine), torch.zeros(len(rest)))
        for given, rest in batches
    )


@torch.no_grad()
def _averaged(parts: Iterable[tuple[Tensor, Tensor, Tensor]]) -> Perplexity:
    """Of counts, their costs and their divergences, some documents at a time."""
    per_document = bounds = tokens = divergences = 0.0
    documents = 0
    for counts, *costs in parts:
        lengths = counts.sum(-1).double()
        cost, kl = (part.double().to(lengths.device) for part in costs)
        filled = lengths > 0
        bound = (cost + kl)[filled]
        per_document += float((bound / lengths[filled]).sum())
        bounds, tokens = bounds + float(bound.sum()), tokens + float(lengths.sum())
        divergences, documents = (
            divergences + float(kl[filled].sum()),
            documents + int(filled.sum()),
        )
    if not documents:
        raise ValueError("expected at least one document with a word in it, but got none.")
    return Perplexity(
        _exp(per_document / documents), _exp(bounds / tokens), divergences / documents
    )


def _exp(nats: float) -> float:
    """Infinite past the largest number, where Python's own raises."""
    return inf if nats > _MOST_NATS else exp(nats)
