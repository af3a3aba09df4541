r"""Topics as people read them: words, and topics above topics.

Topics have numbers, the columns of their intensities; ``TopicModel.fit`` numbers them by share
(:mod:`.topic_activity`), the largest first.

A topic's words are those that surely occur in its documents more than elsewhere, of which those
come first that belong together (:mod:`.word_ranking`).
"""

__all__ = ["Branch", "Topic", "branches", "top_words", "topics_as_json"]

from collections.abc import Sequence
from itertools import groupby
from typing import Any, NamedTuple

import torch

from .topic_activity import notes, shares
from .topic_network import TopicNetwork
from .word_ranking import PROBABLY

_LISTED, _NAMED_BY = 10, 3


class Topic(NamedTuple):
    """The first words of a topic."""

    words: tuple[str, ...]
    weights: tuple[float, ...]
    """What each word tells of the topic, in nats; less where more coherent words come before it,
    and negative where it tells nothing: a theme may have fewer words than the list."""
    share: float
    """The topic's part of what tells documents apart, from 0 to 1."""
    coherence: float
    """NPMI of the first ten words that tell something, in whole documents; NaN before training."""
    note: str
    """``"inactive"``, ``"uncertain"``, ``"incoherent"``, or nothing (:mod:`.topic_activity`)."""
    label: tuple[str, ...]
    """Three words to call the topic by: of its first ten, those that it makes most frequent."""


class Branch(NamedTuple):
    """A super-topic and what hangs on it."""

    layer: int
    """0 is the uppermost layer."""
    topic: int
    children: tuple[int, ...]
    """Topics of the next layer, the strongest first."""
    weights: tuple[float, ...]
    """What a unit of the super-topic adds to each child's rate."""


def top_words(model: TopicNetwork, vocabulary: Sequence[str], top: int = 10) -> list[Topic]:
    """The words that stand for each topic."""
    if top < 1:
        raise ValueError(f"expected at least 1 word in `top`, but got {top}.")
    weights, columns = model.word_scores().topk(min(top, len(vocabulary)), -1)
    names = [tuple(vocabulary[column] for column in row) for row in _labels(model)]
    facts = zip(shares(model).tolist(), model.coherence.tolist(), notes(model), names, strict=True)
    return [
        Topic(tuple(vocabulary[column] for column in row), tuple(scores), *fact)
        for row, scores, fact in zip(columns.tolist(), weights.tolist(), facts, strict=True)
    ]


def _labels(model: TopicNetwork) -> list[list[int]]:
    """The columns of the words to call each topic by.

    The words that tell most of a topic are often boilerplate that occurs once in each of its
    documents. Of the ten that a reader is shown, those are taken whose probability the topic raises
    most. Where fewer than three surely tell something, those that probably do are taken, too.
    """
    scores = model.word_scores()
    first = scores.topk(min(_LISTED, scores.shape[1]), -1)
    gains = model.gains().gather(-1, first.indices)
    sure = first.values > 0
    few = sure.sum(-1, keepdim=True) < _NAMED_BY
    telling = sure | (few & (first.values > PROBABLY)) | (first.values == first.values[:, :1])
    gains = gains.where(telling, -torch.inf)
    best = gains.topk(min(_NAMED_BY, gains.shape[1]), -1)
    rows = first.indices.gather(-1, best.indices)
    return [
        [column for column, gain in zip(*row, strict=True) if gain > -torch.inf]
        for row in zip(rows.tolist(), best.values.tolist(), strict=True)
    ]


def branches(model: TopicNetwork, top: int = 5) -> list[Branch]:
    """The strongest children of each super-topic, layer by layer from above."""
    found = []
    for layer, weight in enumerate(model.hierarchy()):  # (D_next, D)
        values, children = weight.T.topk(min(top, len(weight)), -1)
        rows = zip(children.tolist(), values.tolist(), strict=True)
        found += [Branch(layer, k, tuple(c), tuple(v)) for k, (c, v) in enumerate(rows)]
    return found


@torch.no_grad()
def topics_as_json(
    model: TopicNetwork, vocabulary: Sequence[str], top: int = 10
) -> dict[str, list[dict[str, Any]]]:
    """Topics and their hierarchy as plain data, for ``topics.json``.

    The hierarchy is a forest: a super-topic has a title, words and children, a topic its number.
    """
    scores, weights = model.word_scores(), model.hierarchy()  # (D, V), and (D_next, D) each
    forest: list[dict[str, Any]] = [{"topic": k} for k in range(len(scores))]
    for layer, found in groupby(reversed(branches(model)), lambda branch: branch.layer):
        scores = weights[layer].T @ scores  # what a super-topic does to words, by its children
        columns = scores.topk(min(top, len(vocabulary)), -1).indices.tolist()
        forest = [
            {
                "title": f"super-topic {branch.topic + 1}",
                "words": [vocabulary[column] for column in columns[branch.topic]],
                "children": [
                    {**forest[child], "weight": share}
                    for child, share in zip(branch.children, branch.weights, strict=True)
                ],
            }
            for branch in reversed(list(found))
        ]
    topics = [topic._asdict() for topic in top_words(model, vocabulary, top)]
    return {"topics": topics, "hierarchy": forest if weights else []}
