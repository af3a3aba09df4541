"""Word counts in memory and on disk."""

import json

import numpy as np
import pytest
import scipy.sparse
import torch

from gengs.data import Corpus
from gengs.data.corpus_folder import CorpusWriter


@pytest.fixture
def counts():
    matrix = scipy.sparse.random_array(
        (300, 40), density=0.1, format="csr", rng=np.random.default_rng(0)
    )
    matrix.data = np.ceil(matrix.data * 5)
    return matrix


@pytest.fixture
def corpus(counts):
    return Corpus(counts, [f"w{i}" for i in range(40)], np.arange(300) % 3, ["a", "b", "c"])


@pytest.mark.parametrize("where", ["memory", "disk"])
def test_what_a_corpus_knows(corpus, counts, where, tmp_path):
    if where == "disk":
        corpus.save(tmp_path / "corpus")
        corpus = Corpus.open(tmp_path / "corpus")
        assert isinstance(corpus.indices, np.memmap) and isinstance(corpus.data, np.memmap)
    dense = counts.toarray()
    assert len(corpus) == 300 and corpus.words == 40 and corpus.shape == (300, 40)
    assert corpus.tokens == dense.sum() and repr(corpus).startswith("Corpus(300 documents, 40 w")
    some = [3, 3, 299, -1, 0]
    torch.testing.assert_close(corpus.rows(some), torch.from_numpy(dense[some]).float())
    assert corpus.rows([]).shape == (0, 40)
    np.testing.assert_array_equal(corpus.counts.toarray(), dense)
    np.testing.assert_array_equal(corpus.lengths, dense.sum(1))
    np.testing.assert_array_equal(corpus.totals(), dense.sum(0))
    np.testing.assert_array_equal(corpus.document_frequency(), (dense > 0).sum(0))
    assert corpus.unigram().sum() == pytest.approx(1, abs=1e-6)
    np.testing.assert_allclose(corpus.unigram(1.0), (dense.sum(0) + 1) / (dense.sum() + 40), 1e-5)
    part = corpus.take([5, 7])
    np.testing.assert_array_equal(part.counts.toarray(), dense[[5, 7]])
    assert part.labels.tolist() == [2, 1] and part.label_names == ("a", "b", "c")
    with pytest.raises(IndexError, match=r"documents from 0 to 299, but got \[300\]"):
        corpus.rows([300])


def test_long_arrays_are_summed_in_parts(corpus, monkeypatch):
    before = corpus.tokens, corpus.document_frequency()
    monkeypatch.setattr("gengs.data.corpus._CHUNK", 17)
    assert corpus.tokens == before[0]
    assert (corpus.document_frequency() == before[1]).all()


def test_empty_documents_and_empty_corpora(tmp_path):
    for documents in (0, 3):
        corpus = Corpus(scipy.sparse.csr_array((documents, 4)), "abcd")
        corpus.save(tmp_path / str(documents))
        for one in (corpus, Corpus.open(tmp_path / str(documents))):
            assert len(one) == documents and one.tokens == 0
            assert one.lengths.tolist() == [0.0] * documents
            assert one.totals().tolist() == [0.0] * 4 and one.labels is None
            assert one.rows(range(documents)).shape == (documents, 4)


def test_words_named_twice_are_added_up():
    twice = scipy.sparse.csr_array(([1, 2], [1, 1], [0, 2]), shape=(1, 3))
    corpus = Corpus(twice, "abc")
    assert corpus.rows([0]).tolist() == [[0, 3, 0]] and corpus.document_frequency()[1] == 1


def test_the_folder_appears_when_it_is_whole(corpus, tmp_path):
    folder = tmp_path / "corpus"
    with CorpusWriter(folder) as writer:
        writer.append([0, 2], [1, 1])  # and never finished
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".corpus.partial").mkdir()  # what a killed process left
    (tmp_path / ".corpus.partial" / "data.npy").write_bytes(b"torn")
    corpus.save(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus"]
    with pytest.raises(FileExistsError, match="expected a new folder for the corpus"):
        corpus.save(folder)
    assert Corpus.open(folder).tokens == corpus.tokens


def test_the_writer_takes_documents_one_by_one(tmp_path):
    with CorpusWriter(tmp_path / "corpus") as writer:
        for words, numbers in ([[0, 2], [1, 3]], [[], []], [[1], [7]]):
            writer.append(words, numbers)
        assert len(writer) == 3 and writer.tokens == 11
        writer.finish(["a", "ü", "<b>"])
    corpus = Corpus.open(tmp_path / "corpus")
    assert corpus.rows(range(3)).tolist() == [[1, 0, 3], [0, 0, 0], [0, 7, 0]]
    assert corpus.vocabulary == ("a", "ü", "<b>")


def test_damaged_folders_are_refused(corpus, tmp_path):
    folder = tmp_path / "corpus"
    with pytest.raises(ValueError, match="is not the folder of a corpus"):
        Corpus.open(folder)
    corpus.save(folder)
    facts = (folder / "corpus.json").read_text()
    (folder / "corpus.json").write_text("{")
    with pytest.raises(ValueError, match=r"corpus\.json is damaged"):
        Corpus.open(folder)
    (folder / "corpus.json").write_text('{"format": "other"}')
    with pytest.raises(ValueError, match="does not describe a corpus"):
        Corpus.open(folder)
    (folder / "corpus.json").write_text(json.dumps({**json.loads(facts), "version": 9}))
    with pytest.raises(ValueError, match=r"version 1 of a corpus .* but got 9"):
        Corpus.open(folder)
    (folder / "corpus.json").write_text(facts)
    whole = (folder / "data.npy").read_bytes()
    (folder / "data.npy").write_bytes(whole[:-8])
    with pytest.raises(ValueError, match=r"is damaged: data\.npy"):
        Corpus.open(folder)
    np.save(folder / "data.npy", np.ones(3))
    with pytest.raises(ValueError, match="its parts do not fit together"):
        Corpus.open(folder)
    np.save(folder / "data.npy", np.array([{}, {}]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"is damaged: data\.npy: .*Python objects"):
        Corpus.open(folder)


def test_mistakes_are_named(counts):
    words = [f"w{i}" for i in range(40)]
    with pytest.raises(TypeError, match="a SciPy sparse matrix as `counts`, but got ndarray"):
        Corpus(np.eye(3), "abc")
    with pytest.raises(ValueError, match=r"a word for each of the 40 columns .* but got 39 words"):
        Corpus(counts, words[:-1])
    with pytest.raises(ValueError, match="a label for each of the 300 documents"):
        Corpus(counts, words, [1, 2])
    bad = counts.copy()
    bad.data[4] = -1
    with pytest.raises(ValueError, match=r"`counts` of at least 0, but the least one is -1"):
        Corpus(bad, words)
    bad.data[4] = np.nan
    with pytest.raises(ValueError, match="some are NaN or infinite"):
        Corpus(bad, words)
