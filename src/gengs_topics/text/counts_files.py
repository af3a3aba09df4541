"""Files of word counts: ``.npz``, ``.feat``, and the vocabulary that names their columns.

``.npz`` is a sparse matrix as ``scipy.sparse.save_npz`` writes it. ``.feat`` is the text format of
NVDM (Miao, Yu & Blunsom, ICML 2016): one document a line, ``label id:count id:count ...``; ids
count from one and are line numbers of the vocabulary file, whose lines are a word and, perhaps, its
frequency.
"""

__all__ = ["read_counts", "read_feat", "read_vocabulary", "stream_feat"]

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import scipy.sparse

from gengs_experiments.data.sparse_rows import LARGEST, check_counts

from .corpus import Corpus
from .counting import matrix
from .documents import numbered_lines


def read_counts(path: str | Path) -> scipy.sparse.csr_array:
    """The matrix of a ``.npz`` file, by rows; one with Python objects or no counts is refused."""
    with Path(path).open("rb") as file:
        try:
            counts = scipy.sparse.csr_array(scipy.sparse.load_npz(file))  # never unpickles
            counts.check_format(full_check=True)
        except Exception as error:  # numpy, SciPy and zip files have several kinds each
            kind = "a sparse matrix of scipy.sparse.save_npz"
            raise ValueError(f"{path} cannot be read as {kind} ({error}).") from None
    check_counts(counts.data, str(path))
    return counts.astype(np.float32)


def read_vocabulary(path: str | Path) -> list[str]:
    """The words of a vocabulary file: the first word of each line."""
    lines: dict[str, int] = {}
    for number, line in numbered_lines(Path(path)):
        word = line.split(maxsplit=1)[0] if line.strip() else ""
        if not word:
            raise ValueError(f"expected a word in line {number} of {path}, but it is empty.")
        if lines.setdefault(word, number) != number:
            raise ValueError(
                f"expected each word once in {path}, but {word!r} is in lines {lines[word]} and "
                f"{number}."
            )
    if not lines:
        raise ValueError(f"expected words in {path}, but the file is empty.")
    return list(lines)


def stream_feat(path: str | Path, words: int) -> Iterator[tuple[int, dict[int, int]]]:
    """The label of each document of a ``.feat`` file, and its counts by column, below ``words``."""
    for number, line in numbered_lines(Path(path), errors="replace"):
        label, *pairs = line.split() or [""]
        if not label:
            continue
        try:
            document = int(label)
            numbers = [(int(word) - 1, int(n)) for word, n in (pair.split(":") for pair in pairs)]
        except ValueError:
            raise ValueError(
                f"expected 'label id:count ...', whole numbers, in line {number} of {path}, but "
                f"got {line[:60].strip()!r}."
            ) from None
        counts: Counter[int] = Counter()
        for pair, (column, count) in zip(pairs, numbers, strict=True):
            if not (0 <= column < words and 0 <= count <= LARGEST):
                raise ValueError(
                    f"expected ids from 1 to {words} and counts from 0 to {LARGEST:,} in line "
                    f"{number} of {path}, but got {pair[:40]!r}."
                )
            counts[column] += count
        yield document, dict(sorted(counts.items()))


def read_feat(
    path: str | Path, vocabulary: Sequence[str], label_names: Sequence[str] | None = None
) -> Corpus:
    """A ``.feat`` file, with the words of its columns and what its labels count, in memory."""
    lines = list(stream_feat(path, len(vocabulary)))
    if not lines:
        raise ValueError(f"expected documents in {path}, but the file is empty.")
    labels, documents = zip(*lines, strict=True)
    return Corpus(matrix(documents, len(vocabulary)), vocabulary, labels, label_names)
