"""How much of each topic each document has: written as they come, in a table and in an array.

The table (``.csv``) has a row for each document: its number, its line, its name, how many of its
words the model knows, and its intensity of each topic. The array (``.npy``) has the intensities
alone. On the way, the documents with most of each topic are remembered, for people to read.
"""

from __future__ import annotations

__all__ = ["Mixtures", "write_mixtures"]

import csv
import heapq
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..data.corpus import Corpus
from ..data.corpus_folder import GrowingArray
from ..data.counting import CountedDocument, batches, matrix
from ..models.topic_model import TopicModel
from ..study.atomic import temporary_name
from .source import Label

_BATCH = 512
_FIRST = 5  # documents to remember for each topic


@dataclass
class Mixtures:
    """What was seen of the documents' topics."""

    documents: int = 0
    """How many there were."""
    leading: list[list[tuple[float, int, Label]]] = field(default_factory=list)
    """For each topic the documents with most of it: intensity, number, label; most first."""
    spread: Any = None
    """For each topic the variance of its intensity over the documents."""


def write_mixtures(
    model: TopicModel,
    documents: Iterable[tuple[Label, CountedDocument]],
    table: Path | None = None,
    array: Path | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Mixtures:
    """Write the topics of documents; a file appears when it is whole.

    Args:
        model: Fitted.
        documents: Labels and counts.
        table: A ``.csv`` file.
        array: A ``.npy`` file.
        progress: Called with the number of documents so far.
    """
    topics = int(model.n_components)
    seen = Mixtures(leading=[[] for _ in range(topics)])
    sums, squares = np.zeros(topics), np.zeros(topics)
    with ExitStack() as stack:
        rows = stack.enter_context(_TableFile(table, topics)) if table else None
        numbers = stack.enter_context(_ArrayFile(array, topics)) if array else None
        for labels, counts in _in_batches(documents, model.n_features_in_):
            values = model.transform(counts)  # (B, K)
            if rows is not None:
                rows.write(seen.documents, labels, counts, values)
            if numbers is not None:
                numbers.write(values)
            filled = np.diff(counts.indptr) > 0
            _remember(seen, labels, values, filled)
            sums += values.sum(0, dtype=np.float64)
            squares += np.square(values, dtype=np.float64).sum(0)
            seen.documents += len(labels)
            progress(seen.documents)
        if not seen.documents:
            raise ValueError("expected documents, but there are none.")
        for file in (rows, numbers):
            if file is not None:
                file.finish()
    seen.leading = [sorted(heap, key=lambda one: (-one[0], one[1])) for heap in seen.leading]
    seen.spread = np.maximum(squares / seen.documents - (sums / seen.documents) ** 2, 0)
    return seen


def counted_rows(corpus: Corpus) -> Iterator[CountedDocument]:
    """The documents of a corpus, one by one."""
    for start, end in zip(corpus.indptr[:-1], corpus.indptr[1:], strict=True):
        yield CountedDocument(corpus.indices[start:end], corpus.data[start:end])


class _TableFile:
    def __init__(self, path: Path, topics: int) -> None:
        self.path, self.temporary = path, temporary_name(path)
        self.file: IO[str] = self.temporary.open("w", encoding="utf-8", newline="")
        self.writer = csv.writer(self.file)
        heads = ["document", "line", "name", "words", *(f"topic{k}" for k in range(topics))]
        self.writer.writerow(heads)

    def write(self, before: int, labels: list[Label], counts: Any, values: Any) -> None:
        words = np.asarray(counts.sum(1)).ravel()
        for k, (label, row) in enumerate(zip(labels, values, strict=True)):
            name = label.name.encode("utf-8", "replace").decode()
            intensities = (f"{value:.4g}" for value in row)
            self.writer.writerow([before + k + 1, label.line, name, f"{words[k]:g}", *intensities])

    def finish(self) -> None:
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()
        self.temporary.replace(self.path)

    def __enter__(self) -> _TableFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.file.close()
        self.temporary.unlink(missing_ok=True)


class _ArrayFile:
    def __init__(self, path: Path, topics: int) -> None:
        self.path, self.temporary = path, temporary_name(path)
        self.array = GrowingArray(self.temporary, np.float32, topics)

    def write(self, values: Any) -> None:
        self.array.append(values)

    def finish(self) -> None:
        self.array.close()
        self.temporary.replace(self.path)

    def __enter__(self) -> _ArrayFile:
        return self

    def __exit__(self, *exception: object) -> None:
        self.array.file.close()
        self.temporary.unlink(missing_ok=True)


def _in_batches(
    documents: Iterable[tuple[Label, CountedDocument]], words: int
) -> Iterator[tuple[list[Label], Any]]:
    stream = iter(documents)
    while part := list(islice(stream, _BATCH)):
        labels = [label for label, _ in part]
        (counted,) = batches((document for _, document in part), _BATCH)
        yield labels, matrix(counted, words)


def _remember(seen: Mixtures, labels: list[Label], values: Any, filled: Any) -> None:
    for topic, heap in enumerate(seen.leading):
        column = np.where(filled, values[:, topic], -np.inf)
        for row in np.argsort(-column, kind="stable")[:_FIRST]:
            if not filled[row]:
                break
            item = (float(column[row]), seen.documents + int(row), labels[row])
            if len(heap) < _FIRST:
                heapq.heappush(heap, item)
            else:
                heapq.heappushpop(heap, item)
