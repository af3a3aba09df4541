r"""How often the words of a topic occur together.

Counting needs a notion of "together":

- *documents*: :math:`n_{ij}` is the number of documents with both words. Counts are enough for it;
- *windows*: a window of fixed width slides over each text, word by word, and :math:`n_{ij}` is the
  number of windows with both words. A text shorter than the window is one window.

Only the words of one topic are counted against each other: the cost grows with the topics, not with
the square of the vocabulary, and documents are taken in parts, so that a mapped corpus stays on
disk.
"""

__all__ = ["CoOccurrence", "Topics"]

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse

from ..text.corpus import Corpus

Topics = Sequence[Sequence[str]] | Sequence[Sequence[int]]
"""The words of each topic, the most important first: as words, or as columns of the counts."""

_PART = 32_768  # documents, or windows, at a time
_ENTRIES = 4_000_000  # windows times words at a time


@dataclass(frozen=True)
class CoOccurrence:
    """Counts of words and pairs of words, topic by topic."""

    joint: tuple[Any, ...]
    """For each topic an array ``(N, N)``: how often words ``i`` and ``j`` occur together; on the
    diagonal, how often word ``i`` occurs."""
    total: int
    """The number of documents, or of windows."""

    @classmethod
    def of_documents(cls, topics: Topics, corpus: Corpus | Any) -> Self:
        """Count documents.

        Args:
            topics: Words of a :class:`.Corpus`, or columns.
            corpus: The corpus, or a SciPy sparse matrix, one row a document.

        Example:
            >>> counts = scipy.sparse.csr_array([[2, 1, 0], [1, 0, 0], [0, 0, 3]])
            >>> CoOccurrence.of_documents([[0, 1]], counts).joint[0].tolist()
            [[2, 1], [1, 1]]
        """
        vocabulary = corpus.vocabulary if isinstance(corpus, Corpus) else None
        counts = corpus.counts if isinstance(corpus, Corpus) else corpus
        if not scipy.sparse.issparse(counts):
            raise TypeError(
                "expected a Corpus or a SciPy sparse matrix as `corpus`, but got "
                f"{type(counts).__name__}."
            )
        counts = counts.tocsr()
        columns = _columns(topics, counts.shape[1], vocabulary)
        parts = (counts[start : start + _PART] for start in range(0, counts.shape[0], _PART))
        return cls(*_joint(columns, parts))

    @classmethod
    def of_windows(
        cls, topics: Sequence[Sequence[str]], texts: Iterable[Sequence[str]], width: int = 110
    ) -> Self:
        """Count sliding windows.

        Args:
            topics: The words of each topic.
            texts: The words of each document, in their order; one pass is made.
            width: How many words a window has; 110 is usual for C_V and 10 for NPMI.

        Example:
            >>> texts = [["a", "b", "c"], ["b"]]
            >>> CoOccurrence.of_windows([["a", "b"]], texts, width=2).joint[0].tolist()
            [[1, 1], [1, 3]]
        """
        if width < 1:
            raise ValueError(f"expected a `width` of at least 1, but got {width}.")
        words = sorted({word for topic in topics for word in topic})
        columns = _columns(topics, len(words), words)
        return cls(*_joint(columns, _window_parts(texts, words, width)))


def _columns(
    topics: Sequence[Sequence[Any]], width: int, vocabulary: Sequence[str] | None
) -> list[Any]:
    """The columns of each topic's words."""
    number = {word: column for column, word in enumerate(vocabulary or ())}
    found = []
    for index, topic in enumerate(topics):
        new = [word for word in topic if isinstance(word, str) and word not in number]
        if new:
            raise ValueError(
                f"topic {index} has the word {new[0]!r}, which is not in the vocabulary."
            )
        columns = [number.get(word, word) for word in topic]
        if len(set(columns)) != len(columns):
            raise ValueError(f"expected different words in topic {index}, but got {list(topic)}.")
        if columns and not (min(columns) >= 0 and max(columns) < width):
            raise ValueError(f"expected columns from 0 to {width - 1} in topic {index}.")
        found.append(np.asarray(columns, dtype=np.int64))
    if not found:
        raise ValueError("expected at least one topic, but got none.")
    return found


def _joint(topics: list[Any], parts: Iterable[Any]) -> tuple[tuple[Any, ...], int]:
    """The counts of each topic, and how many rows the parts have together."""
    needed = np.unique(np.concatenate(topics))
    places = [np.searchsorted(needed, columns) for columns in topics]
    sums = [np.zeros((len(columns), len(columns)), dtype=np.int64) for columns in topics]
    rows = 0
    for part in parts:
        rows += part.shape[0]
        present = part[:, needed].tocsc()
        present.data = (present.data > 0).astype(np.int64)
        for total, place in zip(sums, places, strict=True):
            of_topic = present[:, place]
            total += (of_topic.T @ of_topic).toarray()
    return tuple(sums), rows


def _window_parts(texts: Iterable[Sequence[str]], words: list[str], width: int) -> Iterator[Any]:
    """Which windows have which words: sparse matrices of some millions of entries."""
    number = {word: column for column, word in enumerate(words)}
    found: list[Any] = []
    size = 0
    for text in texts:
        found.append(_windows_of(text, number, width))
        size += found[-1].nnz
        if size > _ENTRIES:
            yield scipy.sparse.vstack(found, "csr")
            found, size = [], 0
    if found:
        yield scipy.sparse.vstack(found, "csr")


def _windows_of(text: Sequence[str], number: dict[str, int], width: int) -> Any:
    """Which windows of a text hold which of the words that matter."""
    windows = max(1, len(text) - width + 1)
    hits = [(place, number[word]) for place, word in enumerate(text) if word in number]
    places, ids = np.array(hits, np.int64).reshape(-1, 2).T
    started = places[:, None] - np.arange(min(width, len(text)))  # by windows that begin there
    held = (started >= 0) & (started < windows)
    entries = started[held], np.repeat(ids, held.sum(1))
    ones = np.ones(len(entries[0]), np.int64)
    return scipy.sparse.coo_array((ones, entries), (windows, len(number))).tocsr()
