"""Where documents come from: text files, a file of counts, or the embedded sample.

A source gives each document a label for people: its line, its name, and what it says.
Files of counts have no text; the first words of a document stand for it.
"""

__all__ = ["Label", "Source", "label_of", "open_source", "words_of"]

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..text.corpus import Corpus
from ..text.counts_files import read_counts, read_vocabulary, stream_feat
from ..text.documents import Document, TextFile
from ..text.text_sets import sample_documents
from .topics_settings import Reading

_LONGEST = 20_000  # characters to quote from


class Label(NamedTuple):
    """What a person is told about a document."""

    line: int  # where it is in the file, counted from one
    name: str  # what it is called, or nothing
    text: str  # what it says, or the beginning of it


@dataclass(frozen=True)
class Source:
    """Documents; each iteration reads them anew."""

    path: Path | None  # the file or folder; none for the embedded sample
    documents: Iterable[Document]
    vocabulary: Sequence[str] | None = None  # of a file of counts; text makes its own


@dataclass(frozen=True)
class CountsFile:
    """The documents of a ``.npz`` or ``.feat`` file, whose columns have these words."""

    path: Path
    vocabulary: Sequence[str]

    def __iter__(self) -> Iterator[Document]:
        for number, counts in enumerate(self._rows(), 1):
            yield Document(number, {self.vocabulary[c]: n for c, n in counts.items()}, "")

    def _rows(self) -> Iterator[dict[int, int]]:
        if self.path.suffix == ".feat":
            yield from (counts for _, counts in stream_feat(self.path, len(self.vocabulary)))
            return
        for row in Corpus(read_counts(self.path), self.vocabulary).counts:
            yield dict(zip(row.indices.tolist(), row.data.astype(int).tolist(), strict=True))


def open_source(corpus: Path, reading: Reading) -> Source:
    """The documents of a file, of a folder, or of ``sample``, the embedded one.

    Raises:
        ValueError: If the file is of another kind, or lacks its vocabulary.
        FileNotFoundError: If there is none.
    """
    if str(corpus) == "sample" and not corpus.exists():
        sample = [Document(k, d.text, d.package) for k, d in enumerate(sample_documents(), 1)]
        return Source(None, sample)
    if not corpus.exists():
        raise FileNotFoundError(f"there is no file or folder {corpus}.")
    options = dict(vars(reading))
    file, _ = options.pop("vocabulary"), options.pop("tokenizer")
    if corpus.suffix not in (".npz", ".feat"):
        if file is not None:
            raise ValueError("--vocabulary is for .npz and .feat files; text makes its own.")
        return Source(corpus, TextFile(corpus, **options))
    if file is None:
        raise ValueError(
            f"expected --vocabulary, a file with the word of each column, for {corpus}."
        )
    vocabulary = read_vocabulary(file)
    if corpus.suffix == ".npz" and (columns := read_counts(corpus).shape[1]) != len(vocabulary):
        raise ValueError(
            f"expected {columns} words in the vocabulary of {corpus}, but got {len(vocabulary)}."
        )
    return Source(corpus, CountsFile(corpus, vocabulary), vocabulary)


def words_of(
    documents: Iterable[Document], split: Callable[[str], list[str]] | None
) -> Iterator[list[str] | Mapping[str, int]]:
    """The words of each document, as they are where it has a list of them; or their counts."""
    return (split(d.text) if split and isinstance(d.text, str) else d.text for d in documents)


def label_of(document: Document) -> Label:
    """What to call a document; that of counts by its most frequent words."""
    text = document.text
    if isinstance(text, Mapping):
        text = " ".join(sorted(text, key=text.__getitem__)[:-31:-1])
    elif not isinstance(text, str):
        text = " ".join(text)
    return Label(document.line, document.name, text[:_LONGEST])
