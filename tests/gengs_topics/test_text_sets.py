"""Text data sets: the embedded sample, the real files where they are at hand, the formats."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse
import torch

from gengs_topics.text import CORPORA, Corpus, load_corpus, rcv1
from gengs_topics.text.counts_files import read_counts, read_feat, read_vocabulary
from gengs_topics.text.text_sets import sample_documents

DATA = os.environ.get("GENGS_DATA")
SHARED = DATA and all(Path(DATA, name).is_dir() for name in ("20news", "rcv1_sample", "imdb"))
needs_files = pytest.mark.skipif(not SHARED, reason="GENGS_DATA has no text files")


def unigram_perplexity(train, test):
    """Per document, as published."""
    log_shares = train.unigram(1e-9).double().log().numpy()
    return np.exp(-np.mean((test.counts @ log_shares) / test.lengths))


def test_the_sample_is_embedded():
    train, test = load_corpus()
    assert (len(train), len(test), train.words) == (1615, 332, 2000)
    assert train.vocabulary == test.vocabulary and len(set(train.vocabulary)) == 2000
    assert train.label_names == test.label_names and len(train.label_names) == 12
    assert set(train.labels) == set(test.labels) == set(range(12))
    assert train.lengths.min() >= 5 and test.lengths.min() >= 5
    assert train.document_frequency().min() >= 3
    documents = sample_documents()
    assert len({document.package for document in documents}) == 1947
    # the section is in the words: the nearest centroid finds it
    shares = torch.stack([train.take(train.labels == k).unigram(0.1).log() for k in range(12)])
    guess = (test.rows(range(332)) @ shares.T).argmax(1).numpy()
    assert (guess == test.labels).mean() > 0.75


@needs_files
@pytest.mark.parametrize(
    ("name", "documents", "words", "tokens", "perplexity"),
    [
        ("20news", (11_268, 7_505), 2_000, (1_128_881, 720_898), 1205.7),
        ("reuters", (12_865, 5_458), 10_000, (968_470, 375_319), None),
        ("rcv1-sample", (2_000, 316), 10_000, (210_802, 33_437), None),
        ("imdb", (25_000, 25_000), 5_000, (2_374_149, 2_324_290), None),
    ],
)
def test_real_files(name, documents, words, tokens, perplexity):
    train, test = load_corpus(name)
    assert (len(train), len(test)) == documents and train.words == test.words == words
    assert (train.tokens, test.tokens) == tokens
    assert len(set(train.vocabulary)) == words
    assert len(train.labels) == len(train) and test.lengths.min() > 0
    if perplexity is not None:
        assert unigram_perplexity(train, test) == pytest.approx(perplexity, abs=0.1)
    if train.label_names is not None:
        assert max(train.labels.max(), test.labels.max()) < len(train.label_names)


def test_unknown_sets_are_named():
    with pytest.raises(ValueError, match=r"'20new'.* '20news'"):
        load_corpus("20new")
    assert list(CORPORA) == ["sample", "20news", "reuters", "rcv1-sample", "rcv1", "imdb"]


def test_missing_files_say_where_to_put_them(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("GENGS_DATA", "")
    for name, file in (
        ("reuters", "reuters21578/train.feat"),
        ("rcv1", r"rcv1/lyrl2004_tokens_train\.dat"),
        ("imdb", "imdb/train_bow.npz"),
    ):
        with pytest.raises(FileNotFoundError, match=rf"{file}.* is not in .*; put it at .*{file}"):
            load_corpus(name, tmp_path)


# ------------------------------------------------------------------------------------------ RCV1


def write_tokens(path, stories, corpus):
    """Real documents in the layout of the official files: tokens in lines of at most 80."""
    lines = []
    for story in stories:
        row = corpus.counts[[story]]
        tokens = np.repeat(np.array(corpus.vocabulary)[row.indices], row.data.astype(int))
        lines += [f".I {story + 2286}", ".W"]
        text = ""
        for token in tokens:
            if len(text) + len(token) > 80:
                lines.append(text.strip())
                text = ""
            text += f"{token} "
        lines += [text.strip(), ""]
    data = ("\n".join(lines) + "\n").encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)


@pytest.fixture(scope="module")
def stories():
    return load_corpus("rcv1-sample" if SHARED else "sample")[0]


def test_rcv1_from_token_files(tmp_path, monkeypatch, stories):
    """The whole way, from five files of real documents to a mapped corpus in the cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(rcv1, "_STORIES", 500)
    monkeypatch.setattr(rcv1, "_TEST", 60)
    parts = np.array_split(np.arange(500), 5)
    for name, end, part in zip(rcv1.FILES, ["", ".gz", ".gz", "", ".gz"], parts, strict=True):
        write_tokens(tmp_path / f"data/rcv1/lyrl2004_tokens_{name}.dat{end}", part, stories)
    train, test = load_corpus("rcv1", tmp_path / "data")
    assert (len(train), len(test)) == (440, 60) and isinstance(train.data, np.memmap)
    assert train.vocabulary == test.vocabulary
    totals = train.totals()
    assert (totals[:-1] >= totals[1:]).all()  # the most frequent first
    # all counts of words that the training part has are there, whichever part they fell into
    original = stories.take(range(500))
    columns = [original.vocabulary.index(word) for word in train.vocabulary]
    expected = original.totals()[columns]
    assert (train.totals() + test.totals() == expected).all()
    lengths = sorted(original.counts[:, columns].sum(1))
    assert sorted([*train.lengths, *test.lengths]) == lengths
    # the next time the files are not needed
    again, _ = load_corpus("rcv1")
    assert (again.counts != train.counts).nnz == 0


def test_rcv1_words_and_split(tmp_path, stories):
    path = tmp_path / "tokens.dat"
    write_tokens(path, range(100), stories)
    rcv1.convert_rcv1([path], tmp_path / "made", 100, test=10, words=50)
    train, test = (Corpus.open(tmp_path / "made" / part) for part in ("train", "test"))
    assert len(train) == 90 and len(test) == 10 and train.words == 50
    with pytest.raises(ValueError, match=r"804,414 stories.* 100"):
        rcv1.convert_rcv1([path], tmp_path / "made", 804_414)


def test_token_files_of_another_form(tmp_path, stories):
    path = tmp_path / "tokens.dat.gz"
    for text, message in (
        ("word", r"expected '\.I number', then '\.W', in line 1 of .*, but got 'word'"),
        (".I x\n.W\na", r"in line 1 of .*, but got '\.I x'"),
        (".I 3\n.I 4\n", r"in line 2 of .*, but got '\.I 4'"),
        (".I 3\na\n", r"in line 2 of .*, but got 'a'"),
        (".I 3\n.W\na\n.I 4\n", r"expected '\.W' after line 4 of .*, but the file ends"),
    ):
        path.write_bytes(gzip.compress(text.encode()))
        with pytest.raises(ValueError, match=message):
            list(rcv1.stream_tokens(path))
    write_tokens(path, range(50), stories)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"damaged after line \d+"):
        list(rcv1.stream_tokens(path))


# ----------------------------------------------------------------------------------------- files


def test_feat_files(tmp_path):
    path = tmp_path / "train.feat"
    path.write_text("3 2:1 1:4\n\n7\n1 3:2\n")
    corpus = read_feat(path, ["a", "b", "c", "d"])
    assert corpus.rows(range(3)).tolist() == [[4, 1, 0, 0], [0] * 4, [0, 0, 2, 0]]
    assert corpus.labels.tolist() == [3, 7, 1]
    for line, message in (
        ("1 1:1 5:1", r"ids from 1 to 4 and counts .* line 2 of .*, but got '5:1'"),
        ("1 0:1", r"ids from 1 to 4 .* but got '0:1'"),
        ("1 2:-3", "counts from 0 to 16,777,216 in line 2 of .*, but got '2:-3'"),
        ("1 2:16777217", "but got '2:16777217'"),
        (f"1 2:1{'0' * 400}", "counts from 0 to 16,777,216 in line 2 of .*, but got '2:10+'.$"),
        ("1 2:0.5", "whole numbers, in line 2 of .*, but got '1 2:0.5'"),
        ("1 2", r"expected 'label id:count ...', whole numbers, in line 2 of .*, but got '1 2'"),
        ("1 2:3:4", "in line 2 of .*, but got '1 2:3:4'"),
        ("x 2:3", "in line 2 of .*, but got 'x 2:3'"),
        ("1 2:x", "in line 2 of .*, but got '1 2:x'"),
    ):
        path.write_text(f"1 1:1\n{line}\n")
        with pytest.raises(ValueError, match=message):
            read_feat(path, "abcd")
    path.write_text("\n")
    with pytest.raises(ValueError, match=r"documents.* empty"):
        read_feat(path, "abcd")


def test_vocabulary_files(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("who 12\nzoë 3\nout\n", encoding="utf-8")
    assert read_vocabulary(path) == ["who", "zoë", "out"]
    for content, message in (
        (b"a\nb\na 3\n", "each word once in .*, but 'a' is in lines 1 and 3"),
        (b"a\n\nb\n", "a word in line 2 of .*, but it is empty"),
        (b"a\n\xff\n", "line 2 of .* is not utf-8"),
        (b"", "expected words in .*, but the file is empty"),
    ):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=message):
            read_vocabulary(path)


def test_counts_files(tmp_path):
    path, matrix = tmp_path / "counts.npz", scipy.sparse.csr_array(np.eye(3, dtype=np.int64) * 2)
    for kind in (matrix, matrix.tocsc(), scipy.sparse.coo_matrix(matrix)):
        scipy.sparse.save_npz(path, kind)
        np.testing.assert_array_equal(read_counts(path).toarray(), np.eye(3) * 2)
    whole = path.read_bytes()
    path.write_bytes(whole[:-30])
    with pytest.raises(ValueError, match="read as a sparse matrix"):
        read_counts(path)
    np.savez(path, other=np.eye(3))
    with pytest.raises(ValueError, match="read as a sparse matrix"):
        read_counts(path)
    np.savez(path, data=np.array([{}]), indices=[0], indptr=[0, 1], shape=[1, 1], format=b"csr")
    with pytest.raises(ValueError, match=r"cannot be read .*allow_pickle"):
        read_counts(path)
    arrays = {"data": [1.0], "indptr": [0, 1], "shape": [1, 1], "format": b"csr"}
    np.savez(path, indices=[7], **arrays)
    with pytest.raises(ValueError, match="read as a sparse matrix"):
        read_counts(path)
    for value, said in ((0.5, "0.5; weights such as tf-idf are no counts"), (1e30, r"1e\+30")):
        scipy.sparse.save_npz(path, matrix * value / 2)
        with pytest.raises(ValueError, match=rf"in .*counts\.npz, whole numbers .* but got {said}"):
            read_counts(path)
    with pytest.raises(FileNotFoundError):
        read_counts(tmp_path / "none.npz")
