"""Word counts in memory and on disk."""

import json

import numpy as np
import pytest
import scipy.sparse
import torch

from gengs_topics.text import Corpus
from gengs_topics.text.corpus import write_folder


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
    with pytest.raises(IndexError, match="300 is out of bounds"):
        corpus.rows([300])


def test_long_arrays_are_summed_in_parts(corpus, monkeypatch):
    before = corpus.tokens, corpus.document_frequency(), corpus.lengths
    monkeypatch.setattr("gengs_topics.text.corpus._BLOCK", 17)
    assert corpus.tokens == before[0]
    assert (corpus.document_frequency() == before[1]).all()
    assert (corpus.lengths == before[2]).all()


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

    def blocks():
        yield corpus.counts[:9]
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_folder(folder, blocks(), corpus.vocabulary)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / ".corpus.partial").mkdir()  # what a killed process left
    (tmp_path / ".corpus.partial" / "data.npy").write_bytes(b"torn")
    corpus.save(folder)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["corpus"]
    with pytest.raises(FileExistsError, match="new folder"):
        corpus.save(folder)
    assert Corpus.open(folder).tokens == corpus.tokens


def test_blocks_of_documents_become_one_corpus(tmp_path):
    blocks = [[[1, 0, 3]], [[0, 0, 0], [0, 7, 0]]]
    write_folder(tmp_path / "corpus", map(scipy.sparse.csr_array, blocks), ["a", "ü", "<b>"])
    corpus = Corpus.open(tmp_path / "corpus")
    assert corpus.rows(range(3)).tolist() == [[1, 0, 3], [0, 0, 0], [0, 7, 0]]
    assert corpus.vocabulary == ("a", "ü", "<b>")
    facts = json.loads((tmp_path / "corpus" / "corpus.json").read_text())
    assert (facts["documents"], facts["words"], facts["nonzeros"]) == (3, 3, 3)


def test_damaged_folders_are_refused(corpus, tmp_path):
    folder = tmp_path / "corpus"
    with pytest.raises(ValueError, match="folder of a corpus"):
        Corpus.open(folder)
    corpus.save(folder)
    facts = (folder / "corpus.json").read_text()
    (folder / "corpus.json").write_text("{")
    with pytest.raises(ValueError, match=r"is damaged: corpus\.json: "):
        Corpus.open(folder)
    (folder / "corpus.json").write_text('{"format": "other"}')
    with pytest.raises(ValueError, match="does not describe a corpus"):
        Corpus.open(folder)
    (folder / "corpus.json").write_text(json.dumps({**json.loads(facts), "version": 9}))
    with pytest.raises(ValueError, match=r"a corpus \(format: gengs corpus; version: 1\)"):
        Corpus.open(folder)
    for missing in ("documents", "words", "nonzeros"):
        some = {name: value for name, value in json.loads(facts).items() if name != missing}
        (folder / "corpus.json").write_text(json.dumps(some))
        with pytest.raises(ValueError, match="parts do not fit"):
            Corpus.open(folder)
    (folder / "corpus.json").write_text(facts)
    whole = (folder / "data.npy").read_bytes()
    (folder / "data.npy").write_bytes(whole[:-8])
    with pytest.raises(ValueError, match=r"is damaged: data\.npy"):
        Corpus.open(folder)
    np.save(folder / "data.npy", np.ones(3))
    with pytest.raises(ValueError, match="parts do not fit"):
        Corpus.open(folder)
    np.save(folder / "data.npy", np.array([{}, {}]), allow_pickle=True)
    with pytest.raises(ValueError, match=r"is damaged: data\.npy: .*Python objects"):
        Corpus.open(folder)


def test_mistakes_are_named(counts):
    words = [f"w{i}" for i in range(40)]
    assert Corpus(np.eye(3), "abc").tokens == 3  # an array is a matrix, too
    with pytest.raises(ValueError, match=r"40 columns.* 39 words"):
        Corpus(counts, words[:-1])
    with pytest.raises(ValueError, match="label for each of the 300"):
        Corpus(counts, words, [1, 2])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (-1, "but got -1."),
        (np.nan, "but got nan."),
        (np.inf, "but got inf."),
        (0.5, "but got 0.5; weights such as tf-idf are no counts."),
        (1e20, r"but got 1e\+20."),
        (1e30, r"but got 1e\+30."),
        (2**24 + 1, r"but got 1.67772e\+07."),
    ],
)
def test_a_count_is_a_whole_number_of_moderate_size(counts, value, said):
    counts.data[4] = value
    sentence = f"counts of words in `counts`, whole numbers from 0 to 16,777,216, {said}$"
    with pytest.raises(ValueError, match=sentence):
        Corpus(counts, [f"w{i}" for i in range(40)])
    counts.data[4] = 2**24
    assert Corpus(counts, [f"w{i}" for i in range(40)]).lengths.max() >= 2**24
    with pytest.raises(ValueError, match=r"`counts`.* complex128"):
        Corpus(counts.astype(complex), [f"w{i}" for i in range(40)])
