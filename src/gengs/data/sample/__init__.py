"""A small real corpus that needs no download: what 1,947 Debian packages are for.

Each document is the description of a package, a paragraph or two; its label is the section of the
archive it is filed under (games, sound, mathematics, ...). ``README.md`` beside it has the source
and the licence, ``make.py`` the recipe.
"""

from __future__ import annotations

__all__ = ["SampleDocument", "load_sample", "sample_documents"]

import gzip
import json
from collections.abc import Sequence
from importlib.resources import files
from typing import NamedTuple

from ..corpus import Corpus
from ..counting import count_words, matrix
from ..vocabulary import VocabularySettings, choose_vocabulary
from ..words import ENGLISH, Words, read_stop_words


class SampleDocument(NamedTuple):
    """A description of a package."""

    package: str
    """The package."""
    section: str
    """Where the archive files it."""
    text: str
    """What it is for."""
    part: str
    """``train`` or ``test``."""


def sample_documents() -> list[SampleDocument]:
    """The documents, as text."""
    packed = (files(__name__) / "debian.jsonl.gz").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    return [SampleDocument(**json.loads(line)) for line in lines]


def load_sample() -> tuple[Corpus, Corpus]:
    """The documents as counts, for training and for testing.

    Example:
        >>> train, test = load_sample()
        >>> train, test.label_names[:3]
        (Corpus(... documents, 2,000 words, ... tokens), ('database', 'electronics', 'fonts'))
    """
    documents = sample_documents()
    parts = [[d for d in documents if d.part == part] for part in ("train", "test")]
    split = Words()
    vocabulary = choose_vocabulary(
        (split(document.text) for document in parts[0]),
        VocabularySettings(min_df=3, max_df=0.3, size=2000),
        # every document has these: they are what the archive consists of
        {*read_stop_words(ENGLISH), "package", "packages", "provides", "program", "debian"},
    )
    sections = sorted({document.section for document in documents})
    train, test = (_count(part, vocabulary, sections, split) for part in parts)
    return train, test


def _count(
    documents: Sequence[SampleDocument], vocabulary: list[str], sections: list[str], split: Words
) -> Corpus:
    counts = list(count_words((split(document.text) for document in documents), vocabulary))
    labels = [sections.index(document.section) for document in documents]
    return Corpus(matrix(counts, len(vocabulary)), vocabulary, labels, sections)
