"""``gengs nvpdef``: a Poisson topic model on a corpus, with any estimator (Table 2).

    load counts → build the model → train → evaluate with exact draws

What is recorded at each evaluation is listed in :mod:`.nvpdef_evaluation`. At the end,
``topics.json`` in the run's folder lists the topics' words and, where there are super-topics, what
hangs on each.
"""

from __future__ import annotations

__all__ = ["Nvpdef", "NvpdefConfig", "build_nvpdef"]

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from ..data.batches import Batches
from ..data.text.corpus import Corpus
from ..data.text.text_sets import load_corpus
from ..estimators.spec import parse_estimator
from ..models.topics.bag_encoder import BagEncoder
from ..models.topics.document_weights import starting_shares
from ..models.topics.nvdm import NVDM
from ..models.topics.nvpdef import NVPDEF
from ..models.topics.topic_activity import measure_activity
from ..models.topics.topic_network import TopicNetwork
from ..models.topics.topic_settings import DEFAULTS
from ..models.topics.topic_training import topic_optimizer, topic_task
from ..models.topics.topic_words import topics_as_json
from ..runs.config import check_least, check_positive, option
from ..runs.json_lines import dumps
from ..runs.random_state import seed_everything
from ..runs.training import Task, Training
from .annealing import anneal, warm_up
from .nvpdef_evaluation import evaluation
from .train_command import TrainCommand


@dataclass(frozen=True)
class NvpdefConfig:
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
    rates: tuple[float, ...] = (DEFAULTS.rate,)
    """The prior's rate in each layer, the uppermost first; one number for all."""
    level: int | None = DEFAULTS.level
    """Truncate the laws to this many atoms; 0 for none (explicit posteriors only)."""
    posterior: Literal["explicit", "implicit", "tilted"] = DEFAULTS.posterior
    """Poisson; any PMF on the atoms; or the prior, moved and narrowed."""
    stack: Literal["chain", "mean-field", "generative"] = DEFAULTS.stack
    """With super-topics: samples feed rates, rates feed rates, or the upper layers are a prior."""
    words: Literal["urn", "multinomial"] = DEFAULTS.words
    """A Pólya urn, from which a word that has occurred is likelier to come again; or independent
    draws."""
    learn_rates: bool = False
    """Learn a rate of the uppermost prior for each latent."""
    estimator: str = DEFAULTS.gradient
    """The gradient estimator with its settings: MidCDF(2), "GenGS(samples=10)", "RLOO(4)" ..."""
    inner_estimator: str | None = None
    """That of the layers after the first; by default the same. Draws of layers multiply."""
    temperature: tuple[float, float] = (0.5, 0.5)
    """From where to where the temperature of GenGS falls, by the same factor in each step; a
    temperature among the estimator's own settings is left alone."""
    hidden: tuple[int, ...] = DEFAULTS.hidden
    """The widths of the encoder's layers."""
    activation: Literal["relu", "silu", "softplus", "tanh"] = "relu"
    """Between them."""
    dropout: float = 0.0
    """The share of the encoder's features that is dropped while training."""
    thinning: float = 0.0
    """The share of a document's tokens that is hidden from the encoder while training."""
    batch_norm: bool = False
    """Normalise the encoder's layers."""
    weight_decay: float = DEFAULTS.weight_decay
    """Of the encoder's matrices, decoupled from the gradient (AdamW)."""
    topic_penalty: float = DEFAULTS.topic_penalty
    """The weight of the Gaussian prior on the topics' entries."""
    weigh: Literal["documents", "tokens"] = "documents"
    """Whether all documents count the same in the training loss, or all tokens."""
    turn: bool = True
    """Rotate the topics by varimax after a third of the steps, so that each has few words."""
    batch_size: int = DEFAULTS.batch_size
    """Documents in a step."""
    learning_rate: float = DEFAULTS.learning_rate
    """Of Adam."""
    decay: Literal["cosine", "none"] = "cosine"
    """How the learning rate falls to zero."""
    epochs: int = DEFAULTS.epochs
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

    def load(self, data_dir: Path | None) -> tuple[Corpus, Corpus]:
        """The documents to train on, and those to test on."""
        return load_corpus(self.corpus, data_dir)

    def build(self, data: tuple[Corpus, Corpus]) -> tuple[Task, Training]:
        """The model and how it is trained."""
        return build_nvpdef(self, *data)


@dataclass(frozen=True)
class Nvpdef(TrainCommand):
    """Train a Poisson topic model on a corpus, with any estimator."""

    config: NvpdefConfig = field(default_factory=NvpdefConfig)
    out: Path = Path("runs/nvpdef")


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
