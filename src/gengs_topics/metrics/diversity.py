r"""Diversity: whether topics differ from each other.

*Topic diversity* (Dieng, Ruiz & Blei, TACL 2020) is the share of different words among the leading
words of all topics.

*Rank-biased overlap* (Webber, Moffat & Zobel, ACM TOIS 2010) compares two rankings of depth
:math:`k`, the first places counting most. With :math:`X_d` the number of words that the first
:math:`d` places have in common, extrapolated beyond :math:`k`,

.. math::
    \mathrm{RBO} = \frac{X_k}{k} p^k + \frac{1 - p}{p} \sum_{d=1}^k \frac{X_d}{d} p^d .

*Inverted RBO* (Bianchi, Terragni & Hovy, ACL 2021) is one minus its mean over pairs of topics: 1 if
no two topics share a word, 0 if all are the same.
"""

__all__ = ["inverted_rbo", "topic_diversity"]

from collections.abc import Hashable, Sequence

import numpy as np
import scipy.sparse


def topic_diversity(topics: Sequence[Sequence[Hashable]]) -> float:
    """The share of different words among all words of the topics.

    Example:
        >>> topic_diversity([["a", "b"], ["a", "c"]])
        0.75
    """
    words = [word for topic in topics for word in topic]
    if not words:
        raise ValueError("expected topics with words, but got none.")
    return len(set(words)) / len(words)


def inverted_rbo(topics: Sequence[Sequence[Hashable]], p: float = 0.9) -> float:
    """One minus the mean rank-biased overlap of all pairs of topics; 1 for a single topic.

    Args:
        topics: The words of each topic, the most important first; equally many for each.
        p: How slowly the weight of a place falls, between 0 and 1.

    Example:
        >>> inverted_rbo([["a", "b"], ["c", "d"]]), inverted_rbo([["a", "b"], ["a", "b"]])
        (1.0, 0.0)
    """
    if not 0 < p < 1:
        raise ValueError(f"expected `p` between 0 and 1, but got {p}.")
    depths = {len(topic) for topic in topics}
    if len(depths) != 1 or depths == {0}:
        raise ValueError("expected topics with equally many words, and at least one.")
    if any(len(set(topic)) < len(topic) for topic in topics):
        raise ValueError("expected different words in each topic.")
    if len(topics) == 1:
        return 1.0
    (k,) = depths
    number: dict[Hashable, int] = {}
    columns = [[number.setdefault(word, len(number)) for word in topic] for topic in topics]
    places = np.arange(1, k + 1)
    weights = (1 - p) / p * p**places / places
    weights[-1] += p**k / k
    # X_d for all pairs at once: at depth d, a topic is a row with d ones
    count = len(topics)
    overlap = np.zeros((count, count))
    for depth, weight in zip(places, weights, strict=True):
        flat = np.concatenate([row[:depth] for row in columns])
        ends = np.arange(0, count * depth + 1, depth)
        ones = scipy.sparse.csr_array((np.ones(len(flat)), flat, ends), (count, len(number)))
        overlap += weight * (ones @ ones.T).toarray()
    pairs = np.triu_indices(count, 1)
    return float(np.clip(1 - overlap[pairs].mean(), 0.0, 1.0))
