"""Where documents come from: text files, a file of counts, or the embedded sample.

A source gives each document a label for people: its number, its line, its name, and how it begins.
Files of counts have no text; the first words of a document stand for it.
"""

from __future__ import annotations

__all__ = ["CountSource", "Label", "Source", "TextSource", "open_source"]

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import Any, NamedTuple

from ...data.text.corpus import Corpus
from ...data.text.counting import CountedDocument, Tally, count_words
from ...data.text.counts_files import read_counts, read_vocabulary, stream_feat
from ...data.text.documents import Document, TextFile
from ...data.text.text_sets import sample_documents
from .topics_command import Reading

_EXCERPT = 280


class Label(NamedTuple):
    """What a person is told about a document."""

    line: int
    """Where it is in the file, counted from one."""
    name: str
    """What it is called, or nothing."""
    excerpt: str
    """How it begins."""


@dataclass(frozen=True)
class TextSource:
    """Documents as text."""

    path: Path | None
    """The file or folder; none for the embedded sample."""
    documents: Iterable[Document]

    def labels(self) -> Iterator[Label]:
        """The label of each document."""
        return map(_label, self.documents)

    def labelled(
        self, known: Sequence[str], tally: Tally, split: Any
    ) -> Iterator[tuple[Label, CountedDocument]]:
        """The label of each document, and the counts of those of its words that are ``known``."""
        one, other = tee(self.documents)
        counted = count_words((split(document.text) for document in one), known, tally)
        return zip(map(_label, other), counted, strict=True)


@dataclass(frozen=True)
class CountSource:
    """Documents as counts, with a vocabulary of their own."""

    path: Path
    vocabulary: list[str]

    def counted(self, known: Sequence[str], tally: Tally) -> Iterator[CountedDocument]:
        """The counts of each document, in the columns of the words that are ``known``."""
        column = {word: number for number, word in enumerate(known)}
        places = [column.get(word) for word in self.vocabulary]
        for pairs in self._pairs():
            found = sorted((place, n) for c, n in pairs if (place := places[c]) is not None)
            tally.documents += 1
            tally.empty += not found
            tally.known += round(sum(n for _, n in found))
            tally.unknown += round(sum(n for c, n in pairs if places[c] is None))
            yield CountedDocument([place for place, _ in found], [n for _, n in found])

    def _pairs(self) -> Iterator[list[tuple[int, int]]]:
        """The columns and counts of each document."""
        if self.path.suffix == ".feat":
            for _, columns, counts in stream_feat(self.path, len(self.vocabulary)):
                yield list(zip(columns, counts, strict=True))
            return
        for row in Corpus(read_counts(self.path), self.vocabulary).counts:
            yield list(zip(row.indices.tolist(), row.data.tolist(), strict=True))

    def labels(self) -> Iterator[Label]:
        """The most frequent words of each document."""
        for number, pairs in enumerate(self._pairs(), 1):
            most = sorted(((n, column) for column, n in pairs), reverse=True)
            words = " ".join(self.vocabulary[column] for _, column in most[:30])
            yield Label(number, "", excerpt(words))

    def labelled(
        self, known: Sequence[str], tally: Tally, split: Any = None
    ) -> Iterator[tuple[Label, CountedDocument]]:
        """The label of each document, and the counts of those of its words that are ``known``."""
        return zip(self.labels(), self.counted(known, tally), strict=True)


Source = TextSource | CountSource


def open_source(corpus: Path, reading: Reading) -> Source:
    """The documents of a file, of a folder, or of ``sample``, the embedded one.

    Raises:
        ValueError: If the file is of another kind, or lacks its vocabulary.
        FileNotFoundError: If there is none.
    """
    if str(corpus) == "sample" and not corpus.exists():
        sample = [Document(k, d.text, d.package) for k, d in enumerate(sample_documents(), 1)]
        return TextSource(None, sample)
    if not corpus.exists():
        raise FileNotFoundError(f"there is no file or folder {corpus}.")
    if corpus.suffix in (".npz", ".feat"):
        if reading.vocabulary is None:
            raise ValueError(
                f"expected --vocabulary, a file with the word of each column, for {corpus}."
            )
        source = CountSource(corpus, read_vocabulary(reading.vocabulary))
        if corpus.suffix == ".npz":
            columns, words = read_counts(corpus).shape[1], len(source.vocabulary)
            if columns != words:
                raise ValueError(
                    f"expected {columns} words in the vocabulary of {corpus}, but got {words}."
                )
        return source
    if reading.vocabulary is not None:
        raise ValueError("--vocabulary is for .npz and .feat files; text makes its own.")
    file = TextFile(
        corpus,
        field=reading.field,
        name_field=reading.name_field,
        encoding=reading.encoding,
        errors=reading.errors,
        longest_line=reading.longest_line,
    )
    return TextSource(corpus, file)


def _label(document: Document) -> Label:
    return Label(document.line, document.name, excerpt(document.text))


def excerpt(text: str) -> str:
    """The beginning of a text, in one line, ended at a word."""
    # half of a pair of surrogates, which JSON may hold, cannot be written
    line = " ".join(text[: 4 * _EXCERPT].split()).encode("utf-8", "replace").decode()
    if len(line) <= _EXCERPT:
        return line
    return line[:_EXCERPT].rsplit(" ", 1)[0] + " …"
