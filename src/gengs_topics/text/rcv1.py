"""The Reuters Corpus, Volume 1, from the token files of Lewis, Yang, Rose & Li (JMLR 2004).

The corpus RCV1-v2/LYRL2004 has 804,414 newswire stories of 1996 and 1997, published as stemmed
tokens without stop words: ``lyrl2004_tokens_train.dat`` and ``lyrl2004_tokens_test_pt0.dat`` to
``pt3.dat``, each perhaps with ``.gz`` (online appendix 12 of the paper). A story is a line with its
number, ``.I 2286``, a line ``.W``, and lines of tokens.

As in Replicated Softmax (Hinton & Salakhutdinov, 2009) and NVDM, the vocabulary is the 10,000 most
frequent tokens of the training part, and 10,000 random stories are for testing. Their own choice of
stories is not published, so ours is another one. The files are read once; the counts are then kept
in the cache folder and mapped from there.
"""

__all__ = ["convert_rcv1", "load_rcv1", "stream_tokens"]

import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import compress
from pathlib import Path

import torch

from gengs_experiments.data.archive import cache_folder, data_folders, not_found
from gengs_experiments.data.batches import keyed_generator

from .corpus import Corpus
from .counting import count_words, write_corpus
from .documents import numbered_lines

FILES = ("train", "test_pt0", "test_pt1", "test_pt2", "test_pt3")
_STORIES, _TEST, _WORDS = 804_414, 10_000, 10_000
_ORIGIN = "RCV1-v2, online appendix 12 of Lewis et al., JMLR 5, 2004"


def load_rcv1(data_dir: str | Path | None = None) -> tuple[Corpus, Corpus]:
    """The corpus, mapped from the cache; it is made there from the token files if need be."""
    import filelock

    made = cache_folder() / "rcv1" / f"counts-{_WORDS}"
    if not (made / "test").is_dir():
        files = [_find(f"rcv1/lyrl2004_tokens_{part}.dat", data_dir) for part in FILES]
        made.parent.mkdir(parents=True, exist_ok=True)
        with filelock.FileLock(f"{made}.lock"):
            if not (made / "test").is_dir():
                convert_rcv1(files, made, _STORIES, _TEST, _WORDS)
    return Corpus.open(made / "train"), Corpus.open(made / "test")


def stream_tokens(path: Path) -> Iterator[list[str]]:
    """The tokens of each story of a file; an error with the line if it is of another form."""
    number, begun = 0, False
    tokens: list[str] | None = None  # of this story, from '.W' on
    for number, line in numbered_lines(path, "latin-1"):
        match line.split():
            case [".I", story] if story.isdecimal() and (tokens is not None or not begun):
                if tokens is not None:
                    yield tokens
                begun, tokens = True, None
            case [".W"] if begun and tokens is None:
                tokens = []
            case [first, *others] if tokens is not None and first != ".I":
                tokens += [first, *others]
            case [_, *_]:
                raise ValueError(
                    f"expected '.I number', then '.W', in line {number} of {path}, but got "
                    f"{line[:40].strip()!r}."
                )
    if tokens is not None:
        yield tokens
    elif begun:
        raise ValueError(f"expected '.W' after line {number} of {path}, but the file ends.")


def convert_rcv1(
    paths: Sequence[Path], folder: Path, stories: int, test: int = _TEST, words: int = _WORDS
) -> None:
    """Count the tokens of the files into the corpora ``folder/train`` and ``folder/test``.

    So many random stories are for testing, and so many words are kept.
    """
    testing = torch.zeros(stories, dtype=torch.bool)
    testing[torch.randperm(stories, generator=keyed_generator("rcv1", stories))[:test]] = True

    def part(of_test: bool) -> Iterator[list[str]]:
        every = (tokens for path in paths for tokens in stream_tokens(path))
        return compress(every, (testing == of_test).tolist())

    found = sum(1 for path in paths for _ in stream_tokens(path))
    if found != stories:
        raise ValueError(
            f"expected {stories:,} stories in {paths[0].parent}, but got {found:,}: a file is "
            "incomplete or another one."
        )
    frequency = Counter(token for tokens in part(False) for token in tokens)
    kept = sorted(frequency, key=lambda word: (-frequency[word], word))[:words]
    shutil.rmtree(folder, ignore_errors=True)  # what a killed process left
    for name, of_test in (("train", False), ("test", True)):
        write_corpus(count_words(part(of_test), kept), kept, folder / name)


def _find(name: str, data_dir: str | Path | None) -> Path:
    for folder in data_folders(data_dir):
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    raise not_found(f"{name}[.gz]", _ORIGIN, data_dir)
