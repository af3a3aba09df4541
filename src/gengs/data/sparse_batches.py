"""Shuffled batches of documents from sparse counts, as a function of the step.

The corpus stays sparse: a batch gathers its rows and is made dense alone. Anything with compressed
rows will do: a SciPy matrix, a :class:`gengs.data.corpus.Corpus`, arrays mapped from a file. Of a
mapped corpus only the rows of the batch are read, so it may be larger than memory.

Reading single rows from all over a disk is slow. With ``block`` rows are taken in blocks of
neighbours: the blocks of an epoch come in random order, and the rows of ``window`` successive
blocks are mixed. With ``block=1`` every order of the documents is equally likely.
"""

from __future__ import annotations

__all__ = ["CompressedRows", "SparseBatches", "dense_rows", "word_totals"]

from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from .batches import keyed_generator

# entries that are looked at together when all of a corpus is read
_CHUNK = 1 << 20


class CompressedRows(Protocol):
    """A sparse matrix by rows: row d has ``data`` in columns ``indices``, from ``indptr[d]`` on."""

    indptr: Any
    indices: Any
    data: Any

    @property
    def shape(self) -> tuple[int, int]: ...


def dense_rows(counts: CompressedRows, rows: Any) -> Tensor:
    """Some rows, dense: ``(B, V)`` in the default floating type.

    Raises:
        ValueError: For a negative count, NaN or infinity, or a column that does not exist.

    Example:
        >>> import scipy.sparse
        >>> dense_rows(scipy.sparse.csr_array([[0, 2], [1, 0], [3, 4]]), [2, 0])
        tensor([[3., 4.],
                [0., 2.]])
    """
    rows = np.asarray(rows, dtype=np.int64)
    words = counts.shape[1]
    begin = np.asarray(counts.indptr[rows], dtype=np.int64)
    sizes = np.asarray(counts.indptr[rows + 1], dtype=np.int64) - begin
    ends = np.cumsum(sizes)
    where = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begin - ends + sizes, sizes)
    columns = np.asarray(counts.indices[where], dtype=np.int64)
    values = np.asarray(counts.data[where])
    if values.size:
        if not np.isfinite(values).all() or values.min() < 0:
            raise ValueError(
                "expected finite counts of at least 0, but got "
                f"{values[~(np.isfinite(values) & (values >= 0))][0]}."
            )
        if columns.min() < 0 or columns.max() >= words:
            raise ValueError(f"expected columns from 0 to {words - 1}, but got {columns.max()}.")
    dense = torch.zeros(len(rows) * words)
    flat = np.repeat(np.arange(len(rows)) * words, sizes) + columns
    # a row may name a word twice
    dense.index_add_(0, torch.from_numpy(flat), torch.from_numpy(values).to(dense.dtype))
    return dense.view(len(rows), words)


def word_totals(counts: CompressedRows) -> Tensor:
    """How often each word occurs, ``(V,)`` in double precision, read a part at a time."""
    totals = np.zeros(counts.shape[1])
    for start in range(0, len(counts.data), _CHUNK):
        part = slice(start, start + _CHUNK)
        totals += np.bincount(counts.indices[part], counts.data[part], counts.shape[1])
    return torch.from_numpy(totals)


class SparseBatches:
    """Documents as dense batches ``(B, V)``.

    Args:
        counts: The corpus, by rows.
        batch_size: Documents in a step, over all processes.
        seed: The seed of the order.
        rows: Take these documents only.
        shuffle: Mix the documents anew in each epoch. Without, an epoch has all documents in their
            order, and its last batch may be smaller.
        block: Take neighbouring rows together, for a corpus on a slow disk.
        window: How many blocks are mixed with one another.

    Example:
        >>> import scipy.sparse
        >>> data = SparseBatches(scipy.sparse.eye_array(10, format="csr"), batch_size=4)
        >>> len(data), tuple(data.batch(7).shape)
        (2, (4, 10))
    """

    def __init__(
        self,
        counts: CompressedRows,
        batch_size: int,
        seed: int = 0,
        *,
        rows: Any = None,
        shuffle: bool = True,
        block: int = 1,
        window: int = 256,
    ) -> None:
        self.counts, self.seed, self.shuffle = counts, seed, shuffle
        self.rows = None if rows is None else np.asarray(rows, dtype=np.int64)
        self.documents = counts.shape[0] if self.rows is None else len(self.rows)
        if not 1 <= batch_size <= self.documents:
            raise ValueError(
                f"expected a `batch_size` from 1 to the {self.documents} documents, but got "
                f"{batch_size}."
            )
        for name, number in (("block", block), ("window", window)):
            if number < 1:
                raise ValueError(f"expected at least 1 for `{name}`, but got {number}.")
        self.batch_size, self.block, self.window = batch_size, block, window
        self._order: tuple[int, Any] | None = None  # an epoch and its documents

    def __len__(self) -> int:
        """Batches per epoch."""
        whole, rest = divmod(self.documents, self.batch_size)
        return whole + (rest > 0 and not self.shuffle)

    def batch(self, step: int, rank: int = 0, world: int = 1) -> Tensor:
        """The documents of process ``rank`` of ``world`` in the batch of a step."""
        epoch, place = divmod(step, len(self))
        order = self.order(epoch)
        return dense_rows(
            self.counts, order[place * self.batch_size : (place + 1) * self.batch_size][rank::world]
        )

    def epoch(self, epoch: int) -> Iterator[Tensor]:
        """The batches of one epoch."""
        return (self.batch(epoch * len(self) + place) for place in range(len(self)))

    def order(self, epoch: int) -> Any:
        """The documents of an epoch, in their order."""
        if self._order is None or self._order[0] != epoch:
            order = np.arange(self.documents)
            if self.shuffle:
                generator = keyed_generator("documents", self.seed, epoch)
                order = self._mixed(generator)
            self._order = epoch, order if self.rows is None else self.rows[order]
        return self._order[1]

    def _mixed(self, generator: torch.Generator) -> Any:
        if self.block == 1:
            return torch.randperm(self.documents, generator=generator).numpy()
        blocks = torch.randperm(-(-self.documents // self.block), generator=generator)
        order = (blocks[:, None] * self.block + torch.arange(self.block)).flatten()
        order = order[order < self.documents]
        for part in order.split(self.block * self.window):
            part.copy_(part[torch.randperm(len(part), generator=generator)])
        return order.numpy()
