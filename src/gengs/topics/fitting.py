"""A ``TopicModel`` trained by the engine, with checkpoints, so that a killed command goes on.

Documents without words teach nothing and are left out of the training. The held-out ones measure
the perplexity, per document and from exact draws (:mod:`gengs.models.topic_network`).
"""

from __future__ import annotations

__all__ = ["build", "finish"]

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..data.corpus import Corpus
from ..data.sparse_batches import SparseBatches
from ..experiments.task import Stateful, Task, Training
from ..metrics import inverted_rbo, npmi, topic_diversity
from ..models.topic_model import TopicModel
from ..models.topic_network import perplexity
from ..models.topic_recipe import document_weights
from ..models.turning import Turning
from .settings import FitConfig

_STEPS, _LEAST, _MOST = 2500, 3, 100  # about so many steps; so many passes
_HELD_OUT = 2000
_EVALUATIONS = 8
_LARGE = 50_000_000  # entries: from here on, rows are read in blocks


def build(config: FitConfig, corpus: Corpus) -> tuple[TopicModel, Task, Training]:
    """The model, what to do with it, and for how long."""
    rows, held_out = _split(config, corpus)
    size = min(config.batch_size, len(rows))
    block = 64 if len(corpus.data) > _LARGE else 1
    data = SparseBatches(corpus, size, config.seed, rows=rows, block=block)
    epochs = config.epochs or min(_MOST, max(_LEAST, round(_STEPS / len(data))))
    steps = epochs * len(data)
    model = TopicModel(
        config.topics,
        super_topics=config.super_topics,
        gradient=config.estimator,
        hidden=config.hidden,
        topic_penalty=config.topic_penalty,
        turn=config.turn,
        max_iter=epochs,
        batch_size=size,
        learning_rate=config.learning_rate,
        random_state=config.seed,
    )
    # as fit() does, but the loop is the engine's
    model._begin(model._counts(corpus, reset=True))
    network, optimizer = model.network_, model.trainer_.optimizer
    mean_length = float(corpus.lengths[rows].mean())

    def step(counts: Tensor) -> dict[str, Tensor]:
        losses = network.loss(counts)
        weights = document_weights(counts, model.weigh, mean_length)
        loss = (weights * losses).mean() + config.topic_penalty / len(rows) * network.penalty()
        words = (losses.detach() / counts.sum(-1).clamp_min(1)).mean()
        return {"loss": loss, "nats_per_word": words}

    schedules: dict[str, Stateful] = {
        "learning_rate": torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    }
    if config.turn:
        schedules["turning"] = Turning(network, optimizer, steps)
    task = Task(
        modules={"model": network},
        step=step,
        data=data,
        optimizers=[optimizer],
        schedules=schedules,
        evaluate=_evaluation(model, corpus, held_out),
    )
    every = max(1, epochs // _EVALUATIONS) * len(data)
    return model, task, Training(steps=steps, record_every=len(data), evaluate_every=every)


def finish(model: TopicModel, records: list[dict[str, Any]]) -> TopicModel:
    """The model as ``fit`` would have left it, on the CPU and with its history."""
    model.network_.cpu().eval()
    passes = [record for record in records if record["kind"] == "train"]
    model.trainer_.history = [
        {"epoch": float(number), "loss": float(record["nats_per_word"])}
        for number, record in enumerate(passes, 1)
    ]
    model.trainer_.epochs = model.n_iter_ = len(passes)
    return model


def _split(config: FitConfig, corpus: Corpus) -> tuple[Any, Any]:
    filled = np.flatnonzero(np.diff(corpus.indptr) > 0)
    held = min(int(len(filled) * config.held_out), _HELD_OUT)
    if len(filled) - held < 1:
        raise ValueError(f"expected documents to train on, but {len(filled)} have words.")
    order = np.random.default_rng(config.seed).permutation(filled)
    return np.sort(order[held:]), np.sort(order[:held])


def _evaluation(model: TopicModel, corpus: Corpus, held_out: Any) -> Callable[[], dict[str, float]]:
    def batches() -> Iterable[Tensor]:
        device = next(model.network_.parameters()).device
        data = SparseBatches(corpus, min(256, len(held_out)), rows=held_out, shuffle=False)
        return (batch.to(device) for batch in data.epoch(0))

    def evaluate() -> dict[str, float]:
        values = {}
        if len(held_out):
            found = perplexity(model.network_, batches(), model.n_draws)
            values["perplexity_test"] = found.document
            values["perplexity_test_corpus"] = found.corpus
            values["kl_test"] = found.kl
        words = [topic.words for topic in model.topics(10)]
        values["npmi"] = float(npmi(words, corpus).mean())
        values["diversity"] = topic_diversity(words)
        values["inverted_rbo"] = inverted_rbo(words)
        return values

    return evaluate
