"""Passes over a corpus: the training loop of ``TopicModel``, in memory, without a run folder.

The experiment ``gengs topics`` trains with checkpoints instead (:mod:`gengs.experiments.training`).
"""

from __future__ import annotations

__all__ = ["TopicFit", "fold_rng"]

import math
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any

import numpy as np
import torch

from ..data.sparse_batches import CompressedRows, SparseBatches, word_totals
from ..subnormals import without_subnormals
from .topic_network import TopicNetwork, perplexity
from .topic_recipe import document_weights, topic_optimizer
from .turning import Turning


@contextmanager
def fold_rng(seed: int) -> Iterator[None]:
    """Seed torch, and leave its generator as it was."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


class TopicFit:
    """Trains a network by Adam, any number of passes at a time.

    Args:
        network: What to train.
        learning_rate: Of Adam.
        weight_decay: Of the encoder's matrices.
        seed: Of order and draws.

    Attributes:
        epochs: How many passes were made.
        history: The facts of each.
    """

    def __init__(
        self, network: TopicNetwork, learning_rate: float, weight_decay: float, seed: int
    ) -> None:
        self.network, self.learning_rate, self.seed = network, learning_rate, seed
        self.optimizer = topic_optimizer(network, learning_rate, weight_decay)
        self.epochs = 0
        self.history: list[dict[str, float]] = []

    @without_subnormals()
    def run(
        self, counts: CompressedRows, settings: Any, epochs: int | None = None, decay: bool = True
    ) -> None:
        """Make passes over ``counts``, as the settings of a ``TopicModel`` say.

        Args:
            counts: The documents.
            settings: Learning rate, batch size, weights of documents, early stopping and so on.
            epochs: How many passes; by default ``settings.max_iter``.
            decay: Let the learning rate fall to zero along a cosine.
        """
        # they may be others than in the last run; the first group holds the encoder's matrices
        self.learning_rate = settings.learning_rate
        self.optimizer.param_groups[0]["weight_decay"] = settings.weight_decay
        rows, held_out = self._split(counts, settings) if decay else (None, None)
        documents = counts.shape[0] if rows is None else len(rows)
        data = SparseBatches(counts, min(settings.batch_size, documents), self.seed, rows=rows)
        mean_length = float(word_totals(counts).sum()) / counts.shape[0] or 1.0
        total = settings.max_iter if epochs is None else epochs
        # partial fits have no end, and nobody knows a third of it
        turn = settings.turn and decay
        turning = Turning(self.network, self.optimizer, total * len(data)) if turn else None
        best, waited, kept = math.inf, 0, None
        for epoch in range(total):
            span = (epoch / total, 1 / total) if decay else (0.0, 0.0)
            facts = self._epoch(data, settings, mean_length, span, turning)
            if held_out is not None:
                facts["perplexity"] = self._validate(counts, held_out, settings)
                waited = 0 if facts["perplexity"] < best else waited + 1
                if waited == 0:
                    best, kept = facts["perplexity"], deepcopy(self.network.state_dict())
            self.history.append(facts)
            if settings.verbose:
                shown = (f"{name} {value:.4g}" for name, value in facts.items() if name != "epoch")
                print(f"pass {self.epochs} of {total}: {', '.join(shown)}")
            if settings.on_epoch is not None:
                settings.on_epoch(facts)
            if held_out is not None and waited >= settings.patience:
                break
        if kept is not None:
            self.network.load_state_dict(kept)

    def _epoch(
        self,
        data: SparseBatches,
        settings: Any,
        mean_length: float,
        span: tuple[float, float],
        turning: Turning | None,
    ) -> dict[str, float]:
        """One pass, which covers this ``span`` (begin, length) of the learning rate's way down."""
        self.network.train()
        losses = 0.0
        with fold_rng(self.seed + 2 + self.epochs):
            for place in range(len(data)):
                done = span[0] + span[1] * place / len(data)
                for group in self.optimizer.param_groups:
                    group["lr"] = self.learning_rate * (1 + math.cos(math.pi * done)) / 2
                x = data.batch(self.epochs * len(data) + place)
                weights = document_weights(x, settings.weigh, mean_length)
                loss = (weights * self.network.loss(x)).mean()
                penalty = settings.topic_penalty / data.documents * self.network.penalty()
                self.optimizer.zero_grad()
                (loss + penalty).backward()
                self.optimizer.step()
                if turning is not None:
                    turning.step()
                losses += float(loss.detach())
        if not math.isfinite(losses):
            raise FloatingPointError(
                f"the loss of pass {self.epochs + 1} is not finite; a smaller `learning_rate` than "
                f"{self.learning_rate} may help."
            )
        self.epochs += 1
        # in nats per word, where all documents have the mean length
        return {"epoch": float(self.epochs), "loss": losses / len(data) / mean_length}

    def _split(self, counts: CompressedRows, settings: Any) -> tuple[Any, Any]:
        """Documents to train on, and those to hold out; ``None`` for all and for none."""
        documents = counts.shape[0]
        held = math.ceil(documents * settings.validation_fraction)
        if not settings.early_stopping:
            return None, None
        if not 0 < held < documents:
            raise ValueError(
                "expected a `validation_fraction` that leaves documents on both sides, but got "
                f"{settings.validation_fraction} of {documents}."
            )
        order = np.random.default_rng(self.seed).permutation(documents)
        filled = order[np.diff(counts.indptr)[order] > 0]  # the others have no perplexity
        if not len(filled):
            raise ValueError(
                "expected documents with words to hold out for `early_stopping`, but all are empty."
            )
        return np.setdiff1d(order, filled[:held]), np.sort(filled[:held])

    def _validate(self, counts: CompressedRows, rows: Any, settings: Any) -> float:
        self.network.eval()
        data = SparseBatches(counts, min(256, len(rows)), rows=rows, shuffle=False)
        with fold_rng(self.seed + 1):
            return perplexity(self.network, data.epoch(0), settings.n_draws).document
