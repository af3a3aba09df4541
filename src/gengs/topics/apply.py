"""The topics of new documents, by a model that knows its words."""

from __future__ import annotations

__all__ = ["apply"]

from collections.abc import Iterator
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING

from ..data.counting import CountedDocument, Tally, count_words
from .mixtures import write_mixtures
from .saved import SavedModel, load_model
from .source import CountSource, Label, Source, excerpt, open_source

if TYPE_CHECKING:
    from .command import TopicsApply


def apply(command: TopicsApply) -> None:
    """Write the intensities, and say what was met.

    Raises:
        ValueError: If the file cannot be read, or none of its words is known.
    """
    if command.out.suffix not in (".csv", ".npy"):
        raise ValueError(f"expected a .csv or .npy file to write, but got {command.out}.")
    if command.refine < 0:
        raise ValueError(f"expected a --refine of at least 0, but got {command.refine}.")
    saved = load_model(command.model)
    saved.model.n_refine = command.refine
    source = open_source(command.corpus, command.reading)
    tally = Tally()
    documents = _counted(source, saved, tally, command.model)
    command.out.parent.mkdir(parents=True, exist_ok=True)
    as_table = command.out.suffix == ".csv"
    write_mixtures(
        saved.model,
        _known(documents, tally, command.corpus),
        command.out if as_table else None,
        None if as_table else command.out,
    )
    share = tally.known / max(tally.known + tally.unknown, 1)
    without = f"; documents without any: {tally.empty:,}" if tally.empty else ""
    print(
        f"{tally.documents:,} documents; words in the model's vocabulary: {tally.known:,}, "
        f"{share:.0%} of all{without}"
    )
    print(f"written: {command.out}")


def _known(
    documents: Iterator[tuple[Label, CountedDocument]], tally: Tally, path: Path
) -> Iterator[tuple[Label, CountedDocument]]:
    """The documents; an error at their end, before anything is written, if no word was known."""
    yield from documents
    if tally.documents and not tally.known:
        raise ValueError(f"no word of {path} is in the model's vocabulary.")


def _counted(
    source: Source, saved: SavedModel, tally: Tally, path: Path
) -> Iterator[tuple[Label, CountedDocument]]:
    if isinstance(source, CountSource):
        counts = source.counted()
        # as many tokens as counts: columns of one vocabulary become those of the other
        texts = (
            [
                source.vocabulary[column]
                for column, number in zip(document.columns, document.counts, strict=True)
                for _ in range(round(number))
            ]
            for document in counts
        )
        labels = source.labels()
        return zip(labels, count_words(texts, saved.vocabulary, tally), strict=True)
    if saved.words is None:
        raise ValueError(
            f"{path} was fitted to counts and does not know how to read text; expected .npz or "
            ".feat."
        )
    split = saved.words
    one, other = tee(source.documents)
    rows = count_words((split(document.text) for document in one), saved.vocabulary, tally)
    about = (Label(d.line, d.name, excerpt(d.text)) for d in other)
    return zip(about, rows, strict=True)
