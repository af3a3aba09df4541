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

from __future__ import annotations

__all__ = ["CORPORA", "load_corpus"]

from collections.abc import Callable
from pathlib import Path

import numpy as np

from ..study.config import nearest
from .archive import RemoteFile, fetch
from .corpus import Corpus
from .counts_file import read_counts
from .feat import read_feat, read_vocabulary

Pair = tuple[Corpus, Corpus]
DataDir = str | Path | None


def load_corpus(name: str = "sample", data_dir: DataDir = None) -> Pair:
    """A text data set by name: the documents for training, and those for testing.

    Args:
        name: sample (embedded), 20news, reuters, rcv1-sample, rcv1 or imdb.
        data_dir: Where to look for files first, instead of the folder in ``GENGS_DATA``.

    Example:
        >>> train, test = load_corpus("sample")
        >>> train.words == test.words, len(train) > len(test)
        (True, True)
    """
    if name not in CORPORA:
        raise ValueError(f"there is no corpus {name!r}{nearest(name, CORPORA)}")
    return CORPORA[name](data_dir)


def _file(path: str, sha256: str, size: int, origin: str, *urls: str) -> RemoteFile:
    return RemoteFile(path, f"sha256:{sha256}", urls, origin, size)


def _news_file(name: str, sha256: str, size: int) -> RemoteFile:
    url = f"https://raw.githubusercontent.com/ysmiao/nvdm/master/data/20news/{name}"
    return _file(f"20news/{name}", sha256, size, "20 Newsgroups, published with NVDM", url)


TWENTY_NEWS = (
    _news_file(
        "train.feat", "55dfc0cc4e8aac22484ed93a4d785bb171959a00e8ffbca6f13c1c80d8cc4ce5", 4_335_856
    ),
    _news_file(
        "test.feat", "344eff7e61116d72abd6ebc3d3c1e286c0474b41bf85ab09c8b898e0a5ff80c1", 2_830_914
    ),
    _news_file(
        "vocab.new", "afbe73140a0d39578e6ae33914e049e6587768c088a0501392afda20ca3c85a8", 21_748
    ),
)
_REUTERS = "counts made from Reuters-21578, Distribution 1.0"
REUTERS = (
    _file(
        "reuters21578/train.feat",
        "e73743972dbba166c4b1a5f4384be92a6c1c325cfe459a07fd0b192ffeb30fb9",
        3_908_016,
        _REUTERS,
    ),
    _file(
        "reuters21578/test.feat",
        "fadb2695f4223ba592c4aa9ec46fa42285c2ed824c930f7ab23e9ad080a40392",
        1_524_874,
        _REUTERS,
    ),
    _file(
        "reuters21578/vocab.txt",
        "1b76f84698632de92e247998f79c83327fa559525e14a4e960e288a0921611f3",
        111_441,
        _REUTERS,
    ),
)
REUTERS_TOPICS = _file(
    "reuters21578/topics.txt",
    "d876097f8379691fd2cc03d174173b711608a910fe3999036db0cbc25714ef08",
    999,
    _REUTERS,
)
_RCV1 = "counts made from the Reuters Corpus, Volume 1"
RCV1_SAMPLE = (
    _file(
        "rcv1_sample/train.feat",
        "27c19b8005c101df942c0474dbb4dcf8c8421eb573eb27c942c404dcda57c26f",
        913_431,
        _RCV1,
    ),
    _file(
        "rcv1_sample/test.feat",
        "5be9ac7cb68dda48f40c11dffcc31b479413c5cac18a1174bcaf03fba4fc9b9a",
        144_116,
        _RCV1,
    ),
    _file(
        "rcv1_sample/vocab.txt",
        "88f14c79acc31ab3f799f4d84c0babad4934190a3106fdbe148d9c8f82fbdfc0",
        106_224,
        _RCV1,
    ),
)
_IMDB = "reviews of Maas et al., counts published with ECRTM"
IMDB = (
    _file(
        "imdb/train_bow.npz",
        "40439fa63aa7e241719d10262f1a7684c907017b9a479bb30c142962127e34f8",
        3_683_769,
        _IMDB,
    ),
    _file(
        "imdb/test_bow.npz",
        "954e66216be2020640885453fbb97313c1abe845c4077c2544dabbc80f538086",
        3_614_208,
        _IMDB,
    ),
    _file(
        "imdb/vocab.txt",
        "54d4d49fcaf9e3cd1d0db43b4f950ff1f0fb0430dab0a3d7b737e5195b73854e",
        37_895,
        _IMDB,
    ),
)
_LABELS = "d4017749f7213ccf32af87243c7357c02a9904c1c425061fd740806f66b84a06"  # of both parts
IMDB_LABELS = tuple(
    _file(f"imdb/{part}_labels.txt", _LABELS, 50_000, _IMDB) for part in ("train", "test")
)


def _feat_pair(
    files: tuple[RemoteFile, ...], data_dir: DataDir, names: list[str] | None = None
) -> Pair:
    train, test, words = (fetch(file, data_dir) for file in files)
    vocabulary = read_vocabulary(words)
    return read_feat(train, vocabulary, names), read_feat(test, vocabulary, names)


def _sample(_: DataDir) -> Pair:
    from .sample import load_sample

    return load_sample()


def _twenty_news(data_dir: DataDir) -> Pair:
    return _feat_pair(TWENTY_NEWS, data_dir)


def _reuters(data_dir: DataDir) -> Pair:
    topics = fetch(REUTERS_TOPICS, data_dir).read_text().split()
    return _feat_pair(REUTERS, data_dir, ["(none)", *topics])


def _rcv1_sample(data_dir: DataDir) -> Pair:
    # labels count from one
    return _feat_pair(RCV1_SAMPLE, data_dir, ["(none)", "CCAT", "ECAT", "GCAT", "MCAT"])


def _rcv1(data_dir: DataDir) -> Pair:
    from .rcv1 import load_rcv1

    return load_rcv1(data_dir)


def _imdb(data_dir: DataDir) -> Pair:
    train, test, words = (fetch(file, data_dir) for file in IMDB)
    vocabulary = read_vocabulary(words)
    labels = [np.loadtxt(fetch(file, data_dir), dtype=np.int64) for file in IMDB_LABELS]
    return (
        Corpus(read_counts(train), vocabulary, labels[0]),
        Corpus(read_counts(test), vocabulary, labels[1]),
    )


CORPORA: dict[str, Callable[[DataDir], Pair]] = {
    "sample": _sample,
    "20news": _twenty_news,
    "reuters": _reuters,
    "rcv1-sample": _rcv1_sample,
    "rcv1": _rcv1,
    "imdb": _imdb,
}
"""The loaders by name: from a data folder to documents for training and testing."""
