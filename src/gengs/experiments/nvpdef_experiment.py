"""From the settings of ``gengs nvpdef`` to the topic model that is trained (Table 2).

What is recorded at each evaluation is listed in :mod:`.nvpdef_evaluation`. At the end,
``topics.json`` in the run's folder lists the topics' words and, where there are super-topics, what
hangs on each.
"""

from __future__ import annotations

__all__ = ["build_nvpdef"]

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..data.batches import Batches
from ..data.text.corpus import Corpus
from ..estimators.spec import parse_estimator
from ..models.topics.bag_encoder import BagEncoder
from ..models.topics.document_weights import starting_shares
from ..models.topics.nvdm import NVDM
from ..models.topics.nvpdef import NVPDEF
from ..models.topics.topic_activity import measure_activity
from ..models.topics.topic_network import TopicNetwork
from ..models.topics.topic_training import topic_optimizer, topic_task
from ..models.topics.topic_words import topics_as_json
from ..runs.json_lines import dumps
from ..runs.random_state import seed_everything
from ..runs.training import Task, Training
from .annealing import anneal, warm_up
from .nvpdef_evaluation import evaluation

if TYPE_CHECKING:
    from .nvpdef_command import NvpdefConfig


def build_nvpdef(config: NvpdefConfig, documents: Corpus, test: Corpus) -> tuple[Task, Training]:
    """The task and its length: one function from the configuration to everything that trains."""
    config.check()
    rows, held_out = _split(config, len(documents))
    seed_everything(config.seed)
    data = Batches(documents, config.batch_size, config.seed, rows=rows)
    steps = config.epochs * len(data)
    model, schedules = _model(config, documents, steps)
    task = topic_task(
        model,
        data,
        topic_optimizer(model, config.learning_rate, config.weight_decay),
        steps=steps,
        weigh=config.weigh,
        topic_penalty=config.topic_penalty,
        turn=config.turn,
        decay=config.decay == "cosine",
        schedules=schedules,
        evaluate=evaluation(config, model, documents, held_out, test),
    )
    task = replace(task, files=lambda: {"topics.json": _topics_file(model, documents, config.turn)})
    every = None if config.evaluate_every is None else config.evaluate_every * len(data)
    return task, Training(
        steps=steps, clip=config.clip, record_every=len(data), evaluate_every=every
    )


def _topics_file(model: TopicNetwork, documents: Corpus, turn: bool) -> bytes:
    measure_activity(model, documents, turn=turn)
    found = topics_as_json(model, documents.vocabulary)
    return (dumps(found, indent=2) + "\n").encode()


def _split(config: NvpdefConfig, documents: int) -> tuple[Any, Any]:
    """The documents to train on, and those held out: the same for every seed."""
    if not 0 <= config.validation < 1:
        raise ValueError(f"expected a `validation` in [0, 1), but got {config.validation}.")
    order = np.random.default_rng(0).permutation(documents)
    held = round(documents * config.validation)
    return np.sort(order[held:]), np.sort(order[:held])


def _model(
    config: NvpdefConfig, documents: Corpus, steps: int
) -> tuple[TopicNetwork, dict[str, Any]]:
    layers = 1 if config.stack == "mean-field" else 1 + len(config.super_topics)
    inner = config.inner_estimator or config.estimator
    names = [config.estimator, *[inner] * (layers - 1)]
    if config.model == "nvdm" and config.super_topics:
        raise ValueError("Gaussian topics have no layer above: expected no `super_topics`.")
    rates = config.rates * (1 + len(config.super_topics) if len(config.rates) == 1 else 1)
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
    model: TopicNetwork = (
        NVDM(encoder, config.topics, estimators[0].samples, words=config.words, unigram=unigram)
        if config.model == "nvdm"
        else NVPDEF(
            encoder,
            estimators,
            (*config.super_topics, config.topics),
            rates,
            config.level or None,
            config.posterior,
            config.stack,
            words=config.words,
            learn_rates=config.learn_rates,
            unigram=unigram,
        )
    )
    schedules: dict[str, Any] = {}
    if isinstance(model, NVPDEF):
        named = zip(names, model.estimators, strict=True)
        schedules |= anneal(named, config.temperature, steps)
    return model, schedules | warm_up(model, config.kl_warm_up)
