"""No document spoils the others' fit, however long it is."""

import numpy as np
import pytest
import scipy.sparse

import gengs_topics
from gengs_topics.model.document_weights import starting_shares, typical_length


def documents(seed, n=300):
    """Forty words each, from a law over twenty."""
    shares = np.random.default_rng(0).dirichlet(np.full(20, 3.0))
    return np.random.default_rng(seed).multinomial(40, shares, n)


@pytest.mark.parametrize("weigh", ["documents", "tokens"])
@pytest.mark.parametrize("words", ["urn", "multinomial"])
def test_a_document_of_a_million_words_does_not_ruin_the_fit(weigh, words):
    counts, others = documents(1), documents(2)
    shares = counts.sum(0) / counts.sum()
    unigram = np.exp(-(others @ np.log(shares)).sum() / others.sum())
    counts[0] = np.random.default_rng(3).multinomial(1_000_000, np.eye(20)[3])
    model = gengs_topics.TopicModel(
        5, hidden=(32,), rates=3.0, level=12, max_iter=3, weigh=weigh, words=words, random_state=0
    )
    assert model.fit(counts).perplexity(others) < 1.1 * unigram


def test_frequencies_to_begin_with_are_means_over_documents_or_over_tokens():
    counts = scipy.sparse.csr_array([[8, 0, 0], [0, 1, 1], [0, 0, 0], [1, 1, 0]])
    by_document = starting_shares(counts, "documents")  # typical: 4 of 8, 2, 2
    assert np.allclose(by_document * 13.5, [4 + 2 + 0.5, 2 + 2 + 0.5, 2 + 0.5])
    assert np.allclose(starting_shares(counts, "tokens") * 13.5, [9.5, 2.5, 1.5])


def test_the_typical_length_is_a_mean_that_no_document_rules():
    counts = scipy.sparse.csr_array(np.diag([2, 4, 0, 6, 10**6]))
    assert typical_length(counts) == pytest.approx((2 + 4 + 6 + 50) / 4)
    assert typical_length(counts, [0, 1]) == 3
    assert typical_length(counts[2:3]) == 1.0  # there is none
