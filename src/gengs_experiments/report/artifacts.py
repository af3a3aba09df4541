"""What runs leave besides numbers: pictures (reconstructions, samples of the prior) and topics.

One run of a setting stands for all its seeds, the first that has the file. A file that is not what
it should be is left out, and the reason is shown in its place; a word is text whatever it holds.

``topics.json`` is ``{"topics": [{"words": [...], "weights": [...]}], "hierarchy": [...]}``. The
hierarchy is a forest: a node has ``words``, or the number of a ``topic``, and ``children``.
"""

from __future__ import annotations

__all__ = ["Exhibit", "TopicLists", "gallery", "topic_lists"]

import math
from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from pathlib import Path
from typing import Any, NamedTuple

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

WordShares = Sequence[tuple[str, float]]
"""A topic's first words, each with a share of the first one's weight."""


class Exhibit(NamedTuple):
    """The pictures of one setting."""

    caption: str
    pictures: Mapping[str, Picture]
    problems: Sequence[str]


class TopicNode(NamedTuple):
    """A topic above others."""

    title: str
    words: Sequence[str]
    children: Sequence[TopicNode]


class TopicLists(NamedTuple):
    """All topics of a run."""

    topics: Sequence[WordShares]
    hierarchy: Sequence[TopicNode]
    total: int


def gallery(groups: SeedGroups) -> dict[str, list[Exhibit]]:
    """The pictures by data and condition, each with its estimator for a caption."""
    rooms: dict[str, list[Exhibit]] = {}
    count = 0
    for place, runs in groups.items():
        for run in runs:
            if run.folder is None or count >= MOST_PICTURES:
                continue
            pictures, problems = {}, []
            for name, title in PICTURES.items():
                if (path := run.folder / name).exists():
                    try:
                        pictures[title] = read_picture(path)
                    except Unreadable as problem:
                        problems.append(str(problem))
            if pictures or problems:
                seed = "" if run.seed is None else f"seed {run.seed}"
                caption = ", ".join(filter(None, (place.estimator, seed)))
                room = " · ".join(filter(None, (place.data, place.condition)))
                rooms.setdefault(room, []).append(Exhibit(caption, pictures, problems))
                count += len(pictures)
                break
    return rooms


def topic_lists(groups: SeedGroups) -> tuple[list[tuple[Setting, TopicLists]], list[str]]:
    """The topics of each setting that has some, and a sentence for each file of no use."""
    found, problems = [], []
    for setting, runs in groups.items():
        for run in runs:
            if run.folder is not None and (path := run.folder / "topics.json").exists():
                try:
                    found.append((setting, _read_topics(path)))
                except Unreadable as problem:
                    problems.append(f"{run.id}: {problem}")
                break
    return found, problems


def _read_topics(path: Path) -> TopicLists:
    content = read_json(path)
    given = _objects(content.get("topics"))
    topics = [_shares(topic) for topic in given[:TOPICS]]
    return TopicLists(topics, _forest(content.get("hierarchy"), topics, _DEPTH), len(given))


def _shares(topic: dict[str, Any]) -> WordShares:
    words = _words(topic)
    numbers = [as_number(weight) or 0.0 for weight in _list(topic.get("weights"))[: len(words)]]
    weights = [weight if 0 < weight < math.inf else 0.0 for weight in numbers]
    largest = max(weights, default=0.0) or 1.0
    shares = chain((weight / largest for weight in weights), repeat(0.0))
    return tuple(zip(words, shares, strict=False))


def _forest(nodes: Any, topics: Sequence[WordShares], depth: int) -> list[TopicNode]:
    found = []
    for number, node in enumerate(_objects(nodes)[:TOPICS] if depth else (), 1):
        words, which = _words(node), node.get("topic")
        if type(which) is int and 0 <= which < len(topics):
            number = which + 1
            words = words or [word for word, _ in topics[which][:6]]
        title = str(node.get("title") or f"topic {number}")[:60]
        found.append(TopicNode(title, words, _forest(node.get("children"), topics, depth - 1)))
    return found


def _words(holder: dict[str, Any]) -> list[str]:
    return [str(word)[:60] for word in _list(holder.get("words"))[:WORDS]]


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in _list(value) if isinstance(one, dict)]


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
