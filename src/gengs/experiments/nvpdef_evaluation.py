"""The numbers of a topic model, by exact draws on documents that it was not trained on.

What is recorded at each evaluation:

========================  =========================================================================
perplexity_test           per document, from the ELBO of exact draws: the number to compare
perplexity_test_corpus    the same, averaged over words instead of documents
perplexity_relaxed        from the value that the estimator itself trains on: relaxed, for a
                          relaxation, and then no perplexity of the discrete model
perplexity_validation     of training documents that were held out, where asked for
perplexity_refined        the first one with each document's posterior refined (where asked for)
perplexity_importance     from an importance-sampled likelihood, a tighter bound (where asked for)
kl_test                   the divergence's part of the bound, in nats per document
npmi, diversity           coherence of the topics' first words on the training documents, and the
                          share of different words among them
========================  =========================================================================
"""

from __future__ import annotations

__all__ = ["evaluation"]

import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from torch import Tensor

from ..data.batches import Batches
from ..data.text.corpus import Corpus
from ..metrics import npmi, topic_diversity
from ..models.topics.topic_activity import measure_activity
from ..models.topics.topic_network import TopicNetwork
from ..models.topics.topic_perplexity import perplexity
from ..models.topics.topic_words import top_words

if TYPE_CHECKING:
    from .nvpdef_command import NvpdefConfig

_BATCH = 512


def evaluation(
    config: NvpdefConfig, model: TopicNetwork, documents: Corpus, held_out: Any, test: Corpus
) -> Callable[[], dict[str, float]]:
    """What measures the model, as the configuration asks for it.

    Args:
        config: Says what is measured, and with how many draws.
        model: Measured as it is when the function is called.
        documents: The training documents.
        held_out: The rows of those that are not trained on.
        test: The test documents.
    """

    def batches(corpus: Corpus, rows: Any = None) -> Iterable[Tensor]:
        size = min(_BATCH, len(corpus) if rows is None else len(rows))
        device = next(model.parameters()).device
        data = Batches(corpus, size, rows=rows, shuffle=False)
        return (batch.to(device) for batch in data.epoch(0))

    def evaluate() -> dict[str, float]:
        values = {}
        if len(held_out):
            found = perplexity(model, batches(documents, held_out), config.draws)
            values["perplexity_validation"] = found.document
        if config.test:
            found = perplexity(model, batches(test), config.draws)
            values["perplexity_test"] = found.document
            values["perplexity_test_corpus"] = found.corpus
            values["perplexity_relaxed"] = _per_document(model.training_value, batches(test))
            values["kl_test"] = found.kl
            if config.refine:
                found = perplexity(model, batches(test), config.draws, config.refine)
                values["perplexity_refined"] = found.document
                values["perplexity_refined_corpus"] = found.corpus
            if config.importance_draws:
                values["perplexity_importance"] = _per_document(
                    lambda x: -model.log_likelihood(x, config.importance_draws), batches(test)
                )
        measure_activity(model, documents, turn=config.turn)
        words = [topic.words for topic in top_words(model, documents.vocabulary)]
        values["npmi"] = float(npmi(words, documents).mean())
        values["diversity"] = topic_diversity(words)
        return values

    return evaluate


def _per_document(bound: Callable[[Tensor], Tensor], batches: Iterable[Tensor]) -> float:
    """The per-document perplexity of a bound on minus the log-likelihood."""
    total, documents = 0.0, 0
    for counts in batches:
        lengths = counts.sum(-1)
        filled = lengths > 0
        total += float((bound(counts)[filled] / lengths[filled]).double().sum())
        documents += int(filled.sum())
    return math.exp(total / documents)
