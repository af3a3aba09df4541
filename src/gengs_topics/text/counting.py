"""From documents to counts without holding the text: the second pass, after the vocabulary's.

Each document becomes a row, empty ones too, so that row ``d`` is the ``d``-th document of the file.
Words that the vocabulary lacks are left out, and counted.
"""

__all__ = ["Tally", "count_words", "matrix", "write_corpus"]

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from .corpus import Corpus, write_folder


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
    texts: Iterable[Iterable[str] | Mapping[str, int]],
    vocabulary: Sequence[str],
    tally: Tally | None = None,
) -> Iterator[dict[int, int]]:
    """How often the word of each column occurs in each document; ``tally`` notes what was met.

    A document is given by its words, or by how often each of them occurs.

    Example:
        >>> list(count_words([["b", "a", "b", "x"], {"b": 3}], ["a", "b"]))
        [{0: 1, 1: 2}, {1: 3}]
    """
    tally = Tally() if tally is None else tally
    column = {word: number for number, word in enumerate(vocabulary)}
    for words in texts:
        counts: Counter[int] = Counter()
        for word, count in Counter(words).items():
            counts[column.get(word, -1)] += count
        tally.unknown += counts.pop(-1, 0)
        tally.documents += 1
        tally.empty += not counts
        tally.known += counts.total()
        yield dict(sorted(counts.items()))


def write_corpus(
    documents: Iterable[Mapping[int, int]], vocabulary: Sequence[str], folder: str | Path
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


def matrix(batch: Sequence[Mapping[int, int]], words: int) -> Any:
    """Some documents as a sparse matrix."""
    ends = np.cumsum([0, *map(len, batch)])
    columns = np.array([column for document in batch for column in document], np.int32)
    counts = np.array([count for document in batch for count in document.values()], np.float32)
    return scipy.sparse.csr_array((counts, columns, ends), shape=(len(batch), words))
