r"""Which topics a corpus uses, how much, and whether their words belong together.

Measured once training is done, on documents that the model was trained on:

- a topic's *deviation* :math:`\sigma_k` is the standard deviation of its posterior means over
  documents, and its *usual intensity* their median; or, where half of the documents have the topic
  or more, the middle between the lowest and the highest tenth of them;
- a document's *strength* of a topic is by how many deviations of the prior its intensity rises
  above the usual one, measured against the mean rise of all active topics in this document: of
  themes that exclude each other, one falls where another rises. A document has the topics that
  rise, at least half as far as the one that rises most; a text without a known word has none;
- its *effect* :math:`\rho_k` is how much a unit of it moves the logits of the words, the standard
  deviation of the entries :math:`R_{kw}` over words w drawn from the bias;
- its *share* is its part of what tells documents apart, :math:`\sigma_k^2 \rho_k^2` over the sum of
  these: the variance of the words' logits that is due to it;
- its *coherence* is the NPMI of its first ten words, counted in whole documents, fewer where fewer
  surely tell something of it (:mod:`.word_ranking`), and *chance* that of other words as frequent.

A topic is **inactive** if it hardly moves (the variance of its posterior means is below a hundredth
of the prior's, the usual criterion of active units) or hardly matters (its share is less than a
quarter of an even one), and **incoherent** if its coherence is less than 0.08 above chance (good
topics of 20 Newsgroups have 0.1 and more, of short texts 0.2 and more, fillers 0.05). It is
**uncertain** if not even two words surely tell something of it, because it has too few documents:
of a hundred texts of noise all topics are, and so are small topics of real ones. The coherence of
these is of the words that probably tell something. ``fit`` sorts topics by share, so that the first
are those that matter.

A latent is **idle** if the variance of its posterior means is below a tenth of the prior's, and of
the largest of all latents. What it says of new short documents is not worth its divergence from
the prior: at the end of ``fit`` to such, its posterior becomes the prior, and its words' logits
zero. (Below super-topics, and with posteriors that are not tilted, it stays.)

References:
    | Importance Weighted Autoencoders (Burda et al., 2016), https://arxiv.org/abs/1509.00519
"""

__all__ = [
    "measure_activity",
    "notes",
    "proportions_of",
    "shares",
    "strengths",
    "strongest_topics",
]

from typing import Any

import numpy as np
import torch
from scipy.sparse import csr_array
from torch import Tensor

from gengs_experiments.data.batches import Batches

from ..metrics import npmi, npmi_by_chance
from .document_weights import SHORT, typical_length
from .topic_network import TopicNetwork
from .topic_start import FEW
from .varimax import document_rotations
from .word_ranking import PROBABLY, rank_words

_DOCUMENTS = 20_000
"""At most so many are looked at, spread evenly over the corpus."""
_MEMORY = 5_000
"""What ``partial_fit`` knew of the topics' words counts as much as so many documents."""
_WORDS = 10
_NOISE = 0.5
_TENTHS = torch.tensor([0.1, 0.9])
_LEAST_VARIANCE, _LEAST_SHARE, _LEAST_MARGIN = 0.01, 0.25, 0.08
_IDLE = 0.1


@torch.no_grad()
def measure_activity(
    network: TopicNetwork,
    counts: Any,
    rows: Any = None,
    *,
    sort: bool = True,
    turn: bool = True,
    settle: bool = False,
) -> None:
    """Note in the network how its topics are used; perhaps sort them by share.

    But for idle latents, what training learns does not change: topics are directions in which
    latents are read.

    Args:
        network: Trained.
        counts: Documents, a SciPy matrix by rows or a corpus.
        rows: Of these; all by default.
        sort: Whether the topics may change; otherwise they stay what they are.
        turn: Whether they may also turn, to the directions of their documents (:mod:`.varimax`);
            those of few documents stay where they started (:mod:`.topic_start`).
        settle: Whether training has ended: idle latents of short documents are switched off.
    """
    rows = np.arange(counts.shape[0]) if rows is None else rows
    rows = rows[:: -(-len(rows) // _DOCUMENTS)]
    training, device = network.training, network.usual.device
    network.eval()
    if sort:  # from the latents themselves, whatever was measured before
        network.reading.copy_(torch.eye(len(network.reading)))
    batches = Batches(counts, min(256, len(rows)), rows=rows, shuffle=False).epoch(0)
    means = torch.cat([network.intensities(x.to(device)) for x in batches])  # (M, D)
    network.train(training)
    if settle and typical_length(counts, rows) < SHORT:
        variances = means.var(0, correction=0)
        idle = variances < _IDLE * variances.max().clamp_max(network.decoder.scale**2)
        means = means.where(~network.switch_off(idle), network.decoder.centre)
    documents = csr_array(getattr(counts, "counts", counts)[rows])
    turn = turn and len(means) > FEW and not network.hierarchy()
    if sort and turn and bool(means.isfinite().all()):
        means = _turned(network, means, documents)
    network.usual.copy_(_usual(means))
    network.deviation.copy_(means.std(0, correction=0))
    scores = _scores(means, documents)
    if not sort and bool(network.relevance.isfinite().all()):  # a few documents move lists a little
        scores = network.relevance.cpu().lerp(scores.float(), len(rows) / (len(rows) + _MEMORY))
    network.relevance.copy_(scores)
    perhaps = _first(network.relevance, PROBABLY)
    words = [
        row if sure else other
        for row, other, sure in zip(
            _first(network.relevance), perhaps, _is_sure(network).tolist(), strict=True
        )
    ]
    network.coherence.copy_(torch.from_numpy(npmi(words, documents)))
    network.chance.copy_(torch.from_numpy(npmi_by_chance(words, documents)))
    if sort:
        network.reorder(shares(network).argsort(descending=True, stable=True))


def _usual(means: Tensor) -> Tensor:
    """The intensity of each topic in documents that do not have it, or in all alike, ``(D,)``."""
    low, high = means.quantile(_TENTHS.to(means), dim=0)
    return torch.minimum(means.median(0).values, (low + high) / 2)


def _turned(network: TopicNetwork, means: Tensor, documents: Any) -> Tensor:
    """Read the topics in the directions with the most coherent words; the intensities there."""
    centre, best = network.decoder.centre, _split_coherence(means, documents)
    before, found = network.reading.clone(), means
    for rotation in document_rotations(means):
        turned = (means - centre) @ rotation + centre
        coherence = _split_coherence(turned, documents)
        if coherence > best:
            network.reading.copy_(before @ rotation)
            best, found = coherence, turned
    return found


def _scores(means: Tensor, documents: Any) -> Tensor:
    return torch.from_numpy(rank_words((means - _usual(means)).cpu().numpy(), documents))


def _first(scores: Tensor, least: float = 0.0) -> list[list[int]]:
    """The first words of each topic, by columns; only those that tell something of it.

    A theme may have fewer than ten words: others are never seen with them. Above zero, words
    surely tell something; above :data:`.PROBABLY`, probably.
    """
    values, columns = scores.topk(min(_WORDS, scores.shape[1]), -1)
    return [row[value > least].tolist() for row, value in zip(columns, values, strict=True)]


def _split_coherence(means: Tensor, documents: Any) -> float:
    """The NPMI, in every other document, of words that were ranked in the ones between.

    What is beyond that of fillers is summed over the pairs of words of topics that tell documents
    apart.
    """
    if len(means) < 2:
        return 0.0
    words = _first(_scores(means[::2], documents[::2]))
    pairs = [len(topic) * (len(topic) - 1) for topic in words]
    found = (npmi(words, documents[1::2]) - _LEAST_MARGIN) * pairs
    variances = means.var(0)
    return float(found[(variances >= _LEAST_SHARE * variances.mean()).cpu().numpy()].sum())


def _effects(network: TopicNetwork) -> Tensor:
    """How much a unit of each topic moves the words' logits, ``(D,)``."""
    topics, common = network.topics(), network.decoder.bias.detach().softmax(-1)
    return (topics - (topics @ common).unsqueeze(-1)).square().matmul(common).sqrt()


def shares(network: TopicNetwork) -> Tensor:
    """Each topic's part of what tells documents apart, ``(D,)``; they sum to one."""
    variances = (network.deviation * _effects(network)).square()
    return variances / variances.sum().clamp_min(torch.finfo(variances.dtype).tiny)


def strengths(network: TopicNetwork, intensities: Tensor, lengths: Tensor | None = None) -> Tensor:
    """How far each topic rises in documents above the active others, in deviations, ``(B, D)``.

    Of inactive topics (unless all are), and in documents without words (of no ``lengths``), it is
    minus infinity.
    """
    rises = (intensities - network.usual) / network.decoder.scale
    active = torch.tensor([note != "inactive" for note in notes(network)], device=rises.device)
    active = active | ~active.any()
    mean = rises[:, active].mean(-1, keepdim=True) if int(active.sum()) > 1 else 0.0
    found = (rises - mean).where(active, -torch.inf)
    return found if lengths is None else found.where(lengths.unsqueeze(-1) > 0, -torch.inf)


def notes(network: TopicNetwork) -> list[str]:
    """What to know of each topic: inactive, uncertain, incoherent, or nothing."""
    still = network.deviation.square() < _LEAST_VARIANCE * network.decoder.scale**2
    inactive = still | (shares(network) < _LEAST_SHARE / len(still))
    loose = network.coherence - network.chance < _LEAST_MARGIN
    facts = zip(inactive.tolist(), _is_sure(network).tolist(), loose.tolist(), strict=True)
    return [
        "inactive" if idle else "uncertain" if not sure else "incoherent" if vague else ""
        for idle, sure, vague in facts
    ]


def _is_sure(network: TopicNetwork) -> Tensor:
    """Whether at least two words surely tell something of each topic, or none was ranked yet."""
    scores = network.relevance
    return (scores.isnan() | (scores > 0)).sum(-1) >= min(2, scores.shape[1])


def proportions_of(
    network: TopicNetwork, intensities: Tensor, lengths: Tensor | None = None
) -> Tensor:
    """What of each document is about each topic, ``(B, D)``; rows sum to one.

    By the strengths of its topics, times what a unit of each does to the words; those below half a
    deviation, or half of the strongest, do not count. Where no topic rises, all are equal.
    """
    above = strengths(network, intensities, lengths)
    noise = (above.amax(-1, keepdim=True) / 2).clamp(0.0, _NOISE)
    risen = above.where(above > noise, 0.0) * _effects(network)
    total = risen.sum(-1, keepdim=True)
    return (risen / total).where(total > 0, 1 / risen.shape[-1])


def strongest_topics(
    network: TopicNetwork,
    intensities: Tensor,
    lengths: Tensor | None = None,
    top: int = 3,
    least: float = 0.0,
) -> list[list[tuple[int, float]]]:
    """For each document its strongest topics, and their strengths.

    They rise above the others, by ``least`` at least and at least half as far as the one that rises
    most. Those come first whose rise does most to the words.
    """
    above = strengths(network, intensities, lengths)
    floor = (above.amax(-1, keepdim=True) / 2).clamp_min(max(least, 1e-6))
    order = (above * _effects(network)).where(above >= floor, -torch.inf)
    topics = order.topk(min(top, above.shape[-1]), -1)
    values = above.gather(-1, topics.indices)
    rows = zip(topics.indices.tolist(), values.tolist(), topics.values.tolist(), strict=True)
    return [
        [(topic, value) for topic, value, rank in zip(*row, strict=True) if rank > -torch.inf]
        for row in rows
    ]
