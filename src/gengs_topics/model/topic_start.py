r"""Where a fit starts: at the topics of a non-negative factorisation of tf-idf (NMF).

NMF finds themes in a moment. A network that starts from them needs half of the steps. Each of
NMF's topics becomes a distribution :math:`P_k` of words, the mean frequencies in the documents that
have it, and latent k starts as the direction that leads there from the words' frequencies u,

.. math:: R_{kw} = \frac{1}{3 \sqrt\lambda} \log \frac{(P_{kw} + u_w) / 2}{u_w},

so that a document whose intensity is three deviations above the prior's mean has the words of the
topic. (The mixture with u bounds the entries.)

**The encoder** starts from the slope of a document's log-likelihood in each latent, where all are
at the prior's mean: :math:`\sum_w x_w (R_{kw} - E_u[R_k])`, with log(1 + x) for x. Its first
features are these, standardised, and the posteriors' means follow them. That is for few documents
(up to a thousand), which make few steps. Many have the time to find better directions
(:mod:`.varimax`), and complete documents better without; and short ones, of a dozen words, do not
carry as many topics as one asks for.

**Near-copies share a vote.** The best factorisation of a hundred texts, 24 of which are one and the
same licence, spends a topic on these. A document counts for :math:`1 / \sum_e \cos(d, e)^6`: 24
copies count like one text, and texts of one theme, whose cosines are well below one, count fully.

References:
    | Learning the parts of objects by non-negative matrix factorization (Lee & Seung, 1999)
"""

__all__ = ["FEW", "start_topics", "theme_words"]

import warnings
from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array, diags_array
from sklearn.decomposition import NMF
from sklearn.exceptions import ConvergenceWarning
from sklearn.feature_extraction.text import TfidfTransformer
from torch import Tensor, nn

from .bag_encoder import BagLinear
from .document_weights import SHORT, typical_length
from .topic_network import TopicNetwork

_DOCUMENTS = 4_000
"""At most so many are looked at, spread evenly over the corpus."""
FEW = 1_000
"""Up to so many documents, the encoder starts from NMF too, topics keep their directions, and of
two factorisations, from different starts, the better one is taken."""
_ITERATIONS = 40
_ALIKE = 6
_STRONG = 3.0
_GAIN = 0.8
"""A standardised score of one moves a posterior's mean by about one deviation of the prior."""


@torch.no_grad()
def start_topics(network: TopicNetwork, counts: Any, seed: int) -> None:
    """Let the topics of a new network start from those of an NMF.

    Args:
        network: With a decoder whose bias are the words' log-frequencies.
        counts: Documents, a SciPy matrix by rows or a corpus.
        seed: Of NMF.
    """
    rows = np.arange(counts.shape[0])[:: -(-counts.shape[0] // _DOCUMENTS)]
    documents = csr_array(getattr(counts, "counts", counts)[rows], dtype=np.float64)
    documents = documents[np.diff(documents.indptr) > 0]
    weight, unigram = network.decoder.weight, network.decoder.bias.softmax(-1)
    if min(documents.shape) < 2:
        return
    words = torch.from_numpy(theme_words(documents, len(weight), seed)).to(weight)
    found = ((words + unigram) / 2 / unigram).log() / (_STRONG * network.decoder.scale)
    weight[: len(found)] = found
    if counts.shape[0] <= FEW and typical_length(counts) >= SHORT:
        _start_encoder(network, documents, found - (found @ unigram).unsqueeze(-1))


def theme_words(documents: Any, topics: int, seed: int) -> Any:
    """The words' frequencies in each of so many themes, ``(K, V)``; fewer in very few documents.

    Args:
        documents: Counts, a SciPy matrix by rows, none of which is empty.
        topics: How many themes to look for.
        seed: Of random numbers.
    """
    whole = documents.ceil()  # a logarithm of weights below one would be negative
    weights = csr_array(TfidfTransformer(sublinear_tf=True).fit_transform(whole))
    votes = 1 / _copies(weights)
    voting = diags_array(np.sqrt(votes / votes.mean())) @ weights
    found, size = [], min(topics, *weights.shape)
    # but a start: it need not converge; and the error of a perfect factorisation is the root of
    # what was rounded below zero
    with warnings.catch_warnings(), np.errstate(invalid="ignore"):
        warnings.simplefilter("ignore", ConvergenceWarning)
        for start in ("nndsvda", "random")[: 1 + (len(votes) <= FEW)]:
            nmf = NMF(size, init=start, random_state=seed, max_iter=_ITERATIONS)
            found.append(nmf.fit(voting))
        best = min(found, key=lambda nmf: float(np.nan_to_num(nmf.reconstruction_err_)))
        shares = best.transform(weights)  # (M, K)
    shares = np.square(shares / np.maximum(shares.sum(1, keepdims=True), 1e-12))
    frequencies = diags_array(1 / np.asarray(documents.sum(1)).ravel()) @ documents
    words = (frequencies.T @ (shares * votes[:, None])).T
    return words / np.maximum(words.sum(1, keepdims=True), 1e-12)


def _copies(rows: Any) -> Any:
    """How many documents like it each has, itself included, by high powers of cosines."""
    found = []
    for start in range(0, rows.shape[0], 500):
        alike = rows[start : start + 500] @ rows.T
        alike.data **= _ALIKE
        found.append(np.asarray(alike.sum(1)).ravel())
    return np.maximum(np.concatenate(found), 1.0)


def _start_encoder(network: TopicNetwork, documents: Any, slopes: Tensor) -> None:
    """Let the first features be the documents' scores by ``slopes`` ``(K, V)``, and means follow.

    Not where features are made by several layers, or means are not linear in them.
    """
    first, *rest = network.encoder.layers
    rows = network.rows_of_means()
    if not isinstance(first, BagLinear) or rows is None or network.depth > 1:
        return
    if any(isinstance(layer, (nn.Linear, nn.BatchNorm1d)) for layer in rest):
        return
    count = min(len(slopes), len(first.bias))
    scores = slopes[:count].T  # (V, K)
    seen = torch.from_numpy(np.log1p(documents) @ scores.double().cpu().numpy()).to(scores)
    mean, spread = seen.mean(0), seen.std(0).clamp_min(1e-6)
    first.weight[:, :count] = scores / spread
    first.bias[:count] = 1 - mean / spread  # around one, where a rectifier is linear
    each = torch.arange(count)
    for parameter, part in rows:
        view = part(parameter)  # (D, H), or (D,) of a bias
        if view.dim() > 1:
            view[each, each] = _GAIN
        else:
            view[each] = -_GAIN
