"""The Reuters Corpus, Volume 1, from the token files of Lewis, Yang, Rose & Li (JMLR 2004).

The corpus RCV1-v2/LYRL2004 has 804,414 newswire stories of 1996 and 1997, published as stemmed
tokens without stop words: ``lyrl2004_tokens_train.dat`` and ``lyrl2004_tokens_test_pt0.dat`` to
``pt3.dat``, each perhaps with ``.gz`` (online appendix 12 of the paper). A story is::

    .I 2286
    .W
    recov recov recov recov excit excit bring mexic
    scor

As in Replicated Softmax (Hinton & Salakhutdinov, 2009) and NVDM, the vocabulary is the 10,000 most
frequent tokens of the training part, and 10,000 random stories are for testing. Their own choice of
stories is not published, so ours is another one. The files are read once; the counts are then kept
in the cache folder and mapped from there.
"""

from __future__ import annotations

__all__ = ["DOCUMENTS", "convert_rcv1", "load_rcv1", "stream_tokens"]

import gzip
import os
import shutil
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

import filelock
import torch

from .archive import cache_folder
from .batches import keyed_generator
from .corpus import Corpus
from .corpus_folder import CorpusWriter

FILES = ("train", "test_pt0", "test_pt1", "test_pt2", "test_pt3")
DOCUMENTS = 804_414
_TEST, _WORDS = 10_000, 10_000


def load_rcv1(data_dir: str | Path | None = None) -> tuple[Corpus, Corpus]:
    """The corpus, mapped from the cache; it is made there from the token files if need be."""
    made = cache_folder() / "rcv1" / f"counts-{_WORDS}"
    if not (made / "test").is_dir():
        files = _find(data_dir)
        made.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{made}.lock"):
            if not (made / "test").is_dir():
                convert_rcv1(files, made, _TEST, _WORDS, DOCUMENTS)
    return Corpus.open(made / "train"), Corpus.open(made / "test")


def stream_tokens(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Each story of a token file: its number and its tokens.

    Raises:
        ValueError: If the file is of another form, or ends early; the message has the line.
    """
    story: int | None = None
    tokens: list[str] = []
    reading = False  # after .W
    number = 0
    try:
        with _open(path) as file:
            for number, line in enumerate(file, start=1):
                words = line.decode("latin-1").split()
                if words[:1] == [".I"]:
                    if story is not None:
                        yield story, tokens
                    if len(words) != 2 or not words[1].isdecimal():
                        raise ValueError(_unlike(number, path, line))
                    story, tokens, reading = int(words[1]), [], False
                elif words == [".W"] and story is not None and not reading:
                    reading = True
                elif reading:
                    tokens += words
                elif words:
                    raise ValueError(_unlike(number, path, line))
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} is truncated or damaged after line {number}: {error}") from None
    if story is not None:
        if not reading:
            raise ValueError(f"expected '.W' after line {number} of {path}, but the file ends.")
        yield story, tokens


def convert_rcv1(
    paths: Sequence[Path], folder: Path, test: int = _TEST, words: int = _WORDS, documents: int = 0
) -> None:
    """Count the tokens of the files into the corpora ``folder/train`` and ``folder/test``.

    Args:
        paths: Token files, in their order.
        folder: Where to write; the part for testing is written last.
        test: How many random stories are for testing.
        words: How many words to keep.
        documents: How many stories are expected; 0 for any number.
    """
    total = sum(1 for path in paths for _ in stream_tokens(path))
    if documents and total != documents:
        raise ValueError(
            f"expected {documents:,} stories in {paths[0].parent}, but got {total:,}: a file is "
            "incomplete or another one."
        )
    if not 0 < test < total:
        raise ValueError(f"expected 1 to {total - 1} stories for `test`, but got {test}.")
    generator = keyed_generator("rcv1", total)
    testing = torch.zeros(total, dtype=torch.bool)
    testing[torch.randperm(total, generator=generator)[:test]] = True
    stories = [bool(flag) for flag in testing]

    frequency: Counter[str] = Counter()
    for for_test, tokens in zip(stories, _all(paths), strict=True):
        if not for_test:
            frequency.update(tokens)
    kept = sorted(frequency, key=lambda word: (-frequency[word], word))[:words]
    columns = {word: column for column, word in enumerate(kept)}
    shutil.rmtree(folder, ignore_errors=True)  # what a killed process left
    with CorpusWriter(folder / "train") as train, CorpusWriter(folder / "test") as tests:
        for for_test, tokens in zip(stories, _all(paths), strict=True):
            counts = Counter(columns[token] for token in tokens if token in columns)
            document = sorted(counts)
            (tests if for_test else train).append(document, [counts[word] for word in document])
        train.finish(kept)
        tests.finish(kept)


def _all(paths: Sequence[Path]) -> Iterator[list[str]]:
    return (tokens for path in paths for _, tokens in stream_tokens(path))


def _find(data_dir: str | Path | None) -> list[Path]:
    given = data_dir or os.environ.get("GENGS_DATA")
    folders = [*([Path(given)] if given else []), cache_folder()]
    found = []
    for part in FILES:
        name = f"rcv1/lyrl2004_tokens_{part}.dat"
        paths = [folder / f"{name}{end}" for folder in folders for end in ("", ".gz")]
        there = [path for path in paths if path.is_file()]
        if not there:
            looked = " and ".join(str(folder) for folder in folders)
            raise FileNotFoundError(
                f"{name}[.gz] (RCV1-v2, online appendix 12 of Lewis et al., JMLR 5, 2004) is not "
                f"in {looked}; put it at {folders[-1] / name}, or below a folder of yours that "
                "GENGS_DATA names."
            )
        found.append(there[0])
    return found


def _open(path: Path) -> IO[bytes] | gzip.GzipFile:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")


def _unlike(number: int, path: Path, line: bytes) -> str:
    shown = line[:40].decode("latin-1").strip()
    return f"expected '.I number', then '.W', in line {number} of {path}, but got {shown!r}."
