"""``gengs topics fit``, ``apply`` and ``show``."""

from __future__ import annotations

__all__ = ["TopicsApply", "TopicsFit", "TopicsShow"]

import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import tyro

from .settings import FitConfig, Reading

_NAMED_BY = 4  # words
ModelArgument = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="MODEL")]
CorpusArgument = Annotated[Path, tyro.conf.Positional, tyro.conf.arg(metavar="CORPUS")]
Out = Annotated[Path, tyro.conf.arg(aliases=["-o"])]


@dataclass(frozen=True)
class TopicsFit:
    """Find the topics of your own documents; leaves a page, the topics, and the model."""

    corpus: CorpusArgument
    """A file of documents: .txt (one a line), .jsonl, .csv, .tsv, each perhaps with .gz; or counts,
    .npz (scipy.sparse) or .feat; or "sample", the embedded one."""
    out: Out = Path("runs/topics-fit")
    """The folder to write."""
    config: FitConfig = field(default_factory=FitConfig)
    resume: bool = False
    """Go on with the folder, where a command was interrupted."""
    checkpoint_seconds: float = 60.0
    """Save when this much time has passed."""
    progress: bool = True
    """Whether to show the progress."""

    def run(self) -> None:
        """Read, count, train, write."""
        from .fit import fit

        fit(self)


@dataclass(frozen=True)
class TopicsApply:
    """How much of each topic do these documents have?"""

    model: ModelArgument
    """The folder that gengs topics fit wrote, or a model in it."""
    corpus: CorpusArgument
    """A file of documents, as for gengs topics fit."""
    out: Out = Path("document_topics.csv")
    """The file to write: .csv or .npy."""
    refine: int = 0
    """Steps that refine each document's posterior: slower and better, 20 are enough."""
    reading: Reading = field(default_factory=Reading)

    def run(self) -> None:
        """Read, count, write."""
        from .apply import apply

        apply(self)


@dataclass(frozen=True)
class TopicsShow:
    """List the topics of a model."""

    model: ModelArgument
    """The folder that gengs topics fit wrote, or a model in it."""
    top: int = 8
    """How many words of each topic."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        """Print the topics."""
        from ..models.topic_words import topics_as_json
        from .saved import load_model

        saved = load_model(self.model)
        found = topics_as_json(saved.model.network_, saved.vocabulary, self.top)
        if self.json:
            sys.stdout.write(json.dumps(found, indent=2) + "\n")
            return
        _print(found)


def _print(found: dict[str, list[dict[str, Any]]]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text
    from rich.tree import Tree

    console = Console()
    table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
    table.add_column("topic", justify="right")
    table.add_column("words")
    for number, topic in enumerate(found["topics"]):
        # a Text is not markup, whatever the words hold
        table.add_row(str(number), Text(", ".join(topic["words"])))
    console.print(table)
    if found["hierarchy"]:
        tree = Tree("super-topics", hide_root=True)
        for root in found["hierarchy"]:
            _grow(tree, root, found["topics"])
        console.print(tree)


def _grow(tree: Any, node: dict[str, Any], topics: list[dict[str, Any]]) -> None:
    from rich.text import Text

    leaf = "topic" in node
    words = topics[node["topic"]]["words"] if leaf else node["words"]
    title = f"{node['topic']}  " if leaf else ""
    weight = f"  ({node['weight']:.2g})" if "weight" in node else ""
    style = "" if leaf else "bold"
    grown = tree.add(Text(f"{title}{', '.join(words[:_NAMED_BY])}{weight}", style=style))
    for child in node.get("children", ()):
        _grow(grown, child, topics)
