"""``gengs topics show``: the topics of a model, as a list or as JSON."""

__all__ = ["TopicsShow"]

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro

from gengs_experiments.runs.config import check_least
from gengs_experiments.runs.json_lines import loads
from gengs_experiments.runs.sanitise import printable

from .document_share import most_documents_first, percent

Topics = dict[str, list[dict[str, Any]]]

_NAMED_BY = 4  # words


@dataclass(frozen=True)
class TopicsShow:
    """List the topics of a model."""

    model: Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
    """The folder that gengs topics fit wrote, or a model in it."""
    top: int = 10
    """How many words of each topic."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        """Print the topics."""
        check_least(self, {"top": 1})
        found = self._listed()
        if found is None:
            from ..model.count_input import column_words
            from ..model.topic_words import topics_as_json
            from .apply import load_model

            model, _ = load_model(self.model)
            found = topics_as_json(model.network_, column_words(model, None), self.top)
        if self.json:
            sys.stdout.write(json.dumps(found, indent=2) + "\n")
        else:
            _print(found["topics"], found["hierarchy"])

    def _listed(self) -> Topics | None:
        """The topics as gengs topics fit listed them, where it listed as many words."""
        try:
            found: Topics = loads((self.model / "topics.json").read_bytes())
            if min(len(topic["words"]) for topic in found["topics"]) < self.top:
                return None
            return {part: _cut(rows, self.top) for part, rows in found.items()}
        except (OSError, ValueError, LookupError, TypeError):
            return None


def _cut(value: Any, top: int) -> Any:
    """The same with at most ``top`` words, and their weights, in each list of words."""
    if isinstance(value, dict):
        listed = {"words", "weights"}
        return {k: v[:top] if k in listed else _cut(v, top) for k, v in value.items()}
    return [_cut(item, top) for item in value] if isinstance(value, list) else value


def _print(topics: list[dict[str, Any]], hierarchy: list[dict[str, Any]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text
    from rich.tree import Tree

    from ..model.word_ranking import telling_words

    def grow(tree: Tree, node: dict[str, Any]) -> None:
        leaf = "topic" in node
        words = topics[node["topic"]]["words"] if leaf else node["words"]
        title = f"{node['topic']}  " if leaf else ""
        weight = f"  ({node['weight']:.2g})" if "weight" in node else ""
        shown = printable(", ".join(words[:_NAMED_BY]))
        grown = tree.add(Text(f"{title}{shown}{weight}", style="" if leaf else "bold"))
        for child in node.get("children", ()):
            grow(grown, child)

    console = Console()
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    # the same measure as on the page; a model alone does not know how many documents have a topic
    counted = all("document_share" in topic for topic in topics)
    for name in ("topic", "documents" if counted else "share", "NPMI"):
        table.add_column(name, justify="right")
    table.add_column("words")
    order = most_documents_first([topic.get("documents", 0) for topic in topics])
    active = [k for k in order if topics[k]["note"] != "inactive"] or order
    for number in active:
        topic = topics[number]
        # a Text is not markup, whatever the words hold
        words = Text(printable(", ".join(topic["words"][: telling_words(topic["weights"])])))
        if topic["note"]:
            words = Text(f"{topic['note']}: ", style="italic") + words
        part = topic["document_share"] if counted else topic["share"]
        share, coherence = percent(part), f"{topic['coherence']:.2f}"
        table.add_row(str(number), share, coherence, words, style="dim" if topic["note"] else "")
    console.print(table)
    if not counted:
        console.print("share: a topic's part of what tells documents apart")
    if left_out := len(topics) - len(active):
        console.print(f"{left_out} more, which the documents hardly use")
    if hierarchy:
        forest = Tree("super-topics", hide_root=True)
        for root in hierarchy:
            grow(forest, root)
        console.print(forest)
