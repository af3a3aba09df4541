r"""A corpus: how often each word of a vocabulary occurs in each document.

The counts are a sparse matrix, one row a document, in compressed rows: ``indices`` and ``data``
hold the words and their counts, document after document, and ``indptr[d]`` is where document ``d``
begins. A batch is made dense on its way to the model; the corpus never is.

In a folder, a corpus is ``indptr.npy``, ``indices.npy`` and ``data.npy`` (plain arrays, no pickle),
``vocabulary.json`` and ``corpus.json``. It is written block by block, under a temporary name until
all is whole: whoever finds the folder finds a complete corpus. :meth:`Corpus.open` maps the arrays:
of a corpus larger than memory, only the rows that are asked for are read.
"""

from __future__ import annotations

__all__ = ["Corpus", "write_folder"]

import json
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from gengs_experiments.data.sparse_rows import check_counts, dense_rows
from gengs_experiments.runs.atomic import temporary_name, write_atomically

_BLOCK = 4096  # documents at a time, where all are read
_KIND = {"format": "gengs corpus", "version": 1}
_ARRAYS = {"indptr": "<i8", "indices": "<i4", "data": "<f4"}
_HEADER = 128  # bytes: numpy pads the header of such an array, so that any length fits into it


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
        folder = Path(folder)
        if not (folder / "corpus.json").is_file():
            raise ValueError(f"{folder} is not the folder of a corpus: no corpus.json.")
        facts = _part(folder, "corpus.json")
        if not isinstance(facts, dict) or not _KIND.items() <= facts.items():
            kind = "; ".join(f"{name}: {value}" for name, value in _KIND.items())
            raise ValueError(f"{folder / 'corpus.json'} does not describe a corpus ({kind}).")
        vocabulary = list(_part(folder, "vocabulary.json"))
        indptr, indices, data = (_part(folder, f"{name}.npy") for name in _ARRAYS)
        labels = _part(folder, "labels.npy") if (folder / "labels.npy").exists() else None
        sizes = {"documents": len(indptr) - 1, "words": len(vocabulary), "nonzeros": len(data)}
        if not (sizes.items() <= facts.items() and len(data) == len(indices) == indptr[-1]):
            raise ValueError(f"the corpus in {folder} is damaged: its parts do not fit together.")
        counts = scipy.sparse.csr_array((len(indptr) - 1, len(vocabulary)), dtype=data.dtype)
        # Not through the constructor, which would copy mapped arrays. SciPy wants both kinds of
        # index to be of one type, and would copy the longer array for that, too.
        counts.indptr = indptr.astype(np.int32) if len(data) < 1 << 31 else indptr
        counts.indices, counts.data = indices, data
        corpus = cls.__new__(cls)  # without a look at all counts
        corpus._set(counts, vocabulary, labels, facts.get("label_names"))
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
        sums = np.zeros(self.words)
        for block in self._blocks():
            check_counts(block.data, "each document", whole=False)
            sums += np.bincount(block.indices, block.data, self.words)
        return torch.from_numpy(sums)

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


def write_folder(
    folder: str | Path,
    blocks: Iterable[Any],
    vocabulary: Sequence[str],
    labels: Any = None,
    label_names: Sequence[str] | None = None,
) -> None:
    """Write a corpus to a new or empty folder, which appears when it is whole.

    ``blocks`` are the counts of successive documents, as sparse matrices by rows.
    """
    folder = Path(folder)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise FileExistsError(f"expected a new folder for the corpus, but {folder} exists.")
    temporary = temporary_name(folder)
    shutil.rmtree(temporary, ignore_errors=True)  # what a killed process left
    temporary.mkdir(parents=True)
    documents = entries = 0
    try:
        with ExitStack() as stack:
            paths = [temporary / f"{name}.npy" for name in _ARRAYS]
            files = [stack.enter_context(path.open("wb")) for path in paths]
            for file in files:
                file.write(bytes(_HEADER))
            files[0].write(bytes(8))  # where the first document begins
            for rows in blocks:
                parts = rows.indptr[1:].astype(np.int64) + entries, rows.indices, rows.data
                for part, dtype, file in zip(parts, _ARRAYS.values(), files, strict=True):
                    part.astype(dtype).tofile(file)
                documents, entries = documents + rows.shape[0], entries + rows.nnz
            lengths = documents + 1, entries, entries
            for file, dtype, length in zip(files, _ARRAYS.values(), lengths, strict=True):
                file.seek(0)
                facts = {"descr": dtype, "fortran_order": False, "shape": (length,)}
                np.lib.format.write_array_header_1_0(file, facts)
                file.flush()
                os.fsync(file.fileno())
        if labels is not None:
            np.save(temporary / "labels.npy", np.asarray(labels, np.int64))
        sizes = {"documents": documents, "words": len(vocabulary), "nonzeros": entries}
        names = {"label_names": None if label_names is None else list(label_names)}
        described = {"vocabulary": list(vocabulary), "corpus": {**_KIND, **sizes, **names}}
        for name, content in described.items():
            text = json.dumps(content, indent=0) + "\n"
            write_atomically(temporary / f"{name}.json", text.encode())
        temporary.rename(folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _part(folder: Path, name: str) -> Any:
    try:
        if name.endswith(".json"):
            return json.loads((folder / name).read_bytes())
        return np.load(folder / name, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"the corpus in {folder} is damaged: {name}: {error}") from None
