"""Batches of documents: the rows that were asked for, each once in an epoch, from disk too."""

import numpy as np
import pytest
import scipy.sparse
import torch

from gengs_experiments.data import Batches
from gengs_experiments.data.sparse_rows import dense_rows
from gengs_topics.text.corpus import Corpus


@pytest.fixture
def counts():
    rng = np.random.default_rng(0)
    matrix = scipy.sparse.random_array((37, 11), density=0.3, format="csr", rng=rng)
    matrix.data = np.ceil(9 * matrix.data)
    return matrix


def test_dense_rows_are_the_matrix_rows(counts):
    rows = [5, 0, 36, 5]
    assert np.allclose(dense_rows(counts, rows), counts.toarray()[rows])
    assert dense_rows(counts, []).shape == (0, 11)


def test_a_word_that_is_named_twice_counts_twice():
    twice = scipy.sparse.csr_array((np.array([1.0, 2.0]), np.array([1, 1]), np.array([0, 2])))
    assert dense_rows(twice, [0]).tolist() == [[0.0, 3.0]]


@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, 1e20])
def test_impossible_counts_are_refused(counts, value):
    corpus = Corpus(counts, [f"w{k}" for k in range(11)])
    counts.data[3] = corpus.data[3] = value
    for read in (lambda: dense_rows(counts, np.arange(37)), corpus.totals):
        with pytest.raises(ValueError, match=r"each document.* 16,777,216"):
            read()
    counts.data[3] = 0.5  # scikit-learn's contract has them: a batch is no corpus
    assert dense_rows(counts, np.arange(37)).sum() == counts.sum()


def test_a_column_beyond_the_vocabulary_is_refused(counts):
    counts.indices[0] = 11
    with pytest.raises(ValueError, match=r"columns from 0 to 10.* 11"):
        dense_rows(counts, [int(np.searchsorted(counts.indptr, 0, "right")) - 1])


@pytest.mark.parametrize("block", [1, 4])
def test_an_epoch_has_each_document_once(counts, block, monkeypatch):
    monkeypatch.setattr("gengs_experiments.data.batches._MIXED", 2)
    data = Batches(counts, batch_size=5, seed=3, block=block)
    first, second = data.order(0), data.order(1)
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(37))
    assert first.tolist() != second.tolist()
    assert len(data) == 7 and all(batch.shape == (5, 11) for batch in data.epoch(0))


def test_batches_are_a_function_of_the_step(counts):
    data, again = (Batches(counts, batch_size=6, seed=1) for _ in range(2))
    whole = data.batch(9)
    assert torch.equal(again.batch(9), whole)
    shares = torch.cat([data.batch(9, rank, 3) for rank in range(3)])
    assert sorted(shares.tolist()) == sorted(whole.tolist())


def test_in_order_the_rest_comes_too(counts):
    rows = np.array([30, 2, 7, 9])
    data = Batches(counts, batch_size=3, rows=rows, shuffle=False)
    assert np.allclose(torch.cat(list(data.epoch(0))), counts.toarray()[rows])


def test_a_corpus_on_disk_gives_the_same_batches(counts, tmp_path):
    corpus = Corpus(counts, [f"w{k}" for k in range(11)])
    corpus.save(tmp_path / "corpus")
    mapped = Corpus.open(tmp_path / "corpus")
    assert isinstance(mapped.data, np.memmap)
    for step in (0, 8):
        here, there = (Batches(c, batch_size=4).batch(step) for c in (counts, mapped))
        assert torch.allclose(here, there)
    assert np.allclose(mapped.totals(), counts.toarray().sum(0))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [({"batch_size": 38}, "1 to the 37 documents"), ({"batch_size": 2, "block": 0}, "`block`")],
)
def test_settings_are_checked(counts, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        Batches(counts, **settings)
