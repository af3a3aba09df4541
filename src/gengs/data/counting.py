"""From documents to counts, without holding them: a second pass.

Each document becomes a row, empty ones too, so that row ``d`` is the ``d``-th document of the file.
Words that the vocabulary lacks are left out, and counted.
"""

from __future__ import annotations

__all__ = ["CountedDocument", "Tally", "count_words", "write_corpus"]

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .corpus import Corpus
from .corpus_folder import CorpusWriter


class CountedDocument(NamedTuple):
    """Which words a document has, and how often."""

    columns: list[int]
    """The columns of its words, rising."""
    counts: list[int]
    """How often they occur."""


@dataclass
class Tally:
    """What was met on the way."""

    documents: int = 0
    """All documents."""
    empty: int = 0
    """Documents without a word of the vocabulary."""
    known: int = 0
    """Words of the vocabulary, counted as often as they occur."""
    unknown: int = 0
    """Other words, likewise."""

    def __str__(self) -> str:
        """In a sentence."""
        share = self.known / max(self.known + self.unknown, 1)
        empty = f", {self.empty:,} of them without any" if self.empty else ""
        return f"{self.documents:,} documents{empty}; {self.known:,} words kept, {share:.0%} of all"


def count_words(
    texts: Iterable[Iterable[str]], vocabulary: Sequence[str], tally: Tally | None = None
) -> Iterator[CountedDocument]:
    """The counts of each document.

    Args:
        texts: The words of each document.
        vocabulary: The words to count.
        tally: Where to note what was met.

    Example:
        >>> list(count_words([["b", "a", "b", "x"]], ["a", "b"]))
        [CountedDocument(columns=[0, 1], counts=[1, 2])]
    """
    tally = Tally() if tally is None else tally
    column = {word: number for number, word in enumerate(vocabulary)}
    for words in texts:
        counts: Counter[int] = Counter()
        unknown = 0
        for word in words:
            number = column.get(word)
            if number is None:
                unknown += 1
            else:
                counts[number] += 1
        tally.documents += 1
        tally.empty += not counts
        tally.known += counts.total()
        tally.unknown += unknown
        columns = sorted(counts)
        yield CountedDocument(columns, [counts[number] for number in columns])


def write_corpus(
    documents: Iterable[CountedDocument],
    vocabulary: Sequence[str],
    folder: str | Path,
    progress: Callable[[int], None] = lambda _: None,
) -> Corpus:
    """Write the counts to a folder as they come, and map them.

    Args:
        documents: The counts.
        vocabulary: The words of the columns.
        folder: Where to; it must be new.
        progress: Called with the number of documents so far, now and then.
    """
    with CorpusWriter(folder) as writer:
        for batch in batches(documents, 1024):
            sizes = [len(document.columns) for document in batch]
            columns = np.concatenate([np.asarray(d.columns, np.int32) for d in batch])
            counts = np.concatenate([np.asarray(d.counts, np.float32) for d in batch])
            writer.append_many(sizes, columns, counts)
            progress(len(writer))
        if not len(writer):
            raise ValueError("expected documents, but there are none.")
        writer.finish(vocabulary)
    return Corpus.open(folder)


def batches(documents: Iterable[CountedDocument], size: int) -> Iterator[list[CountedDocument]]:
    """So many documents at a time; the last time, what is left."""
    batch: list[CountedDocument] = []
    for document in documents:
        batch.append(document)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def matrix(batch: Sequence[CountedDocument], words: int) -> Any:
    """Some documents as a sparse matrix."""
    ends = np.cumsum([0, *(len(document.columns) for document in batch)])
    columns = np.concatenate([np.asarray(d.columns, np.int32) for d in batch])
    counts = np.concatenate([np.asarray(d.counts, np.float32) for d in batch])
    return scipy.sparse.csr_array((counts, columns, ends), shape=(len(batch), words))
