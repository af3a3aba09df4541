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

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from .corpus_folder import read_folder, write_folder
from .sparse_rows import check_counts, dense_rows, word_totals

_BLOCK = 4096  # documents at a time, where all are read


class Corpus:
    """Word counts of documents.

    Args:
        counts: A matrix, most often one of SciPy's sparse ones: a row for each document, a column
            for each word, whole numbers from 0 to 2²⁴.
        vocabulary: The words, one for each column.
        labels: A class for each document, where there is one.
        label_names: What ``labels`` count from zero, where they have names.

    ``counts`` is kept as a sparse matrix by rows, and its ``indptr``, ``indices`` and ``data``.

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
        matrix = scipy.sparse.csr_array(counts)
        if not matrix.has_canonical_format:
            matrix = matrix.copy()
            matrix.sum_duplicates()
        check_counts(matrix.data, "`counts`")
        self._set(matrix, vocabulary, labels, label_names)

    def _set(self, counts: Any, vocabulary: Any, labels: Any, names: Any) -> None:
        self.counts = counts
        self.indptr, self.indices, self.data = counts.indptr, counts.indices, counts.data
        self.vocabulary = tuple(vocabulary)
        self.labels = None if labels is None else np.asarray(labels)
        self.label_names = None if names is None else tuple(names)
        if counts.shape[1] != len(self.vocabulary):
            raise ValueError(
                f"expected a word for each of the {counts.shape[1]} columns of `counts`, but got "
                f"{self.words} words."
            )
        if self.labels is not None and self.labels.shape != (len(self),):
            shape = self.labels.shape
            raise ValueError(
                f"expected a label for each of the {len(self)} documents, but got {shape}."
            )

    @classmethod
    def open(cls, folder: str | Path) -> Corpus:
        """Map a corpus that :meth:`save` wrote; nothing but the vocabulary is read into memory."""
        corpus = cls.__new__(cls)
        corpus._set(*read_folder(Path(folder)))  # without a look at all counts
        return corpus

    def save(self, folder: str | Path) -> None:
        """Write the corpus to a new folder, which appears when it is whole."""
        write_folder(folder, self._blocks(), self.vocabulary, self.labels, self.label_names)

    def __len__(self) -> int:
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
        return round(float(self.totals().sum()))

    @property
    def lengths(self) -> Any:
        """How many words each document has, as an array."""
        sums = (block.astype(np.float64).sum(1) for block in self._blocks())
        return np.concatenate([np.zeros(0), *sums])

    def rows(self, documents: Any) -> Tensor:
        """The counts of some documents, dense, ``(B, words)``."""
        return dense_rows(self, np.arange(len(self))[np.asarray(documents, np.int64)])

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
        for block in self._blocks():
            sums += np.bincount(block.indices, minlength=self.words)
        return torch.from_numpy(sums)

    def unigram(self, smoothing: float = 0.0) -> Tensor:
        """The share of each word, ``(words,)``, after adding ``smoothing`` to its count."""
        totals = self.totals() + smoothing
        return (totals / totals.sum()).to(torch.get_default_dtype())

    def _blocks(self) -> Iterator[Any]:
        """Successive documents, as sparse matrices in memory."""
        return (self.counts[start : start + _BLOCK] for start in range(0, len(self), _BLOCK))
