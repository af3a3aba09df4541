"""A Poisson topic model on a corpus, with any estimator: the experiment behind Table 2.

    load counts → build the model → train → evaluate with exact draws

What is recorded at each evaluation is listed in :mod:`.topics_evaluation`. At the end,
``topics.json`` in the run's folder lists the topics' words and, where there are super-topics, what
hangs on each.
"""

from __future__ import annotations

__all__ = ["Topics", "TopicsConfig", "build_topics"]

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from ..data.corpus import Corpus
from ..data.sparse_batches import SparseBatches
from ..data.text import load_corpus
from ..distributions.temperature import Linear
from ..models.nvpdef import NVPDEF
from ..models.topic_network import TopicNetwork
from ..models.topic_recipe import document_weights, topic_network, topic_optimizer
from ..models.topic_words import topics_as_json
from ..models.turning import Turning
from ..spec import parse_estimator
from ..study.atomic import write_atomically
from ..study.nonfinite import dumps
from ..study.random_state import seed_everything
from ..subnormals import without_subnormals
from .annealing import anneal
from .options import check_least, check_positive, option
from .task import Task, Training
from .topics_evaluation import evaluation
from .training import Machine, train


@dataclass(frozen=True)
class TopicsConfig:
    """What is trained: everything here changes the numbers, and nothing else does."""

    corpus: Literal["sample", "20news", "reuters", "rcv1-sample", "rcv1", "imdb"] = "sample"
    """The documents: the sample needs no download."""
    model: Literal["nvpdef", "nvdm"] = "nvpdef"
    """Poisson topics, or Gaussian ones as a reference (of the estimator only its number of draws is
    used then)."""
    topics: int = 50
    """The number of topics."""
    super_topics: tuple[int, ...] = ()
    """The sizes of the layers above the topics, the uppermost first."""
    rates: tuple[float, ...] = (10.0,)
    """The prior's rate in each layer, the uppermost first; one number for all."""
    level: int | None = 30
    """Truncate the laws to this many atoms; 0 for none (explicit posteriors only)."""
    posterior: Literal["explicit", "implicit", "tilted"] = "tilted"
    """Poisson; any PMF on the atoms; or the prior, moved and narrowed."""
    stack: Literal["chain", "mean-field", "generative"] = "generative"
    """With super-topics: samples feed rates, rates feed rates, or the upper layers are a prior."""
    learn_rates: bool = False
    """Learn a rate of the uppermost prior for each latent."""
    estimator: str = "MidCDF(2)"
    """The gradient estimator with its settings: MidCDF(2), "GenGS(samples=10)", "RLOO(4)" ..."""
    inner_estimator: str | None = None
    """That of the layers after the first; by default the same. Draws of layers multiply."""
    temperature: tuple[float, float] = (0.5, 0.5)
    """From where to where the temperature of GenGS falls, by the same factor in each step; a
    temperature among the estimator's own settings is left alone."""
    hidden: tuple[int, ...] = (500,)
    """The widths of the encoder's layers."""
    activation: Literal["relu", "silu", "softplus", "tanh"] = "relu"
    """Between them."""
    dropout: float = 0.0
    """The share of the encoder's features that is dropped while training."""
    thinning: float = 0.0
    """The share of a document's tokens that is hidden from the encoder while training."""
    batch_norm: bool = False
    """Normalise the encoder's layers."""
    weight_decay: float = 0.3
    """Of the encoder's matrices, decoupled from the gradient (AdamW)."""
    topic_penalty: float = 0.5
    """The weight of the Gaussian prior on the topics' entries."""
    weigh: Literal["documents", "tokens"] = "documents"
    """Whether all documents count the same in the training loss, or all tokens."""
    turn: bool = True
    """Whether to turn the topics, after a third of the steps, to where each has few words."""
    batch_size: int = 64
    """Documents in a step."""
    learning_rate: float = 2e-3
    """Of Adam."""
    decay: Literal["cosine", "none"] = "cosine"
    """How the learning rate falls to zero."""
    epochs: int = 30
    """How often to go through the documents."""
    kl_warm_up: int = 0
    """Let the weight of the divergence rise from 0 to 1 over this many steps."""
    clip: float | None = None
    """Scale the gradient down to at most this norm."""
    validation: float = 0.0
    """Hold out this share of the training documents; which ones depends on nothing else."""
    evaluate_every: int | None = None
    """Evaluate after each so many epochs; by default at the end alone."""
    draws: int = 10
    """Exact draws per document in an evaluation, averaged in the bound."""
    refine: int = 0
    """Steps that refine each test document's posterior, for a second perplexity; 0 for none."""
    importance_draws: int = 0
    """Draws for the importance-sampled likelihood; 0 for none."""
    test: bool = True
    """Whether to evaluate on the test documents: not while settings are being chosen."""
    seed: int = 0
    """Of weights, order of the documents, and draws."""

    def check(self) -> None:
        """Numbers out of range, by the names of their options: before the training, not after."""
        least = {"topics": 1, "batch_size": 1, "epochs": 1, "evaluate_every": 1, "draws": 1}
        least |= {"level": 0}
        least |= {"refine": 0, "importance_draws": 0, "kl_warm_up": 0, "seed": 0}
        check_least(self, least | {"weight_decay": 0, "topic_penalty": 0})
        check_positive(self, "learning_rate", "clip")
        for name, numbers in (("super_topics", self.super_topics), ("hidden", self.hidden)):
            if numbers and min(numbers) < 1:
                raise ValueError(f"expected at least 1 for {option(name)}, but got {min(numbers)}.")


@dataclass(frozen=True)
class Topics:
    """Train a Poisson topic model on a corpus, with any estimator."""

    config: TopicsConfig = field(default_factory=TopicsConfig)
    out: Path = Path("runs/topics")
    """The folder of the run."""
    data_dir: Path | None = None
    """Where the corpora are; by default $GENGS_DATA, or the download cache."""
    machine: Machine = field(default_factory=Machine)

    @without_subnormals()
    def run(self) -> list[dict[str, Any]]:
        """Train, record, write the topics, and print the last evaluation."""
        self.machine.check()  # before anything is fetched
        self.config.check()
        train_documents, test_documents = load_corpus(self.config.corpus, self.data_dir)
        task, training = build_topics(self.config, train_documents, test_documents)
        records = train(task, self.out, self.config, training, self.machine, seed=self.config.seed)
        evaluations = [record for record in records if record["kind"] == "evaluation"]
        if evaluations:
            model = task.modules["model"]
            found = topics_as_json(model, train_documents.vocabulary)  # type: ignore[arg-type]
            write_atomically(self.out / "topics.json", (dumps(found, indent=2) + "\n").encode())
            shown = {k: v for k, v in evaluations[-1].items() if k not in ("kind", "step")}
            print("  ".join(f"{name} {value:.4g}" for name, value in shown.items()))
            print(f"records: {self.out / 'records.jsonl'}, topics: {self.out / 'topics.json'}")
        return records


def build_topics(config: TopicsConfig, documents: Corpus, test: Corpus) -> tuple[Task, Training]:
    """The task and its length: one function from the configuration to everything that trains."""
    config.check()
    rows, held_out = _split(config, len(documents))
    seed_everything(config.seed)
    data = SparseBatches(documents, config.batch_size, config.seed, rows=rows)
    steps = config.epochs * len(data)
    model, schedules = _model(config, documents, steps)
    mean_length = documents.tokens / len(documents)

    def step(counts: Tensor) -> dict[str, Tensor]:
        losses = model.loss(counts)
        loss = (document_weights(counts, config.weigh, mean_length) * losses).mean()
        words = (losses.detach() / counts.sum(-1).clamp_min(1)).mean()
        if config.topic_penalty:
            loss = loss + config.topic_penalty / data.documents * model.penalty()
        return {"loss": loss, "nats_per_word": words}

    optimizer = topic_optimizer(model, config.learning_rate, config.weight_decay)
    if config.turn:
        schedules["turning"] = Turning(model, optimizer, steps)
    if config.decay == "cosine":
        schedules["learning_rate"] = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    task = Task(
        modules={"model": model},
        step=step,
        data=data,
        optimizers=[optimizer],
        schedules=schedules,
        evaluate=evaluation(config, model, documents, held_out, test),
    )
    every = None if config.evaluate_every is None else config.evaluate_every * len(data)
    return task, Training(
        steps=steps, clip=config.clip, record_every=len(data), evaluate_every=every
    )


def _split(config: TopicsConfig, documents: int) -> tuple[Any, Any]:
    """The documents to train on, and those held out: the same for every seed."""
    if not 0 <= config.validation < 1:
        raise ValueError(f"expected a `validation` in [0, 1), but got {config.validation}.")
    order = np.random.default_rng(0).permutation(documents)
    held = round(documents * config.validation)
    return np.sort(order[held:]), np.sort(order[:held])


def _model(
    config: TopicsConfig, documents: Corpus, steps: int
) -> tuple[TopicNetwork, dict[str, Any]]:
    layers = 1 if config.stack == "mean-field" else 1 + len(config.super_topics)
    inner = config.inner_estimator or config.estimator
    names = [config.estimator, *[inner] * (layers - 1)]
    if config.model == "nvdm" and config.super_topics:
        raise ValueError("Gaussian topics have no layer above: expected no `super_topics`.")
    rates = config.rates * (1 + len(config.super_topics) if len(config.rates) == 1 else 1)
    estimators = [parse_estimator(name) for name in names]
    model = topic_network(
        documents.words,
        documents.unigram(smoothing=0.5),
        None if config.model == "nvdm" else estimators,
        samples=estimators[0].samples,
        topics=config.topics,
        super_topics=config.super_topics,
        rates=rates,
        level=config.level or None,
        posterior=config.posterior,
        stack=config.stack,
        learn_rates=config.learn_rates,
        hidden=config.hidden,
        activation=config.activation,
        dropout=config.dropout,
        thinning=config.thinning,
        batch_norm=config.batch_norm,
    )
    schedules: dict[str, Any] = {}
    if isinstance(model, NVPDEF):
        named = zip(names, model.estimators, strict=True)
        schedules |= anneal(named, config.temperature, steps)
    if config.kl_warm_up:
        # a schedule's values are positive; the weight starts at one step's worth
        weight = Linear(1 / config.kl_warm_up, 1.0, config.kl_warm_up)
        model.kl_weight = schedules["kl_weight"] = weight
    return model, schedules
