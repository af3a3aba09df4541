r"""How much each document counts: in the loss, and in the words' frequencies to begin with.

With ``"tokens"`` every document counts with all its words, :math:`v_d = 1`: the evidence lower
bound of the corpus, which long documents dominate. With ``"documents"`` every document counts the
same, :math:`v_d = \bar N / N_d`: then training minimises what the per-document perplexity, the
number that papers print, measures. The model and its bound are the same.

One document of a million words must not spoil what is learned from the others. The typical length
:math:`\bar N` is a mean of lengths that are cut at ten times their median; with ``"tokens"`` no
document counts for more than ten typical ones; and in the frequencies to begin with, documents have
the weights that they have in the loss.
"""

__all__ = ["SHORT", "TopicWeights", "document_weights", "starting_shares", "typical_length"]

from collections.abc import Iterator
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from gengs_experiments.data.sparse_rows import CompressedRows

TopicWeights = Literal["documents", "tokens"]
"""What counts the same in the training loss."""

SHORT = 15
"""Words: documents that are typically shorter leave their topics open."""

_CUT = 10
_CHUNK = 1 << 16


def document_weights(lengths: Tensor, kind: TopicWeights, typical: float) -> Tensor:
    """What the loss of documents of these lengths is multiplied with, ``(B,)``."""
    if kind not in get_args(TopicWeights):
        options = " or ".join(get_args(TopicWeights))
        raise ValueError(f"expected `weigh` to be {options}, but got {kind!r}.")
    ratio = typical / lengths.clamp_min(1e-6)
    return (_CUT * ratio).clamp_max(1.0) if kind == "tokens" else ratio.where(lengths > 0, 1.0)


def typical_length(counts: CompressedRows, rows: Any = None) -> float:
    """The mean length of documents (these ``rows``, or all), none more than ten medians."""
    found = [sums for _, _, sums in _parts(counts)]
    lengths = np.concatenate(found) if found else np.zeros(0)
    lengths = lengths if rows is None else lengths[np.asarray(rows)]
    filled = lengths[lengths > 0]
    return float(np.minimum(filled, _CUT * np.median(filled)).mean()) if len(filled) else 1.0


def starting_shares(counts: CompressedRows, kind: TopicWeights) -> Tensor:
    """The words' frequencies ``(V,)``, as if each had occurred half a time more often."""
    totals, typical = np.zeros(counts.shape[1]), typical_length(counts)
    for entries, owner, sums in _parts(counts):
        weights = document_weights(torch.from_numpy(sums), kind, typical).numpy()
        values = counts.data[entries] * weights[owner]
        totals += np.bincount(counts.indices[entries], values, counts.shape[1])
    totals += 0.5  # no word is impossible
    return torch.from_numpy(totals / totals.sum()).to(torch.get_default_dtype())


def _parts(counts: CompressedRows) -> Iterator[tuple[slice, Any, Any]]:
    """Some documents at a time: their entries, the document of each entry, and their lengths."""
    for start in range(0, counts.shape[0], _CHUNK):
        ends = np.asarray(counts.indptr[start : start + _CHUNK + 1], dtype=np.int64)
        entries = slice(int(ends[0]), int(ends[-1]))
        owner = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        yield entries, owner, np.bincount(owner, counts.data[entries], len(ends) - 1)
