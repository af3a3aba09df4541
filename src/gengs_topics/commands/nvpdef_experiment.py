"""From the settings of ``gengs nvpdef`` to the topic model that is trained (Table 2).

At the end, ``topics.json`` in the run's folder lists the topics' words and, where there are
super-topics, what hangs on each. What is recorded at each evaluation, by exact draws on documents
that the model was not trained on:

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

__all__ = ["build_nvpdef"]

import math
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor

from gengs.estimators.spec import parse_estimator
from gengs_experiments.data.batches import Batches
from gengs_experiments.experiments.annealing import anneal, warm_up
from gengs_experiments.runs.json_lines import dumps
from gengs_experiments.runs.random_state import seed_everything
from gengs_experiments.runs.training import Task, Training

from ..metrics import npmi, topic_diversity
from ..model.bag_encoder import BagEncoder
from ..model.document_weights import starting_shares
from ..model.nvdm import NVDM
from ..model.nvpdef import NVPDEF
from ..model.topic_activity import measure_activity
from ..model.topic_network import TopicNetwork
from ..model.topic_perplexity import perplexity
from ..model.topic_training import topic_optimizer, topic_task
from ..model.topic_words import top_words, topics_as_json
from ..text.corpus import Corpus
from .nvpdef_settings import NvpdefConfig


def build_nvpdef(config: NvpdefConfig, documents: Corpus, test: Corpus) -> tuple[Task, Training]:
    """The task and its length: one function from the configuration to everything that trains."""
    config.check()
    order = np.random.default_rng(0).permutation(len(documents))  # the same for every seed
    held = round(len(documents) * config.validation)
    seed_everything(config.seed)
    data = Batches(documents, config.batch_size, config.seed, rows=np.sort(order[held:]))
    steps = config.epochs * len(data)
    model, schedules = _model(config, documents, steps)
    task = topic_task(
        model,
        data,
        topic_optimizer(model, config.learning_rate),
        steps=steps,
        weigh=config.weigh,
        topic_penalty=config.topic_penalty,
        weight_decay=config.weight_decay,
        turn=config.turn,
        decay=config.decay == "cosine",
        schedules=schedules,
        evaluate=_evaluation(config, model, documents, np.sort(order[:held]), test),
    )

    def files() -> dict[str, bytes]:
        measure_activity(model, documents, turn=config.turn)
        topics = topics_as_json(model, documents.vocabulary)
        return {"topics.json": (dumps(topics, indent=2) + "\n").encode()}

    every = None if config.evaluate_every is None else config.evaluate_every * len(data)
    return replace(task, files=files), Training(
        steps=steps, clip=config.clip, record_every=len(data), evaluate_every=every
    )


def _model(
    config: NvpdefConfig, documents: Corpus, steps: int
) -> tuple[TopicNetwork, dict[str, Any]]:
    """The model, and what changes while it trains."""
    layers = 1 + len(config.super_topics)
    drawn = 1 if config.stack == "mean-field" else layers
    names = [config.estimator, *[config.inner_estimator or config.estimator] * (drawn - 1)]
    estimators = [parse_estimator(name) for name in names]
    encoder = BagEncoder(
        documents.words,
        config.hidden,
        activation=config.activation,
        dropout=config.dropout,
        thinning=config.thinning,
        batch_norm=config.batch_norm,
    )
    unigram = starting_shares(documents, config.weigh)
    model: TopicNetwork
    schedules: dict[str, Any] = {}
    if config.model == "nvdm":
        if config.super_topics:
            raise ValueError("Gaussian topics have no layer above: expected no `super_topics`.")
        draws = estimators[0].samples
        model = NVDM(encoder, config.topics, draws, words=config.words, unigram=unigram)
    else:
        model = NVPDEF(
            encoder,
            estimators,
            (*config.super_topics, config.topics),
            config.rates * (layers if len(config.rates) == 1 else 1),
            config.level or None,
            config.posterior,
            config.stack,
            words=config.words,
            learn_rates=config.learn_rates,
            unigram=unigram,
        )
        schedules = anneal(zip(names, model.estimators, strict=True), config.temperature, steps)
    return model, schedules | warm_up(model, config.kl_warm_up)


def _evaluation(
    config: NvpdefConfig, model: TopicNetwork, documents: Corpus, held_out: Any, test: Corpus
) -> Callable[[], dict[str, float]]:
    """What measures the model as it is when called; ``held_out`` are rows of ``documents``."""

    def batches(corpus: Corpus, rows: Any = None) -> Iterable[Tensor]:
        size = min(512, len(corpus) if rows is None else len(rows))
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
