r"""How a topic model is trained: what a step minimises, by which optimiser, on which schedule.

What a step minimises, over a batch of documents d of a corpus of M documents:

.. math::
    \frac1B \sum_d v_d\, \text{loss}(d) + \frac{c}{M} \|R\|^2

with the documents' weights :math:`v_d` (:mod:`.document_weights`) and a penalty: a Gaussian prior
on the topics' entries, whose weight c does not depend on the size of the corpus or of the batch.

:func:`topic_task` is the one definition of that, and :func:`~.one_step.make_step` of a step. The
commands (``topics fit``, ``nvpdef``) hand the task to the engine
(:mod:`gengs_experiments.runs.training`), with a folder and checkpoints; :class:`TopicFit` makes the
steps in memory, because ``TopicModel.fit`` leaves no folder behind, stops early and can be called
again.
"""

__all__ = ["TopicFit", "in_order", "topic_optimizer", "topic_task", "unchanged_by_failure"]

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.optim.lr_scheduler import CosineAnnealingLR

from gengs_experiments.data.batches import Batches
from gengs_experiments.data.sparse_rows import CompressedRows
from gengs_experiments.runs.machine import without_subnormals
from gengs_experiments.runs.one_step import make_step
from gengs_experiments.runs.training import Stateful, Task

from .document_weights import SHORT, TopicWeights, document_weights, typical_length
from .refinement import fold_rng
from .topic_network import TopicNetwork
from .topic_perplexity import perplexity
from .topic_settings import default_passes
from .topic_start import FEW
from .varimax import VarimaxRotation


def topic_task(
    model: TopicNetwork,
    data: Batches,
    optimizer: torch.optim.Optimizer,
    *,
    steps: int | None,
    weigh: TopicWeights = "documents",
    topic_penalty: float = 0.0,
    weight_decay: float | None = None,
    turn: bool = True,
    decay: bool = True,
    schedules: Mapping[str, Stateful] | None = None,
    evaluate: Any = None,
) -> Task:
    """The steps of a training: their loss, its optimiser, and what moves on with them.

    What counts the same is for ``weigh`` to say; ``topic_penalty`` is the weight c of the prior on
    the topics' entries. ``weight_decay`` is that of the encoder's matrices; without one, 10 for
    short documents and 3 for others: a few words leave a document's topics open, and an encoder
    with many topics learns by heart what they were, unless it is held back.

    A training without ``steps`` has no end, and nothing is scheduled; else ``turn`` rotates the
    topics by varimax after a third of them, ``decay`` lets the learning rate fall to zero along a
    cosine. More ``schedules`` move on with each step, by name.
    """
    typical = typical_length(data.data, data.subset)  # type: ignore[arg-type]
    by_length = 10.0 if typical < SHORT else 3.0
    optimizer.param_groups[0]["weight_decay"] = by_length if weight_decay is None else weight_decay

    def step(counts: Tensor) -> dict[str, Tensor]:
        losses = model.loss(counts)
        loss = (document_weights(counts.sum(-1), weigh, typical) * losses).mean()
        words = (losses.detach() / counts.sum(-1).clamp_min(1)).mean()
        loss = loss + topic_penalty / data.items * model.penalty()
        return {"loss": loss, "nats_per_word": words}

    moving = dict(schedules or {})
    if steps is not None and turn:
        moving["varimax"] = VarimaxRotation(model, optimizer, steps)
    if steps is not None and decay:
        moving["learning_rate"] = CosineAnnealingLR(optimizer, steps)
    return Task({"model": model}, step, data, [optimizer], moving, evaluate)


def topic_optimizer(model: TopicNetwork, learning_rate: float) -> torch.optim.Optimizer:
    """Adam; the first group has the encoder's matrices, for a decoupled weight decay of these."""
    decayed = [p for p in model.encoder.parameters() if p.dim() > 1]
    chosen = {id(p) for p in decayed}
    rest = [p for p in model.parameters() if id(p) not in chosen and p.requires_grad]
    groups: Any = [{"params": decayed}, {"params": rest}]
    # one pass over the memory instead of a dozen: four times as fast
    lazy = any(isinstance(p, torch.nn.UninitializedParameter) for p in rest)
    return torch.optim.AdamW(groups, lr=learning_rate, weight_decay=0.0, fused=not lazy)


@contextmanager
def unchanged_by_failure(estimator: object) -> Iterator[None]:
    """Put replaced attributes of an estimator back if the block does not end well."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:  # an interrupt, too
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise


def in_order(counts: CompressedRows, rows: Any = None) -> Iterator[Tensor]:
    """Documents, dense, in batches; all of them, or these ``rows``."""
    documents = counts.shape[0] if rows is None else len(rows)
    return Batches(counts, min(256, documents), rows=rows, shuffle=False).epoch(0)


class TopicFit:
    """Trains a network in memory, any number of passes at a time; ``seed`` is of order and draws.

    Attributes:
        epochs: How many passes were made.
        history: The facts of each.
    """

    def __init__(self, network: TopicNetwork, seed: int) -> None:
        self.network, self.seed, self.epochs = network, seed, 0
        self.optimizer = topic_optimizer(network, 1e-3)
        self.history: list[dict[str, float]] = []

    def task(self, data: Batches, settings: Any, steps: int | None, evaluate: Any = None) -> Task:
        """The steps of a training, as the settings of a ``TopicModel`` say."""
        # they may be others than in the last run
        for group in self.optimizer.param_groups:
            group["lr"] = settings.learning_rate
        return topic_task(
            self.network,
            data,
            self.optimizer,
            steps=steps,
            weigh=settings.weigh,
            topic_penalty=settings.topic_penalty,
            weight_decay=settings.weight_decay,
            turn=settings.turn and data.items > FEW,
            evaluate=evaluate,
        )

    @without_subnormals()
    def run(self, counts: CompressedRows, settings: Any, epochs: int | None = None) -> None:
        """Make passes over ``counts``, as the settings of a ``TopicModel`` say.

        With ``epochs`` it makes so many of a training that has no end, at a constant learning rate;
        else ``settings.max_iter``, in which it falls to zero.
        """
        rows, held_out = self._split(counts, settings) if epochs is None else (None, None)
        documents = counts.shape[0] if rows is None else len(rows)
        data = Batches(counts, min(settings.batch_size, documents), self.seed, rows=rows)
        total = epochs or settings.max_iter or default_passes(len(data))
        begin = time.monotonic()
        task = self.task(data, settings, total * len(data) if epochs is None else None)
        best, waited, kept = math.inf, 0, None
        for done in range(1, total + 1):
            facts = self._epoch(task, len(data), settings.learning_rate)
            if held_out is not None:
                facts["perplexity"] = self._validate(counts, held_out, settings)
                waited = 0 if facts["perplexity"] < best else waited + 1
                if waited == 0:
                    best, kept = facts["perplexity"], deepcopy(self.network.state_dict())
            self.history.append(facts)
            if settings.verbose:
                shown = (f"{name} {value:.4g}" for name, value in facts.items() if name != "epoch")
                left = (time.monotonic() - begin) / done * (total - done)
                print(f"pass {done} of {total}: {', '.join(shown)}, at most {left:.0f} s left")
            if settings.on_epoch is not None:
                settings.on_epoch(facts)
            if held_out is not None and waited >= settings.patience:
                break
        if kept is not None:
            self.network.load_state_dict(kept)

    def _epoch(self, task: Task, batches: int, learning_rate: float) -> dict[str, float]:
        """One pass; its number and its loss in nats per word."""
        self.network.train()
        words = 0.0
        with fold_rng(self.seed + 2 + self.epochs):
            for place in range(batches):
                batch = task.data.batch(self.epochs * batches + place, 0, 1)
                forward: Any = partial(task.step, batch)
                found = make_step(forward, task.optimizers, task.schedules.values())
                words += float(found["nats_per_word"])
        if not math.isfinite(words):
            raise FloatingPointError(
                f"the loss of pass {self.epochs + 1} is not finite; a smaller `learning_rate` than "
                f"{learning_rate} may help."
            )
        self.epochs += 1
        return {"epoch": float(self.epochs), "loss": words / batches}

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
        with fold_rng(self.seed + 1):
            return perplexity(self.network, in_order(counts, rows), settings.n_draws).document
