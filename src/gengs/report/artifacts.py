"""What runs leave besides numbers: pictures (reconstructions, samples of the prior) and topics.

One run of a setting stands for all its seeds, the first that has the file. A file that is not what
it should be is left out, and the reason is shown in its place; a word is text whatever it holds.

``topics.json`` is ``{"topics": [{"words": [...], "weights": [...]}], "hierarchy": [...]}``. The
hierarchy is a forest: a node has ``words``, or the number of a ``topic``, and ``children``.
"""

from __future__ import annotations

__all__ = ["Exhibit", "TopicLists", "TopicNode", "TopicWords", "gallery", "topic_lists"]

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .record_columns import as_number
from .seed_groups import SeedGroups, Setting
from .untrusted_files import Picture, Unreadable, read_json, read_picture

PICTURES = {
    "reconstructions.png": "originals, each row over its reconstructions",
    "samples.png": "samples of the prior",
}
MOST_PICTURES = 120
"""More of them make a page too heavy to open."""
WORDS = 12
"""Words of a topic that are shown."""
TOPICS = 200
_DEPTH = 8


@dataclass(frozen=True)
class Exhibit:
    """The pictures of one setting."""

    caption: str
    pictures: Mapping[str, Picture]
    problems: Sequence[str]


@dataclass(frozen=True)
class TopicWords:
    """A topic's first words, each with a share of the first one's weight."""

    number: int
    words: tuple[tuple[str, float], ...]


@dataclass(frozen=True)
class TopicNode:
    """A topic above others."""

    title: str
    words: tuple[str, ...]
    children: tuple[TopicNode, ...]


@dataclass(frozen=True)
class TopicLists:
    """All topics of a run."""

    topics: tuple[TopicWords, ...]
    hierarchy: tuple[TopicNode, ...]
    total: int


def gallery(groups: SeedGroups) -> dict[str, list[Exhibit]]:
    """The pictures by data and condition, each with its estimator for a caption."""
    rooms: dict[str, list[Exhibit]] = {}
    count = 0
    for place, runs in groups.items():
        for run in runs:
            if run.folder is None or count >= MOST_PICTURES:
                continue
            pictures, problems = _pictures(run.folder)
            if pictures or problems:
                seed = "" if run.seed is None else f"seed {run.seed}"
                caption = ", ".join(word for word in (place.estimator, seed) if word)
                room = " · ".join(word for word in (place.data, place.condition) if word)
                rooms.setdefault(room, []).append(Exhibit(caption, pictures, problems))
                count += len(pictures)
                break
    return rooms


def topic_lists(groups: SeedGroups) -> tuple[list[tuple[Setting, TopicLists]], list[str]]:
    """The topics of each setting that has some, and a sentence for each file of no use."""
    found, problems = [], []
    for setting, runs in groups.items():
        paths = {run.id: run.folder / "topics.json" for run in runs if run.folder is not None}
        name = next((name for name, path in paths.items() if path.exists()), None)
        if name is not None:
            try:
                found.append((setting, _read_topics(paths[name])))
            except Unreadable as problem:
                problems.append(f"{name}: {problem}")
    return found, problems


def _pictures(folder: Path) -> tuple[dict[str, Picture], list[str]]:
    pictures, problems = {}, []
    for name, title in PICTURES.items():
        if (folder / name).exists():
            try:
                pictures[title] = read_picture(folder / name)
            except Unreadable as problem:
                problems.append(str(problem))
    return pictures, problems


def _read_topics(path: Path) -> TopicLists:
    content = read_json(path)
    given = [one for one in _list(content.get("topics")) if isinstance(one, dict)]
    topics = [_topic(number, one) for number, one in enumerate(given[:TOPICS], 1)]
    return TopicLists(tuple(topics), _forest(content.get("hierarchy"), topics, _DEPTH), len(given))


def _topic(number: int, one: dict[str, Any]) -> TopicWords:
    words = _words(one)
    weights = [_weight(weight) for weight in _list(one.get("weights"))[: len(words)]]
    weights += [0.0] * (len(words) - len(weights))
    largest = max(weights, default=0.0) or 1.0
    shares = [weight / largest for weight in weights]
    return TopicWords(number, tuple(zip(words, shares, strict=True)))


def _forest(nodes: Any, topics: Sequence[TopicWords], depth: int) -> tuple[TopicNode, ...]:
    if depth == 0:
        return ()
    return tuple(
        _node(node, number, topics, depth)
        for number, node in enumerate(_list(nodes)[:TOPICS], 1)
        if isinstance(node, dict)
    )


def _node(node: dict[str, Any], number: int, topics: Sequence[TopicWords], depth: int) -> TopicNode:
    words, which = _words(node), node.get("topic")
    if isinstance(which, int) and not isinstance(which, bool) and 0 <= which < len(topics):
        number = topics[which].number
        words = words or tuple(word for word, _ in topics[which].words[:6])
    title = str(node.get("title") or f"topic {number}")[:60]
    return TopicNode(title, words, _forest(node.get("children"), topics, depth - 1))


def _words(holder: dict[str, Any]) -> tuple[str, ...]:
    return tuple(str(word)[:60] for word in _list(holder.get("words"))[:WORDS])


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _weight(value: Any) -> float:
    number = as_number(value)
    return max(number, 0.0) if number is not None and math.isfinite(number) else 0.0
