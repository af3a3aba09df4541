"""How documents use topics, for people to read: how many have each, and examples that show why.

A document counts for its strongest topic. Of these documents, the share that has each of the
topic's words means the same in every topic. Examples of a topic are documents in which it is strong
*and* that have many of its words, and they are quoted where they do.
"""

__all__ = ["Example", "TopicUse", "passage"]

import re
from typing import Any, NamedTuple

import numpy as np
import torch

from ..model.topic_activity import strengths, strongest_topics
from ..model.topic_network import TopicNetwork
from .source import Label

_WORDS, _EXAMPLES = 10, 5
_LONG = 280  # characters of a passage


class Example(NamedTuple):
    """A document that shows what a topic is about."""

    rank: float  # its strength, times the share of the topic's words that it has
    strength: float
    place: int  # from zero on
    label: Label


class TopicUse:
    """What documents have of topics, a batch at a time.

    Attributes:
        documents: How many have each topic as their strongest, ``(D,)``.
        none: How many have none.
        examples: For each topic a few documents, the best first.
    """

    def __init__(self, network: TopicNetwork) -> None:
        self.network, self.done, self.none = network, 0, 0
        scores = network.word_scores()
        self.columns = scores.topk(min(_WORDS, scores.shape[1]), -1).indices.cpu().numpy()
        self.documents = np.zeros(len(self.columns), np.int64)
        self.present = np.zeros(self.columns.shape, np.int64)
        self.examples: list[list[Example]] = [[] for _ in self.columns]

    def add(self, labels: list[Label], counts: Any, intensities: torch.Tensor) -> list[Any]:
        """Look at documents: labels, sparse counts, intensities; their strongest topics."""
        lengths = torch.from_numpy(np.asarray(counts.sum(1)).ravel())
        strongest = strongest_topics(self.network, intensities, lengths)
        first = np.array([risen[0][0] if risen else -1 for risen in strongest])
        self.none += int((first < 0).sum())
        strength = strengths(self.network, intensities, lengths).numpy()
        for topic, columns in enumerate(self.columns):
            present = counts[:, columns].toarray() > 0  # (B, 10)
            own = first == topic
            self.documents[topic] += own.sum()
            self.present[topic] += present[own].sum(0)
            rises = np.where(own, strength[:, topic], 0.0)
            ranks = rises * present.mean(1)
            rows = np.argsort(-ranks, kind="stable")[:_EXAMPLES].tolist()
            more = [
                Example(float(ranks[k]), float(strength[k, topic]), self.done + k, labels[k])
                for k in rows
                if ranks[k] > 0
            ]
            # of equals, the first ones
            found = sorted(self.examples[topic] + more, key=lambda example: -example.rank)
            self.examples[topic] = found[:_EXAMPLES]
        self.done += len(labels)
        return strongest

    def noted(self, topics: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """The topics of ``topics.json``, each with how many documents have it as their strongest.

        The share of documents is what people are told: that of the variance needs an explanation.
        """
        counts = self.documents.tolist()
        return [
            {**topic, "documents": count, "document_share": count / max(self.done, 1)}
            for topic, count in zip(topics, counts, strict=True)
        ]

    def shares(self) -> Any:
        """The share of each topic's documents that has each of its first words, ``(D, 10)``."""
        return self.present / np.maximum(self.documents, 1)[:, None]


def passage(text: str, words: tuple[str, ...]) -> list[tuple[str, bool]]:
    """The part of a text with most of the words: pieces, and whether each is one of them.

    Example:
        >>> passage("A node of the graph.", ("graph", "edge"))
        [('A node of the ', False), ('graph', True), ('.', False)]
    """
    # half of a pair of surrogates, which JSON may hold, cannot be written
    line = " ".join(text.split()).encode("utf-8", "replace").decode()
    listed = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    pattern = re.compile(rf"(?<!\w)(?:{listed})(?!\w)", re.IGNORECASE) if words else None
    found = [(*m.span(), m[0].lower()) for m in pattern.finditer(line)] if pattern else []
    start, most = 0, 0
    for begin, _, _ in found:
        inside = {word for at, end, word in found if at >= begin and end <= begin + _LONG - 40}
        if len(inside) > most:
            start, most = begin, len(inside)
    start = max(0, min(start - 40, len(line) - _LONG))
    if start:  # at the beginning of a word
        start = line.find(" ", start, start + 40) + 1 or start
    end = min(len(line), start + _LONG)
    if end < len(line):
        end = max(line.rfind(" ", start, end), start + _LONG // 2)
    pieces: list[tuple[str, bool]] = []
    at = start
    for begin, stop, _ in found:
        if at <= begin and stop <= end:
            pieces += [(line[at:begin], False), (line[begin:stop], True)]
            at = stop
    pieces.append((line[at:end] + (" …" if end < len(line) else ""), False))
    if start:
        pieces.insert(0, ("… ", False))
    return [piece for piece in pieces if piece[0]]
