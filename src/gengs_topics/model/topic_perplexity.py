r"""The perplexity of documents, by a topic model's bound: two ways to average.

.. math::
    \text{per document: } \exp \frac1D \sum_d \frac{-\mathrm{ELBO}(d)}{N_d}, \qquad
    \text{of the corpus: } \exp \frac{\sum_d -\mathrm{ELBO}(d)}{\sum_d N_d}.

Papers print the first one. Short documents weigh more in it. Documents without a word have no
perplexity and are left out.
"""

__all__ = ["Perplexity", "completion", "perplexity"]

from collections.abc import Iterable
from typing import NamedTuple

import torch
from torch import Tensor

from .topic_network import TopicNetwork


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
    model: TopicNetwork, batches: Iterable[tuple[Tensor, Tensor]], samples: int = 1, refine: int = 0
) -> Perplexity:
    """The perplexities of the rest of documents, of which some words are given.

    Batches are of given counts and of those of the rest; all else is as in :func:`perplexity`.
    """
    return _averaged(
        (rest, -model.predictive(given, rest, samples, refine), torch.zeros(len(rest)))
        for given, rest in batches
    )


@torch.no_grad()
def _averaged(parts: Iterable[tuple[Tensor, Tensor, Tensor]]) -> Perplexity:
    """Of counts, their costs and their divergences, some documents at a time."""
    columns = [torch.stack([x.sum(-1), cost, kl.to(cost)]).cpu() for x, cost, kl in parts]
    table = torch.cat([torch.zeros(3, 0), *columns], 1).double()
    lengths, costs, kls = table[:, table[0] > 0]
    if not len(lengths):
        raise ValueError("expected at least one document with a word in it, but got none.")
    bounds = costs + kls
    document, corpus = (bounds / lengths).mean().exp(), (bounds.sum() / lengths.sum()).exp()
    return Perplexity(float(document), float(corpus), float(kls.mean()))
