r"""A corpus: how often each word of a vocabulary occurs in each document.

The counts are a sparse matrix, one row a document, in compressed rows: ``indices`` and ``data``
hold the words and their counts, document after document, and ``indptr[d]`` is where document ``d``
begins. A batch is made dense on its way to the model; the corpus never is.

In a folder, a corpus is ``indptr.npy``, ``indices.npy`` and ``data.npy`` (plain arrays, no pickle),
``vocabulary.json`` and ``corpus.json``. :meth:`Corpus.open` maps the arrays: of a corpus larger
than memory, only the rows that are asked for are read.
"""

from __future__ import annotations

__all__ = ["Corpus"]

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from .corpus_folder import CorpusWriter, read_folder
from .sparse_batches import dense_rows, word_totals

_CHUNK = 1 << 22  # entries at a time, where all are read


class Corpus:
    """Word counts of documents.

    Args:
        counts: A SciPy sparse matrix, one row a document, one column a word; no negative counts.
        vocabulary: The words, one for each column.
        labels: A class for each document, where there is one.
        label_names: What ``labels`` count from zero, where they have names.

    Attributes:
        indptr: Where each document begins in ``indices``, and where the last one ends.
        indices: The columns of the words, document after document.
        data: How often they occur.
        vocabulary: The words, one for each column.
        labels: The documents' classes, or ``None``.
        label_names: Names of the classes, or ``None``.

    Example:
        >>> counts = scipy.sparse.csr_array([[2, 0, 1], [0, 0, 0]])
        >>> corpus = Corpus(counts, ["tau", "rho", "pi"])
        >>> len(corpus), corpus.tokens, corpus.rows([0])
        (2, 3, tensor([[2., 0., 1.]]))
    """

    def __init__(
        self,
        counts: Any,
        vocabulary: Sequence[str],
        labels: Any = None,
        label_names: Sequence[str] | None = None,
    ) -> None:
        if not scipy.sparse.issparse(counts):
            raise TypeError(
                f"expected a SciPy sparse matrix as `counts`, but got {type(counts).__name__}."
            )
        matrix = scipy.sparse.csr_array(counts)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        _check_counts(matrix.data)
        self._set(matrix.indptr, matrix.indices, matrix.data, vocabulary, labels, label_names)
        if matrix.shape[1] != len(self.vocabulary):
            raise ValueError(
                f"expected a word for each of the {matrix.shape[1]} columns of `counts`, but got "
                f"{len(self.vocabulary)} words."
            )

    def _set(
        self,
        indptr: Any,
        indices: Any,
        data: Any,
        vocabulary: Sequence[str],
        labels: Any,
        label_names: Sequence[str] | None,
    ) -> None:
        self.indptr, self.indices, self.data = indptr, indices, data
        self.vocabulary = tuple(vocabulary)
        self.labels = None if labels is None else np.asarray(labels)
        self.label_names = None if label_names is None else tuple(label_names)
        if self.labels is not None and self.labels.shape != (len(self),):
            raise ValueError(
                f"expected a label for each of the {len(self)} documents, but got labels of shape "
                f"{self.labels.shape}."
            )

    @classmethod
    def open(cls, folder: str | Path) -> Corpus:
        """Map a corpus that :meth:`save` wrote; nothing but the vocabulary is read into memory."""
        indptr, indices, data, vocabulary, labels, names = read_folder(Path(folder))
        corpus = cls.__new__(cls)
        corpus._set(indptr, indices, data, vocabulary, labels, names)
        return corpus

    def save(self, folder: str | Path) -> None:
        """Write the corpus to a new folder, which appears when it is whole."""
        with CorpusWriter(folder) as writer:
            step = 4096
            for start in range(0, len(self), step):
                ends = self.indptr[start : start + step + 1]
                part = slice(int(ends[0]), int(ends[-1]))
                writer.append_many(np.diff(ends), self.indices[part], self.data[part])
            writer.finish(self.vocabulary, self.labels, self.label_names)

    def __len__(self) -> int:
        """How many documents there are."""
        return len(self.indptr) - 1

    def __repr__(self) -> str:
        return f"Corpus({len(self):,} documents, {self.words:,} words, {self.tokens:,} tokens)"

    @property
    def words(self) -> int:
        """How many words the vocabulary has."""
        return len(self.vocabulary)

    @property
    def shape(self) -> tuple[int, int]:
        """Documents and words."""
        return len(self), self.words

    @property
    def tokens(self) -> int:
        """How many words all documents have together."""
        return round(sum(float(chunk.sum(dtype=np.float64)) for chunk in _chunks(self.data)))

    @property
    def counts(self) -> scipy.sparse.csr_array:
        """The sparse matrix, which shares the corpus's arrays."""
        matrix = scipy.sparse.csr_array(self.shape, dtype=self.data.dtype)
        # not through the constructor, which would copy mapped arrays to change their index type
        matrix.indptr, matrix.indices, matrix.data = self.indptr, self.indices, self.data
        return matrix

    @property
    def lengths(self) -> Any:
        """How many words each document has, as an array."""
        sums = np.zeros(len(self))
        for start in range(0, len(self), 65_536):
            ends = self.indptr[start : start + 65_537]
            part = self.data[int(ends[0]) : int(ends[-1])]
            owner = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
            sums[start : start + len(ends) - 1] = np.bincount(owner, part, len(ends) - 1)
        return sums

    def rows(self, documents: Any) -> Tensor:
        """The counts of some documents, dense, ``(B, words)``."""
        where = np.asarray(documents, dtype=np.int64).reshape(-1)
        if where.size and not (-len(self) <= where.min() and where.max() < len(self)):
            raise IndexError(f"expected documents from 0 to {len(self) - 1}, but got {documents}.")
        return dense_rows(self, where % max(len(self), 1))  # (B, V)

    def take(self, documents: Any) -> Corpus:
        """A corpus of these documents, in memory."""
        where = np.asarray(documents)
        labels = None if self.labels is None else self.labels[where]
        return Corpus(self.counts[where], self.vocabulary, labels, self.label_names)

    def totals(self) -> Tensor:
        """How often each word occurs in the corpus, ``(words,)``, in double precision."""
        return word_totals(self)

    def document_frequency(self) -> Tensor:
        """In how many documents each word occurs, ``(words,)``."""
        sums = np.zeros(self.words, dtype=np.int64)
        for columns in _chunks(self.indices):
            sums += np.bincount(columns, minlength=self.words)
        return torch.from_numpy(sums)

    def unigram(self, smoothing: float = 0.0) -> Tensor:
        """The share of each word, ``(words,)``, after adding ``smoothing`` to its count."""
        totals = self.totals() + smoothing
        return (totals / totals.sum()).to(torch.get_default_dtype())


def _chunks(array: Any) -> Any:
    """Parts of a long, perhaps mapped, array; at least one, so that sums of nothing work."""
    starts = itertools.chain([0], range(_CHUNK, len(array), _CHUNK))
    return (array[start : start + _CHUNK] for start in starts)


def _check_counts(data: Any) -> None:
    if data.dtype.kind not in "uifb":
        raise TypeError(f"expected numbers as `counts`, but got {data.dtype}.")
    if len(data) and not np.isfinite(data).all():
        raise ValueError("expected finite `counts`, but some are NaN or infinite.")
    if len(data) and data.min() < 0:
        raise ValueError(f"expected `counts` of at least 0, but the least one is {data.min()}.")
