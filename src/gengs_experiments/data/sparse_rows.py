"""Rows of a sparse matrix of counts, made dense where they are needed; which numbers are counts."""

__all__ = ["LARGEST", "CompressedRows", "check_counts", "dense_rows"]

from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

LARGEST = 1 << 24
"""The largest count: single precision has every whole number up to here."""


class CompressedRows(Protocol):
    """A sparse matrix by rows: row d has ``data`` in columns ``indices``, from ``indptr[d]`` on."""

    indptr: Any
    indices: Any
    data: Any

    @property
    def shape(self) -> tuple[int, int]: ...


def check_counts(values: Any, where: str, whole: bool = True) -> None:
    """Refuse what is no count: below 0, above ``LARGEST``, NaN, or (if ``whole``) a fraction.

    ``where`` says in the message what holds them.
    """
    if values.dtype.kind not in "uifb":
        raise ValueError(f"expected counts of words in {where}, but got {values.dtype}.")
    right = (values >= 0) & (values <= LARGEST)
    if whole and values.dtype.kind == "f":
        right &= np.trunc(values) == values
    if not right.all():
        wrong = values[~right][0]
        hint = "; weights such as tf-idf are no counts" if 0 < wrong < LARGEST else ""
        raise ValueError(
            f"expected counts of words in {where}, {'whole ' if whole else ''}numbers from 0 to "
            f"{LARGEST:,}, but got {wrong:g}{hint}."
        )


def dense_rows(counts: CompressedRows, rows: Any) -> Tensor:
    """Some rows, dense: ``(B, V)`` in the default floating type; refused if they are no counts."""
    rows = np.asarray(rows, dtype=np.int64)
    words = counts.shape[1]
    begin = np.asarray(counts.indptr[rows], dtype=np.int64)
    sizes = np.asarray(counts.indptr[rows + 1], dtype=np.int64) - begin
    ends = np.cumsum(sizes)
    where = np.arange(ends[-1] if len(ends) else 0) + np.repeat(begin - ends + sizes, sizes)
    columns = np.asarray(counts.indices[where], dtype=np.int64)
    values = np.asarray(counts.data[where])
    check_counts(values, "each document", whole=False)
    if columns.size and (columns.min() < 0 or columns.max() >= words):
        raise ValueError(f"expected columns from 0 to {words - 1}, but got {columns.max()}.")
    dense = torch.zeros(len(rows) * words)
    flat = np.repeat(np.arange(len(rows)) * words, sizes) + columns
    # a row may name a word twice
    dense.index_add_(0, torch.from_numpy(flat), torch.from_numpy(values).to(dense.dtype))
    return dense.view(len(rows), words)
