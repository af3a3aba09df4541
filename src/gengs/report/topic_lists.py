"""The topics a run found: words with their weights, and which topic of a layer feeds which.

``topics.json`` is ``{"topics": [{"words": [...], "weights": [...]}], "hierarchy": [...]}``. The
hierarchy is a forest: a node has ``words``, or the number of a ``topic``, and ``children``. What is
not of this form is left out; a word is text whatever it holds.
"""

from __future__ import annotations

__all__ = ["Node", "Topic", "Topics", "read_topics"]

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .reading import read_json

WORDS = 12
"""Words of a topic that are shown."""
TOPICS = 200
_DEPTH = 8


@dataclass(frozen=True)
class Topic:
    """A topic's first words, each with a share of the first one's weight."""

    number: int
    words: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class Node:
    """A topic above others."""

    title: str
    words: tuple[str, ...]
    children: tuple[Node, ...]


@dataclass(frozen=True)
class Topics:
    """All topics of a run."""

    topics: tuple[Topic, ...]
    hierarchy: tuple[Node, ...]
    total: int


def read_topics(path: Path) -> Topics:
    """The topics in a file.

    Raises:
        Unreadable: If it is too large, or no JSON.
    """
    content = read_json(path)
    listed = content.get("topics")
    given = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    topics = [_topic(number, one) for number, one in enumerate(given[:TOPICS], 1)]
    return Topics(tuple(topics), _forest(content.get("hierarchy"), topics, _DEPTH), len(given))


def _topic(number: int, one: dict[str, Any]) -> Topic:
    words = [str(word)[:60] for word in _list(one.get("words"))[:WORDS]]
    weights = [_weight(weight) for weight in _list(one.get("weights"))[:WORDS]]
    weights += [0.0] * (len(words) - len(weights))
    largest = max([*weights, 0.0]) or 1.0
    shares = [max(weight, 0.0) / largest for weight in weights]
    return Topic(number, tuple(zip(words, shares[: len(words)], strict=True)))


def _forest(nodes: Any, topics: Sequence[Topic], depth: int) -> tuple[Node, ...]:
    if depth == 0:
        return ()
    return tuple(
        _node(node, number, topics, depth)
        for number, node in enumerate(_list(nodes)[:TOPICS], 1)
        if isinstance(node, dict)
    )


def _node(node: dict[str, Any], number: int, topics: Sequence[Topic], depth: int) -> Node:
    words = tuple(str(word)[:60] for word in _list(node.get("words"))[:WORDS])
    which = node.get("topic")
    if isinstance(which, int) and not isinstance(which, bool) and 0 <= which < len(topics):
        number = topics[which].number
        words = words or tuple(word for word, _ in topics[which].words[:6])
    title = str(node.get("title") or f"topic {number}")[:60]
    return Node(title, words, _forest(node.get("children"), topics, depth - 1))


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _weight(value: Any) -> float:
    if isinstance(value, (int, float)) and math.isfinite(value):
        return float(value)
    return 0.0
