r"""Which words stand for a topic: those that surely occur in its documents more than elsewhere.

A document d belongs to topic k by how far its posterior mean :math:`m_{dk}` rises above the topic's
usual intensity :math:`u_k` (:mod:`.topic_activity`):

.. math:: a_{dk} = \max(0,\, m_{dk} - u_k)^2 .

Of the documents of a topic, the share that has word w and its standard error are

.. math::
    P_{kw} = \frac{\sum_d a_{dk} [x_{dw} > 0]}{\sum_d a_{dk}}, \qquad
    s_{kw} = \frac{\sqrt{\sum_d a_{dk}^2 [x_{dw} > 0]}}{\sum_d a_{dk}},

and with :math:`p_w` the share of all documents that has it, that of the others is

.. math::
    p_{kw} = \frac{\sum_d b_{dk} [x_{dw} > 0] + 2 p_w}{\sum_d b_{dk} + 2}, \qquad
    b_{dk} = \max\Big(0,\, 1 - \frac{a_{dk}}{\bar a_k}\Big), \qquad
    \bar a_k = \frac{\sum_d a_{dk}^2}{\sum_d a_{dk}} .

(Of all documents, the topic's own may be half, and then a word that no other has is in half of all.
Documents with a little of the topic are others for the most part: the words of their own themes
tell nothing of it.) Words are ranked by the divergence of a cautious
:math:`P^- = P_{kw} - 2 s_{kw}` from that,

.. math:: P^- \log \frac{P^-}{p_{kw}} + (1 - P^-) \log \frac{1 - P^-}{1 - p_{kw}},

what a document of the topic tells of whether it has the word, in nats. A word has to be frequent in
the topic *and* rarer elsewhere; and one that three documents share has a standard error of
:math:`P_{kw} / \sqrt 3`: it does not lead a list because these three stand out. Words that are not
surely more frequent than elsewhere come after those that are, by how many standard errors they
lack: their scores are negative.

**Words that belong together.** Each of these words tells of the topic by itself. A topic of few
documents has words of several themes, and rare ones, two of which are hardly seen together in new
documents. Of the 25 words that tell most, those ten come first that belong together: if
:math:`n_{ij}` documents have both words, a fifth as many new documents have none with both with
probability :math:`e^{-n_{ij} / 5}`, and then their NPMI is -1. So it is expected to be

.. math::
    b_{ij} = \big(1 - e^{-n_{ij} / 5}\big)\, \mathrm{NPMI}_{ij} - e^{-n_{ij} / 5} .

The word whose :math:`\sum_j b_{ij}` is least is put behind, the sums are taken over those that are
left, and so on until ten are left (backward elimination). They keep their order and their scores; a
word that was put behind has at most the score of the last of them. The 25 words stay the same.

Ranking by the decoder's own entries lists words so rare that they are not seen again in new
documents, because a model of few documents learns these by heart; so does, less badly, ranking by
how much a strong topic adds to each word's probability (:meth:`.WordDecoder.gains`), which is what
there is as long as no documents were looked at.

References:
    | Re-ranking Words to Improve Interpretability of Automatically Generated Topics (Alokaili et
    | al., 2019), https://arxiv.org/abs/1903.12542
"""

__all__ = ["PROBABLY", "coherent_first", "rank_words", "telling_words"]

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..metrics import CoOccurrence, npmi_of_pairs

_CAUTION = 2.0
_PRIOR = 2.0
"""So many more documents have words as all do: one that no other has is not infinitely telling."""
PROBABLY = 1.0 - _CAUTION
"""Above this score, a word is more frequent in the topic by at least one standard error."""
_TELLING, _FIRST, _FEWER = 25, 10, 5


def rank_words(rises: Any, documents: Any) -> Any:
    """The score of each word in each topic, ``(D, V)``.

    Args:
        rises: How far each topic is above its usual intensity in each document, ``(M, D)``.
        documents: The counts of the same documents, a SciPy matrix by rows.
    """
    weights = np.square(np.maximum(np.asarray(rises, dtype=np.float64), 0.0))
    present = documents.astype(bool).astype(np.float64)
    total = np.maximum(weights.sum(0), np.finfo(np.float64).tiny)[:, None]  # (D, 1)
    share = (present.T @ weights).T / total  # (D, V)
    error = np.sqrt((present.T @ np.square(weights)).T) / total
    typical = np.square(weights).sum(0) / total[:, 0]
    others = np.maximum(1 - weights / np.maximum(typical, np.finfo(np.float64).tiny), 0.0)
    everywhere = np.asarray(present.sum(0)).ravel() / present.shape[0]
    usual = (present.T @ others).T + _PRIOR * everywhere
    usual /= others.sum(0)[:, None] + _PRIOR
    surely = share - _CAUTION * error
    gain = _part(surely, usual) + _part(1 - surely, 1 - usual)
    missing = (surely - usual) / np.maximum(error, 1 / present.shape[0])
    scores = np.where(surely > usual, gain, missing)
    scores = np.where(everywhere > 0, scores, -float(present.shape[0]))  # never seen: last
    return coherent_first(scores, documents)


def coherent_first(scores: Any, documents: Any) -> Any:
    """Scores ``(D, V)`` by which, of the most telling words, those that belong together are first.

    Args:
        scores: What each word tells of each topic; positive where it tells something.
        documents: Counts to see in which words occur together, a SciPy matrix by rows.
    """
    words = np.argsort(-scores, 1, kind="stable")[:, :_TELLING]  # (D, N)
    telling = np.take_along_axis(scores, words, 1)
    found = CoOccurrence.of_documents(words.tolist(), documents)
    unseen = np.exp(-np.stack(found.joint) / _FEWER)  # (D, N, N)
    pairs = (1 - unseen) * np.stack(list(npmi_of_pairs(found))) - unseen
    np.einsum("dnn->dn", pairs)[:] = 0.0  # a word with itself
    left = telling > 0
    for _ in range(words.shape[1] - _FIRST):
        sums = np.where(left, (pairs * left[:, None]).sum(-1), np.inf)
        least = words.shape[1] - 1 - sums[:, ::-1].argmin(1)  # the last of equals
        left[np.arange(len(left)), least] &= left.sum(1) <= _FIRST
    last = np.where(left, telling, np.inf).min(1, keepdims=True)
    behind = np.minimum(telling, last * (1 - 1e-5 * np.arange(1, 1 + words.shape[1])))
    ordered = np.array(scores)
    np.put_along_axis(ordered, words, np.where(left | (telling <= 0), telling, behind), 1)
    return ordered


def telling_words(scores: Sequence[float]) -> int:
    """How many words of a list, the best first, probably tell something; of its first, say so."""
    return max(1, sum(score > PROBABLY for score in scores))


def _part(share: Any, usual: Any) -> Any:
    """One outcome's part of a divergence."""
    tiny = np.finfo(np.float64).tiny
    return share * np.log(np.maximum(share, tiny) / np.maximum(usual, tiny))
