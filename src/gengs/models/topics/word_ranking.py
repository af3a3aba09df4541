r"""Which words stand for a topic: those that surely occur in its documents more than elsewhere.

A document d belongs to topic k by how far its posterior mean :math:`m_{dk}` rises above the topic's
usual intensity, the median over documents:

.. math:: a_{dk} = \max(0,\, m_{dk} - \mathrm{med}_k)^2 .

Of the documents of a topic, the share that has word w, its standard error, and the same share of
all documents are

.. math::
    P_{kw} = \frac{\sum_d a_{dk} [x_{dw} > 0]}{\sum_d a_{dk}}, \qquad
    s_{kw} = \frac{\sqrt{\sum_d a_{dk}^2 [x_{dw} > 0]}}{\sum_d a_{dk}}, \qquad
    p_w = \frac1M \sum_d [x_{dw} > 0],

and words are ranked by the divergence of a cautious :math:`P^- = P_{kw} - 2 s_{kw}` from p,

.. math:: P^- \log \frac{P^-}{p_w} + (1 - P^-) \log \frac{1 - P^-}{1 - p_w},

what a document of the topic tells of whether it has the word, in nats. A word has to be frequent in
the topic *and* rarer elsewhere; and one that three documents share has a standard error of
:math:`P_{kw} / \sqrt 3`: it does not lead a list because these three stand out. Words that are not
surely more frequent than elsewhere come after those that are, by how many standard errors they
lack: their scores are negative.

Ranking by the decoder's own entries lists words so rare that they are not seen again in new
documents, because a model of few documents learns these by heart; so does, less badly, ranking by
how much a strong topic adds to each word's probability (:meth:`.WordDecoder.gains`), which is what
there is as long as no documents were looked at.
"""

__all__ = ["rank_words"]

from typing import Any

import numpy as np

_CAUTION = 2.0


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
    usual = np.asarray(present.sum(0)).ravel() / present.shape[0]
    surely = share - _CAUTION * error
    gain = _part(surely, usual) + _part(1 - surely, 1 - usual)
    missing = (surely - usual) / np.maximum(error, 1 / present.shape[0])
    scores = np.where(surely > usual, gain, missing)
    return np.where(usual > 0, scores, -float(present.shape[0]))  # never seen: last


def _part(share: Any, usual: Any) -> Any:
    """One outcome's part of a divergence."""
    tiny = np.finfo(np.float64).tiny
    return share * np.log(np.maximum(share, tiny) / np.maximum(usual, tiny))
