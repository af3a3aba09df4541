r"""Coherence: whether the words of a topic belong together.

With :math:`p_i` the share of documents (or windows) that have word ``i`` and :math:`p_{ij}` of
those with both, the normalised pointwise mutual information is

.. math::
    \mathrm{NPMI}_{ij} = \frac{\log \frac{p_{ij} + \epsilon}{p_i p_j}}{-\log(p_{ij} + \epsilon)},

1 for words that are always seen together, 0 for independent ones, and towards -1 for words that
never are. A topic's NPMI is the mean over pairs of its words.

C_V gives each word the vector of its NPMI with all words of the topic, and compares it with the sum
of these vectors: the mean of :math:`\cos(v_i, \sum_j v_j)` over the words.

C_V looks at directions alone: words that all avoid each other point the same way too, so that ten
unrelated rare words can score higher than a topic. Read it beside NPMI.

Both are those of gensim, so that numbers can be compared, but for two cases that gensim leaves
undefined or turns around: a word that never occurs has NPMI -1 with every word, and words that
occur in all documents have NPMI 1. gensim also loses words that occur twice in one sliding window;
with windows as wide as the documents its numbers are these. Published numbers mostly have
:math:`\epsilon = 10^{-12}`; with :math:`\epsilon = 0` a pair that is never seen together has
exactly -1.

**Chance.** In long documents any two common words occur together, whatever they are about. What a
topic's NPMI is to be compared with is that of words as frequent as its own
(:func:`npmi_by_chance`): a topic of "know", "time", "who" may have 0.15, and so do any
ten words like these.

References: Bouma, "Normalized (pointwise) mutual information in collocation extraction" (2009);
Röder, Both & Hinneburg, "Exploring the space of topic coherence measures" (WSDM 2015).
"""

__all__ = ["c_v", "npmi", "npmi_by_chance", "npmi_of_pairs"]

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .co_occurrence import CoOccurrence, Topics

_SHIFTS = (7, -7, 13, -13, 29)


def npmi(topics: Topics | CoOccurrence, corpus: Any = None, epsilon: float = 1e-12) -> Any:
    """The NPMI of each topic, an array; :func:`numpy.mean` of it is the model's.

    Args:
        topics: The words of each topic, or their counts as a :class:`.CoOccurrence`.
        corpus: Where to count, if ``topics`` are words: a corpus, or a sparse matrix.
        epsilon: What to add to the share of documents in which two words occur together.

    Example:
        >>> import scipy.sparse
        >>> counts = scipy.sparse.csr_array([[1, 1, 0], [2, 3, 0], [0, 0, 1]])
        >>> npmi([[0, 1], [0, 2]], counts, epsilon=0).round(6).tolist()
        [1.0, -1.0]
    """
    values = []
    for pairs in npmi_of_pairs(topics, corpus, epsilon):
        above = pairs[np.triu_indices(len(pairs), 1)]
        values.append(float(above.mean()) if above.size else 0.0)
    return np.asarray(values)


def npmi_by_chance(topics: Sequence[Sequence[int]], counts: Any) -> Any:
    """The NPMI that words as frequent have, for each topic (columns of the sparse ``counts``).

    It is a mean over five sets of such words.
    """
    ranking = np.argsort(-np.bincount(counts.indices, minlength=counts.shape[1]), kind="stable")
    place = np.argsort(ranking, kind="stable")
    found = [
        npmi([_beside(place[list(topic)], ranking, shift) for topic in topics], counts)
        for shift in _SHIFTS
    ]
    return np.mean(found, 0)


def _beside(places: Any, ranking: Any, shift: int) -> list[int]:
    """Other words, so many places away in the order of frequency."""
    taken: list[int] = []
    for place in places.tolist():
        other = place + shift if 0 <= place + shift < len(ranking) else place - shift
        other = min(max(other, 0), len(ranking) - 1)
        while other in taken:
            other = (other + 1) % len(ranking)
        taken.append(other)
    return [int(word) for word in ranking[taken]]


def c_v(topics: Topics | CoOccurrence, corpus: Any = None, epsilon: float = 1e-12) -> Any:
    """The C_V of each topic, an array, from 0 (or a little below) to 1.

    The measure is meant for windows of 110 words (:meth:`.CoOccurrence.of_windows`); with counts of
    whole documents it is a relative of it, so compare like with like. The arguments are those of
    :func:`npmi`.
    """
    values = []
    for vectors in npmi_of_pairs(topics, corpus, epsilon):  # (N, N), one row a word
        whole = vectors.sum(0)
        norms = np.linalg.norm(vectors, axis=1) * np.linalg.norm(whole)
        cosines = np.divide(vectors @ whole, norms, out=np.zeros(len(norms)), where=norms > 0)
        values.append(float(cosines.mean()) if len(norms) else 0.0)
    return np.asarray(values)


def npmi_of_pairs(
    topics: Topics | CoOccurrence, corpus: Any = None, epsilon: float = 1e-12
) -> Iterator[Any]:
    """The NPMI of each pair of a topic's words, ``(N, N)``; always finite, from -1 to 1.

    The arguments are those of :func:`npmi`.
    """
    if not isinstance(topics, CoOccurrence):
        if corpus is None:
            raise TypeError("expected a `corpus` to count the words of `topics` in, but got none.")
        topics = CoOccurrence.of_documents(topics, corpus)
    if not epsilon >= 0:
        raise ValueError(f"expected `epsilon` of at least 0, but got {epsilon}.")
    if topics.total < 1:
        raise ValueError("expected documents to count in, but there are none.")
    for joint in topics.joint:
        both = joint / topics.total
        expected = np.outer(both.diagonal(), both.diagonal())
        smoothed = both + epsilon
        values = np.full(both.shape, -1.0)  # for a word that never occurs, and for a pair without ε
        fine = (expected > 0) & (smoothed > 0) & (both < 1)
        values[fine] = np.log(smoothed[fine] / expected[fine]) / -np.log(smoothed[fine])
        values[both >= 1] = 1.0
        yield np.clip(values, -1.0, 1.0)
