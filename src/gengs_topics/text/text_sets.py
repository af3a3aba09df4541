"""Text data sets, as sparse word counts.

============  ==================================================  =======  =======  ======
name          what                                                  words    train    test
============  ==================================================  =======  =======  ======
sample        descriptions of Debian packages, embedded             2,000    1,615     332
20news        20 Newsgroups as in NVDM (Miao et al.)                2,000   11,268   7,505
reuters       Reuters-21578, the newswire of 1987                  10,000   12,865   5,458
rcv1-sample   2,316 documents of RCV1                              10,000    2,000     316
rcv1          RCV1-v2, the token files of Lewis et al. (2004)      10,000  794,414  10,000
imdb          film reviews (Maas et al.)                            5,000   25,000  25,000
============  ==================================================  =======  =======  ======

Perplexities of different sets, or of the same set with another vocabulary, cannot be compared.
"""

__all__ = ["CORPORA", "SampleDocument", "load_corpus", "sample_documents"]

import gzip
import json
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np

from gengs_experiments.data.archive import fetch_all
from gengs_experiments.runs.config import nearest

from .corpus import Corpus
from .counting import count_words, matrix
from .counts_files import read_counts, read_feat, read_vocabulary
from .rcv1 import load_rcv1
from .stop_words import read_stop_words
from .vocabulary import choose_vocabulary
from .word_splitting import Words

Pair = tuple[Corpus, Corpus]


def load_corpus(name: str = "sample", data_dir: str | Path | None = None) -> Pair:
    """A text data set by name: the documents for training, and those for testing.

    Args:
        name: sample (embedded), 20news, reuters, rcv1-sample, rcv1 or imdb.
        data_dir: Where to look for files first, instead of the folder in ``GENGS_DATA``.

    Example:
        >>> train, test = load_corpus("sample")
        >>> train, test.label_names[:3]
        (Corpus(... documents, 2,000 words, ... tokens), ('database', 'electronics', 'fonts'))
    """
    if name not in CORPORA:
        raise ValueError(f"there is no corpus {name!r}{nearest(name, CORPORA)}")
    # of the files of RCV1, packed or not, no checksums are published
    return load_rcv1(data_dir) if name == "rcv1" else CORPORA[name](*fetch_all(name, data_dir))


class SampleDocument(NamedTuple):
    """A document of the embedded sample: what a package is for."""

    package: str
    section: str
    text: str
    part: str  # ``train`` or ``test``


def sample_documents() -> list[SampleDocument]:
    """The embedded sample, as text: what 1,947 Debian packages are for, a paragraph or two each.

    The label is the section of the archive that a package is filed under (games, sound,
    mathematics, ...). ``debian.md`` beside this file has the source and the licence.
    """
    packed = (files(__package__) / "debian.jsonl.gz").read_bytes()
    lines = gzip.decompress(packed).decode().splitlines()
    return [SampleDocument(**json.loads(line)) for line in lines]


def _sample() -> Pair:
    documents = sample_documents()
    split = Words()
    vocabulary = choose_vocabulary(
        (split(document.text) for document in documents if document.part == "train"),
        # every document has these: they are what the archive consists of
        {*read_stop_words("english"), "package", "packages", "provides", "program", "debian"},
        min_df=3,
        max_df=0.3,
        size=2000,
    )
    sections = sorted({document.section for document in documents})
    labels = np.array([sections.index(document.section) for document in documents])
    counts = list(count_words((split(document.text) for document in documents), vocabulary))
    corpus = Corpus(matrix(counts, len(vocabulary)), vocabulary, labels, sections)
    training = np.array([document.part == "train" for document in documents])
    return corpus.take(training), corpus.take(~training)


def _feat(train: Path, test: Path, words: Path, names: list[str] | None = None) -> Pair:
    vocabulary = read_vocabulary(words)
    return read_feat(train, vocabulary, names), read_feat(test, vocabulary, names)


def _reuters(train: Path, test: Path, words: Path, topics: Path) -> Pair:
    return _feat(train, test, words, ["(none)", *topics.read_text().split()])


def _imdb(train: Path, test: Path, words: Path, *labels: Path) -> Pair:
    vocabulary = read_vocabulary(words)
    of_train, of_test = (np.loadtxt(file, dtype=np.int64) for file in labels)
    corpus = Corpus(read_counts(train), vocabulary, of_train)
    return corpus, Corpus(read_counts(test), vocabulary, of_test)


CORPORA: dict[str, Callable[..., Pair]] = {
    "sample": _sample,
    "20news": _feat,
    "reuters": _reuters,
    "rcv1-sample": partial(_feat, names=["(none)", "CCAT", "ECAT", "GCAT", "MCAT"]),
    "rcv1": load_rcv1,
    "imdb": _imdb,
}
"""The readers by name: from the files of a set to documents for training and testing."""
