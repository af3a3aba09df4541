"""From documents to counts without holding the text: the second pass, after the vocabulary's.

Each document becomes a row, empty ones too, so that row ``d`` is the ``d``-th document of the file.
Words that the vocabulary lacks are left out, and counted.
"""

from __future__ import annotations

__all__ = ["CountedDocument", "Tally", "count_words", "matrix", "write_corpus"]

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from .corpus import Corpus
from .corpus_folder import write_folder


class CountedDocument(NamedTuple):
    """The columns of a document's words, rising, and how often they occur."""

    columns: list[int]
    counts: list[int]


@dataclass
class Tally:
    """What was met on the way: documents, those without a word of the vocabulary, and words."""

    documents: int = 0
    empty: int = 0
    known: int = 0  # words of the vocabulary, counted as often as they occur
    unknown: int = 0  # other words, likewise

    def __str__(self) -> str:
        """In a sentence."""
        share = self.known / max(self.known + self.unknown, 1)
        empty = f", {self.empty:,} of them without any" if self.empty else ""
        return f"{self.documents:,} documents{empty}; {self.known:,} words kept, {share:.0%} of all"


def count_words(
    texts: Iterable[Iterable[str]], vocabulary: Sequence[str], tally: Tally | None = None
) -> Iterator[CountedDocument]:
    """The counts of each document, given its words; ``tally`` notes what was met.

    Example:
        >>> list(count_words([["b", "a", "b", "x"]], ["a", "b"]))
        [CountedDocument(columns=[0, 1], counts=[1, 2])]
    """
    tally = Tally() if tally is None else tally
    column = {word: number for number, word in enumerate(vocabulary)}
    for words in texts:
        counts = Counter(column.get(word, -1) for word in words)
        tally.unknown += counts.pop(-1, 0)
        tally.documents += 1
        tally.empty += not counts
        tally.known += counts.total()
        columns = sorted(counts)
        yield CountedDocument(columns, [counts[number] for number in columns])


def write_corpus(
    documents: Iterable[CountedDocument], vocabulary: Sequence[str], folder: str | Path
) -> Corpus:
    """Write the counts of documents to a new folder as they come, and map them."""
    stream = iter(documents)
    batches = iter(lambda: list(islice(stream, 1024)), [])
    blocks = (matrix(batch, len(vocabulary)) for batch in batches)
    first = next(blocks, None)
    if first is None:
        raise ValueError("expected documents, but there are none.")
    write_folder(folder, chain([first], blocks), vocabulary)
    return Corpus.open(folder)


def matrix(batch: Sequence[CountedDocument], words: int) -> Any:
    """Some documents as a sparse matrix."""
    ends = np.cumsum([0, *(len(document.columns) for document in batch)])
    columns = np.concatenate([np.asarray(d.columns, np.int32) for d in batch])
    counts = np.concatenate([np.asarray(d.counts, np.float32) for d in batch])
    return scipy.sparse.csr_array((counts, columns, ends), shape=(len(batch), words))
