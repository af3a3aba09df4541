"""Word counts as text: the ``.feat`` files of NVDM (Miao, Yu & Blunsom, ICML 2016).

One document a line, ``label id:count id:count ...``; ids count from one and are line numbers of the
vocabulary file, whose lines are a word and, perhaps, its frequency.
"""

from __future__ import annotations

__all__ = ["read_feat", "read_vocabulary", "stream_feat"]

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse

from .corpus import Corpus

FeatLine = tuple[int, list[int], list[int]]
"""A label, the columns of the words (from zero), their counts."""


def read_vocabulary(path: str | Path) -> list[str]:
    """The words of a vocabulary file: the first word of each line."""
    path = Path(path)
    words: list[str] = []
    seen: dict[str, int] = {}
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                parts = line.decode("utf-8").split()
            except UnicodeDecodeError as error:
                raise ValueError(f"line {number} of {path} is not UTF-8 text: {error}.") from None
            if not parts:
                raise ValueError(f"expected a word in line {number} of {path}, but it is empty.")
            word = parts[0]
            if word in seen:
                raise ValueError(
                    f"expected each word once in {path}, but {word!r} is in lines {seen[word]} and "
                    f"{number}."
                )
            seen[word] = number
            words.append(word)
    if not words:
        raise ValueError(f"expected words in {path}, but the file is empty.")
    return words


def stream_feat(path: str | Path, words: int) -> Iterator[FeatLine]:
    """Each document of a ``.feat`` file: label, columns from zero, counts; blank lines are none.

    Args:
        path: The file.
        words: How many words the vocabulary has.

    Raises:
        ValueError: For a line that is not of this form; the message has its number.
    """
    path = Path(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            label, *pairs = line.split() or [b""]
            if not label:
                continue
            try:
                number_of_label, (columns, counts) = int(label), _parse(pairs)
            except ValueError:
                raise ValueError(
                    f"expected 'label id:count ...' in line {number} of {path}, but got "
                    f"{line[:60].decode(errors='replace').strip()!r}."
                ) from None
            low, high = min(columns, default=0), max(columns, default=0)
            if low < 0 or high >= words or min(counts, default=0) < 0:
                raise ValueError(
                    f"expected ids from 1 to {words} and counts of at least 0 in line {number} of "
                    f"{path}, but got ids from {low + 1} to {high + 1} and a least count of "
                    f"{min(counts, default=0)}."
                )
            yield number_of_label, columns, counts


def read_feat(
    path: str | Path, vocabulary: Sequence[str], label_names: Sequence[str] | None = None
) -> Corpus:
    """A ``.feat`` file as a corpus in memory.

    Args:
        path: The file.
        vocabulary: The words; they give the number of columns.
        label_names: What the labels count.
    """
    labels, columns, counts, ends = [], [], [], [0]
    for label, ids, numbers in stream_feat(path, len(vocabulary)):
        labels.append(label)
        columns.append(ids)
        counts.append(numbers)
        ends.append(ends[-1] + len(ids))
    if not labels:
        raise ValueError(f"expected documents in {path}, but the file is empty.")
    flat = [np.fromiter(itertools.chain.from_iterable(x), np.int32, ends[-1])
            for x in (columns, counts)]  # fmt: skip
    shape = (len(labels), len(vocabulary))
    matrix = scipy.sparse.csr_array(
        (flat[1].astype(np.float32), flat[0], np.asarray(ends, np.int32)), shape=shape
    )
    return Corpus(matrix, vocabulary, labels, label_names)


def _parse(pairs: list[bytes]) -> tuple[list[int], list[int]]:
    if not pairs:
        return [], []
    ids, counts = zip(*(pair.split(b":") for pair in pairs), strict=True)
    return [int(number) - 1 for number in ids], [int(number) for number in counts]
