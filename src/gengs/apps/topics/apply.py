"""A model's folder, and the topics of new documents by it.

``model.safetensors`` is what :meth:`gengs.TopicModel.save` writes, and ``text.json`` beside it says
how documents were split into words, so that later ones are split the same way.
"""

from __future__ import annotations

__all__ = ["apply", "load_model", "save_model"]

import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...data.text.counting import CountedDocument, Tally, matrix
from ...data.text.vocabulary import Words
from ...models.topics.count_input import column_words
from ...models.topics.topic_model import TopicModel
from ...runs.atomic import write_atomically
from ...runs.sanitise import printable
from .mixtures import write_mixtures
from .source import Label, TextSource, open_source

if TYPE_CHECKING:
    from .topics_command import TopicsApply

_WEIGHTS, _TEXT = "model.safetensors", "text.json"
_BATCH = 512


def save_model(folder: Path, model: TopicModel, words: Words | None) -> None:
    """Write the folder; the weights come last."""
    folder.mkdir(parents=True, exist_ok=True)
    text = {"least_letters": None if words is None else words.least_letters}
    write_atomically(folder / _TEXT, (json.dumps(text) + "\n").encode())
    model.save(folder / _WEIGHTS)


def load_model(path: Path) -> tuple[TopicModel, Words | None]:
    """The model in a file, in a model's folder, or in the folder of ``gengs topics fit``.

    With it comes how to split text for it, nothing if it was fitted to counts.

    Raises:
        FileNotFoundError: If there is none, or it is not finished.
        ValueError: If it is damaged.
    """
    file = path
    if path.is_dir():
        places = [path / _WEIGHTS, path / "model" / _WEIGHTS]
        found = [place for place in places if place.is_file()]
        if not found:
            hint = ""
            if (path / "corpus.json").exists():
                hint = "; go on with gengs topics fit ... --resume"
            elif (path / "records.jsonl").exists():
                hint = ": it is the folder of another command, and gengs topics fit is the one "
                hint += "that writes a model to use on documents"
            raise FileNotFoundError(f"{path} has no finished topic model{hint}.")
        file = found[0]
    model = TopicModel.load(file)
    settings = file.parent / _TEXT
    words = None
    if settings.is_file():
        try:
            least = json.loads(settings.read_bytes())["least_letters"]
            words = None if least is None else Words(int(least))
        except (ValueError, KeyError, TypeError) as error:
            raise ValueError(f"{settings} is damaged: {error}") from None
    return model, words


def apply(command: TopicsApply) -> None:
    """Write the intensities, and say what was met.

    Raises:
        ValueError: If the file cannot be read, or none of its words is known.
    """
    if command.out.suffix not in (".csv", ".npy"):
        raise ValueError(f"expected a .csv or .npy file to write, but got {command.out}.")
    if command.refine < 0:
        raise ValueError(f"expected a --refine of at least 0, but got {command.refine}.")
    model, words = load_model(command.model)
    model.n_refine = command.refine
    known = column_words(model, None)
    source = open_source(command.corpus, command.reading)
    if words is None and isinstance(source, TextSource):
        raise ValueError(
            f"{command.model} was fitted to counts and does not know how to read text; expected "
            ".npz or .feat."
        )
    tally = Tally()
    documents = source.labelled(known, tally, words)
    command.out.parent.mkdir(parents=True, exist_ok=True)
    table, array = (command.out if command.out.suffix == s else None for s in (".csv", ".npy"))
    batches = _batches(documents, len(known), tally, command.corpus)
    write_mixtures(model, batches, table, array, command.values)
    share = tally.known / max(tally.known + tally.unknown, 1)
    without = f"; documents without any: {tally.empty:,}" if tally.empty else ""
    print(
        f"{tally.documents:,} documents; words in the model's vocabulary: {tally.known:,}, "
        f"{share:.0%} of all{without}"
    )
    print(printable(f"written: {command.out}"))


def _batches(
    documents: Iterator[tuple[Label, CountedDocument]], words: int, tally: Tally, path: Path
) -> Iterator[tuple[list[Label], Any]]:
    """Some documents at a time; an error at their end, before a file appears, if no word is known.

    Yields:
        Labels, and counts as a sparse matrix.
    """
    while part := list(islice(documents, _BATCH)):
        labels, counted = zip(*part, strict=True)
        yield list(labels), matrix(counted, words)
    if tally.documents and not tally.known:
        raise ValueError(f"no word of {path} is in the model's vocabulary.")
