"""How much of each topic each document has: written as they come, in a table and in an array.

The table (``.csv``) has a row for each document: its number, its line, its name, how many of its
words the model knows, its strongest topics (those that rise above their usual intensity; a text
without a theme has none), and its intensity, or proportion, of each topic. The array (``.npy``) has
these alone. On the way, the documents in which each topic rises most are remembered, for people to
read.
"""

from __future__ import annotations

__all__ = ["Leading", "write_mixtures"]

import csv
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any, Literal

import numpy as np
import torch

from ...models.topics.topic_activity import excess, proportions_of, strongest_topics
from ...models.topics.topic_model import TopicModel
from ...runs.atomic import temporary_name
from ...runs.sanitise import spreadsheet_cell
from .source import Label

_FIRST = 5  # documents to remember for each topic


Leading = list[list[tuple[float, int, Label]]]
"""For each topic the documents in which it rises most above its usual intensity: by how many
deviations, the document's number and its label; most first."""


def write_mixtures(
    model: TopicModel,
    batches: Iterable[tuple[list[Label], Any]],
    table: Path | None = None,
    array: Path | None = None,
    kind: Literal["intensities", "proportions"] = "intensities",
) -> Leading:
    """Write the topics of documents; a file appears when it is whole.

    Args:
        model: Fitted.
        batches: Labels and sparse counts of some documents at a time.
        table: A ``.csv`` file.
        array: A ``.npy`` file.
        kind: What to write of each topic.
    """
    topics, network, done = int(model.n_components), model.network_, 0
    leading: Leading = [[] for _ in range(topics)]
    with ExitStack() as stack:
        lines = csv.writer(stack.enter_context(_appearing(table))) if table else None
        if lines is not None:
            names = (f"topic{k}" for k in range(topics))
            lines.writerow(["document", "line", "name", "words", "strongest", *names])
        numbers = stack.enter_context(_appearing(array, "b")) if array else None
        raw = stack.enter_context(tempfile.TemporaryFile(dir=array.parent)) if array else None
        for labels, counts in batches:
            found = torch.from_numpy(model.transform(counts))  # (B, K)
            shown = proportions_of(network, found) if kind == "proportions" else found
            values = shown.numpy()
            if lines is not None:
                strongest = strongest_topics(network, found)
                lines.writerows(_rows(done, labels, counts, strongest, values))
            if raw is not None:
                raw.write(np.ascontiguousarray(values, np.float32).tobytes())
            rises = np.where(np.diff(counts.indptr)[:, None] > 0, excess(network, found), -np.inf)
            for topic, column in enumerate(rises.T):
                rows = np.argsort(-column, kind="stable")[:_FIRST].tolist()
                more = [(float(column[k]), done + k, labels[k]) for k in rows if column[k] > 0]
                # of equals, the first ones
                leading[topic] = sorted(leading[topic] + more, key=lambda one: -one[0])[:_FIRST]
            done += len(labels)
        if not done:
            raise ValueError("expected documents, but there are none.")
        if numbers is not None and raw is not None:  # the header says how many there are
            raw.flush()
            np.save(numbers, np.memmap(raw, np.float32, "r", shape=(done, topics)))
    return leading


@contextmanager
def _appearing(path: Path, kind: str = "") -> Iterator[IO[Any]]:
    """A file to write that takes its name when the block has ended well."""
    temporary = temporary_name(path)
    text = {} if kind else {"encoding": "utf-8", "newline": ""}
    try:
        with temporary.open(f"w{kind}", **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _rows(
    before: int, labels: list[Label], counts: Any, strongest: Any, values: Any
) -> Iterator[list[Any]]:
    words = np.asarray(counts.sum(1)).ravel()
    for k, (label, risen, row) in enumerate(zip(labels, strongest, values, strict=True)):
        name = spreadsheet_cell(label.name.encode("utf-8", "replace").decode())
        first = " ".join(str(topic) for topic, _ in risen)
        yield [before + k + 1, label.line, name, f"{words[k]:g}", first, *(f"{v:.4g}" for v in row)]
