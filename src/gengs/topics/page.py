"""The topics as one HTML page: no script, no network, nothing but the file.

Jinja escapes every string that it inserts, and the page's own head forbids scripts and requests:
a word of somebody's documents stays a word.
"""

from __future__ import annotations

__all__ = ["render_page"]

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from .. import __version__
from .curve import training_curve
from .ingest import Ingested
from .mixtures import Mixtures
from .source import Label

_SHOWN_WORDS = 10
_NAMED_BY = 3  # words


@dataclass(frozen=True)
class Card:
    """A topic on the page."""

    number: int
    title: str
    words: tuple[tuple[str, float, float], ...]
    """Word, width of its bar in percent, and how much more of a document it is."""
    share: float
    """Its part of all that tells documents apart, in percent."""
    coherence: float
    documents: tuple[tuple[Label, int, float], ...]
    """Label, number, and how many deviations above the usual."""


@dataclass(frozen=True)
class Branch:
    """A node of the tree: a topic, or one that stands above others."""

    title: str
    topic: int | None
    """Which topic, at the tree's leaves."""
    weight: float
    """Compared with the strongest sibling, in percent."""
    children: tuple[Branch, ...]


def render_page(
    *,
    title: str,
    ingested: Ingested,
    found: dict[str, list[dict[str, Any]]],
    coherence: Any,
    records: list[dict[str, Any]],
    seen: Mixtures,
    prior: tuple[float, float],
    command: str,
) -> str:
    """The page as text.

    Args:
        title: What the documents are called.
        ingested: The corpus.
        found: ``topics.json``.
        coherence: Each topic's NPMI.
        records: Of the training.
        seen: The documents with most of each topic.
        prior: The usual intensity of a topic, and its deviation.
        command: What made this.
    """
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters["signed"] = _signed
    cards = _cards(found["topics"], coherence, seen, prior)
    last = [record for record in records if record["kind"] == "evaluation"][-1]
    return environment.from_string(_asset("page.html")).render(
        title=title,
        css=Markup(_asset("page.css")),
        corpus=ingested.corpus,
        tally=ingested.tally,
        last=last,
        cards=sorted(cards, key=lambda card: -card.share),
        tree=_tree(found["hierarchy"], cards),
        curve=training_curve(records),
        command=command,
        version=__version__,
    )


def _cards(
    topics: Sequence[dict[str, Any]], coherence: Any, seen: Mixtures, prior: tuple[float, float]
) -> list[Card]:
    centre, scale = prior
    everything = float(seen.spread.sum()) or 1.0
    cards = []
    for number, topic in enumerate(topics):
        pairs = list(zip(topic["words"], topic["weights"], strict=True))[:_SHOWN_WORDS]
        most = max((weight for _, weight in pairs), default=1.0) or 1.0
        cards.append(
            Card(
                number,
                _name(topic),
                tuple((word, round(100 * max(w, 0) / most, 1), w) for word, w in pairs),
                100 * float(seen.spread[number]) / everything,
                float(coherence[number]),
                tuple(
                    (label, place + 1, (value - centre) / scale)
                    for value, place, label in seen.leading[number]
                ),
            )
        )
    return cards


def _tree(hierarchy: Sequence[dict[str, Any]], cards: list[Card]) -> tuple[Branch, ...]:
    """Super-topics from above; a topic hangs on every super-topic that raises it much."""

    def node(found: dict[str, Any], most: float) -> Branch:
        weight = 100 * float(found.get("weight", most)) / most
        if "topic" in found:
            card = cards[found["topic"]]
            return Branch(card.title, card.number, weight, ())
        strongest = max((child["weight"] for child in found["children"]), default=0.0) or 1.0
        children = tuple(node(child, strongest) for child in found["children"])
        return Branch(_name(found), None, weight, children)

    return tuple(node(root, 1.0) for root in hierarchy)


def _name(topic: dict[str, Any]) -> str:
    """A topic is called by its first words."""
    return ", ".join(topic["words"][:_NAMED_BY])


def _signed(number: float, digits: int = 2) -> str:
    """With a minus sign of its own, and no negative zero."""
    return f"{round(number, digits) + 0.0:.{digits}f}".replace("-", "−")


def _asset(name: str) -> str:
    return files(__package__).joinpath("templates", name).read_text(encoding="utf-8")
