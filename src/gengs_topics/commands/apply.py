"""A model's folder, and how much of each topic each document has by it.

``model.safetensors`` is what :meth:`gengs_topics.TopicModel.save` writes, and ``text.json`` beside
it says how documents were split into words, so that later ones are split the same way.

The table (``.csv``) has a row for each document: its number, its line, its name, how many of its
words the model knows, its strongest topics (those that rise above the others; a text without a
known word has none), by how many deviations the first of them rises (little in a text of no
theme), and its intensity, or proportion, of each topic. The array (``.npy``) has these alone. What
the documents use topics for is noted on the way (:mod:`.topic_use`).
"""

from __future__ import annotations

__all__ = ["apply", "load_model", "save_model", "write_mixtures"]

import csv
import json
import os
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice, tee
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

import numpy as np
import torch

from gengs_experiments.runs.atomic import temporary_name, write_atomically
from gengs_experiments.runs.sanitise import printable, spreadsheet_cell

from ..model.count_input import column_words
from ..model.topic_model import TopicModel
from ..text.counting import Tally, count_words, matrix
from ..text.word_splitting import Split, Words, load_tokenizer
from .option_names import by_option_names
from .source import Label, label_of, open_source, words_of
from .topic_use import TopicUse

if TYPE_CHECKING:
    from .topics_command import TopicsApply

_WEIGHTS, _TEXT = "model.safetensors", "text.json"
_BATCH = 512

Splitting = dict[str, Any]
"""How texts were split: ``least_letters`` and ``tokenizer``, both none for a file of counts."""


def save_model(folder: Path, model: TopicModel, text: Splitting) -> None:
    """Write the folder; the weights come last."""
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / _TEXT, (json.dumps(text) + "\n").encode())
    model.save(folder / _WEIGHTS)


def load_model(path: Path) -> tuple[TopicModel, Splitting]:
    """The model in a file, in a model's folder, or in the folder of ``gengs topics fit``.

    With it comes how to split text for it.

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
                hint = ": if gengs topics fit was interrupted, go on with it by --resume; if its "
                hint += "training diverged, fit again with a smaller --learning-rate"
            elif (path / "records.jsonl").exists():
                hint = ": it is the folder of another command, and gengs topics fit is the one "
                hint += "that writes a model to use on documents"
            raise FileNotFoundError(f"{path} has no finished topic model{hint}.")
        file = found[0]
    model = TopicModel.load(file)
    settings = file.parent / _TEXT
    if not settings.is_file():
        return model, {"least_letters": None}
    try:
        text = json.loads(settings.read_bytes())
        least = text["least_letters"]
        return model, {**text, "least_letters": None if least is None else int(least)}
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{settings} is damaged: {error}") from None


def _splitter(model: Path, text: Splitting, tokenizer: str | None) -> Split | None:
    """How to split texts as those that a model was fitted to; nothing where these were counts.

    A tokenizer has to be named again by the user: what a file names is never imported.
    """
    if text["least_letters"] is None:
        return None
    if text.get("tokenizer") != tokenizer:
        raise ValueError(
            f"expected the --tokenizer that {model} was fitted with, {text.get('tokenizer')}, but "
            f"got {tokenizer}."
        )
    return Words(text["least_letters"]) if tokenizer is None else load_tokenizer(tokenizer)


@by_option_names()
def apply(command: TopicsApply) -> None:
    """Write the intensities, and say what was met.

    Raises:
        ValueError: If the file cannot be read, or none of its words is known.
    """
    if command.out.suffix not in (".csv", ".npy"):
        raise ValueError(f"expected a .csv or .npy file to write, but got {command.out}.")
    if command.refine < 0:
        raise ValueError(f"expected a --refine of at least 0, but got {command.refine}.")
    model, text = load_model(command.model)
    words = _splitter(command.model, text, command.reading.tokenizer)
    model.n_refine = command.refine
    known = column_words(model, None)
    source = open_source(command.corpus, command.reading)
    if words is None and source.vocabulary is None:
        raise ValueError(
            f"{command.model} was fitted to counts and does not know how to read text; expected "
            ".npz or .feat."
        )
    tally = Tally()

    def batches() -> Iterator[tuple[list[Label], Any]]:
        one, other = tee(source.documents)
        labels, counted = map(label_of, one), count_words(words_of(other, words), known, tally)
        while part := list(islice(labels, _BATCH)):
            yield part, matrix(list(islice(counted, _BATCH)), len(known))
        if tally.documents and not tally.known:  # before a file appears
            raise ValueError(f"no word of {command.corpus} is in the model's vocabulary.")

    command.out.parent.mkdir(parents=True, exist_ok=True)
    write_mixtures(model, batches(), [command.out], command.values)
    share = tally.known / max(tally.known + tally.unknown, 1)
    without = f"; documents without any: {tally.empty:,}" if tally.empty else ""
    print(
        f"{tally.documents:,} documents; words in the model's vocabulary: {tally.known:,}, "
        f"{share:.0%} of all{without}"
    )
    print(printable(f"written: {command.out.resolve()}"))


def write_mixtures(
    model: TopicModel,
    batches: Iterable[tuple[list[Label], Any]],
    paths: Iterable[Path],
    kind: Literal["intensities", "proportions"] = "intensities",
) -> TopicUse:
    """Write the topics of documents; a file appears when it is whole.

    Args:
        model: Fitted.
        batches: Labels and sparse counts of some documents at a time.
        paths: A ``.csv`` file, a ``.npy`` file, or both.
        kind: What to write of each topic.
    """
    use = TopicUse(model.network_)
    topics = len(use.documents)
    with ExitStack() as stack:
        files = {path.suffix: stack.enter_context(_appearing(path)) for path in paths}
        array, lines = files.get(".npy"), csv.writer(files[".csv"]) if ".csv" in files else None
        folder = Path(array.name).parent if array else None
        raw = stack.enter_context(tempfile.TemporaryFile(dir=folder)) if array else None
        if lines is not None:
            names = (f"topic{k}" for k in range(topics))
            lines.writerow(["document", "line", "name", "words", "strongest", "strength", *names])
        for labels, counts in batches:
            found = torch.from_numpy(model.transform(counts))  # (B, K)
            values = model.proportions(counts) if kind == "proportions" else found.numpy()
            before, strongest = use.done, use.add(labels, counts, found)
            if lines is not None:
                lines.writerows(_rows(before, labels, counts, strongest, values))
            if raw is not None:
                raw.write(np.ascontiguousarray(values, np.float32).tobytes())
        if not use.done:
            raise ValueError("expected documents, but there are none.")
        if array is not None and raw is not None:  # the header says how many there are
            raw.flush()
            np.save(array, np.memmap(raw, np.float32, "r", shape=(use.done, topics)))
    return use


@contextmanager
def _appearing(path: Path) -> Iterator[IO[Any]]:
    """A file to write that takes its name when the block has ended well."""
    temporary = temporary_name(path)
    binary = path.suffix == ".npy"
    text = {} if binary else {"encoding": "utf-8", "newline": ""}
    try:
        with temporary.open("wb" if binary else "w", **text) as file:  # type: ignore[call-overload]
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _rows(
    before: int, labels: list[Label], counts: Any, strongest: Any, values: Any
) -> Iterator[list[Any]]:
    words = np.asarray(counts.sum(1)).ravel()
    for k, (label, risen, row) in enumerate(zip(labels, strongest, values, strict=True)):
        name = spreadsheet_cell(label.name.encode("utf-8", "replace").decode())
        first = " ".join(str(topic) for topic, _ in risen)
        facts = [f"{words[k]:g}", first, f"{risen[0][1]:.3g}" if risen else ""]
        yield [before + k + 1, label.line, name, *facts, *(f"{v:.4g}" for v in row)]
