r"""Where the topics of a fit start: at those of a non-negative factorisation of tf-idf.

NMF finds themes in a moment, and a network that starts from them needs a fraction of the steps. Its
topics are turned into word distributions :math:`P_k`, the mean frequencies of the documents that
have them, and latent k starts as the direction that leads there from the unigram distribution u,

.. math:: R_{kw} = \frac{1}{3 \sqrt\lambda} \log \frac{(P_{kw} + u_w) / 2}{u_w},

so that a document with an intensity of three deviations above the prior's mean has the words of the
topic. The mixture with u bounds the entries.

**Near-copies share a vote.** The best factorisation of a hundred texts, 24 of which are one licence,
spends a topic on these 24. Each document counts for :math:`1 / \sum_e \cos(d, e)^6`: 24 copies
count like one text, and texts of one theme, whose cosines are far below one, count fully.

References:
    | Learning the parts of objects by non-negative matrix factorization (Lee & Seung, 1999)
"""

__all__ = ["start_topics", "theme_words"]

import os
import warnings
from typing import Any

import numpy as np
import scipy.sparse
import torch
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer

_DOCUMENTS = 4_000
"""At most so many are looked at, spread evenly over the corpus."""
_ITERATIONS, _STARTS = 40, 2
_ALIKE = 6
_STRONG = float(os.environ.get("GS_STRONG", 3.0))


def theme_words(documents: Any, topics: int, seed: int) -> Any:
    """The words' frequencies in each of so many themes, ``(K, V)``; fewer where there are fewer.

    Args:
        documents: Counts, a SciPy matrix by rows.
        topics: How many themes to look for.
        seed: Of the random starts.
    """
    counts = scipy.sparse.csr_array(documents, dtype=np.float64)
    counts = counts[np.diff(counts.indptr) > 0]
    topics = min(topics, *counts.shape)
    weights = scipy.sparse.csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(counts))
    votes = 1 / _sums_of_cosines(weights)
    voting = scipy.sparse.diags_array(np.sqrt(votes / votes.mean())) @ weights
    best, found = np.inf, None
    for start in range(_STARTS if counts.shape[0] < 1000 else 1):
        nmf = NMF(
            topics, init="random" if start else "nndsvda", random_state=seed, max_iter=_ITERATIONS
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            nmf.fit(voting)
        if nmf.reconstruction_err_ < best:
            best, found = nmf.reconstruction_err_, nmf
    theta = found.transform(weights)  # (M, K)
    theta = theta / np.maximum(theta.sum(1, keepdims=True), 1e-12)
    theta = theta**2
    lengths = np.asarray(counts.sum(1)).ravel()
    shares = scipy.sparse.diags_array(1 / lengths) @ counts
    words = (shares.T @ (theta * votes[:, None])).T
    return words / np.maximum(words.sum(1, keepdims=True), 1e-12)


def _sums_of_cosines(rows: Any) -> Any:
    """How many documents like it each has, itself included, by high powers of cosines."""
    found = []
    for start in range(0, rows.shape[0], 500):
        alike = rows[start : start + 500] @ rows.T
        alike.data **= _ALIKE
        found.append(np.asarray(alike.sum(1)).ravel())
    return np.maximum(np.concatenate(found), 1.0)


@torch.no_grad()
def start_topics(network: Any, counts: Any, seed: int) -> None:
    """Let the topics of a new network start from those of an NMF."""
    rows = np.arange(counts.shape[0])[:: -(-counts.shape[0] // _DOCUMENTS)]
    documents = scipy.sparse.csr_array(getattr(counts, "counts", counts)[rows])
    weight, unigram = network.decoder.weight, network.decoder.bias.softmax(-1)
    words = torch.from_numpy(theme_words(documents, len(weight), seed)).to(weight)
    found = ((words + unigram) / 2 / unigram).log() / (_STRONG * network.decoder.scale)
    weight[: len(found)] = found
