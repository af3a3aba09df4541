"""Coherence and diversity of topics, against gensim and by hand."""

import itertools

import numpy as np
import pytest
import scipy.sparse

from gengs_topics.metrics import CoOccurrence, c_v, inverted_rbo, npmi, topic_diversity
from gengs_topics.text import Corpus, load_corpus
from gengs_topics.text.stop_words import read_stop_words
from gengs_topics.text.text_sets import sample_documents
from gengs_topics.text.word_splitting import Words


@pytest.fixture(scope="module")
def sample():
    """Real documents as words, and topics of two kinds: a section's words, and words at random."""
    train, _ = load_corpus("sample")
    counts, topics = train.counts.toarray(), []
    shares = train.unigram(1.0).numpy()
    for section in range(len(train.label_names)):
        inside = counts[train.labels == section].sum(0)
        lift = np.where(inside >= 12, inside / inside.sum() / shares, 0)
        topics.append([train.vocabulary[i] for i in np.argsort(-lift)[:10]])
    rng = np.random.default_rng(3)
    topics += [rng.permutation(train.vocabulary)[:10].tolist() for _ in range(8)]
    split, stop = Words(), read_stop_words("english")
    texts = [[w for w in split(d.text) if w not in stop] for d in sample_documents()]
    return train, topics, texts


def gensim_coherence(measure, topics, texts, width):
    from gensim.corpora.dictionary import Dictionary
    from gensim.models.coherencemodel import CoherenceModel

    model = CoherenceModel(
        topics=topics,
        texts=texts,
        dictionary=Dictionary([*texts, *topics]),
        coherence=measure,
        window_size=width,
        processes=1,
    )
    return np.asarray(model.get_coherence_per_topic())


def present(topics, texts):
    """Topics whose words all occur: gensim divides by zero for others."""
    seen = set(itertools.chain.from_iterable(texts))
    return [topic for topic in topics if set(topic) <= seen]


@pytest.mark.parametrize(("ours", "theirs"), [(npmi, "c_npmi"), (c_v, "c_v")])
def test_whole_documents_agree_with_gensim(sample, ours, theirs):
    _, topics, texts = sample
    topics = present(topics, texts)
    assert len(topics) >= 15
    words = sorted(set(itertools.chain.from_iterable(texts)))
    column = {word: i for i, word in enumerate(words)}
    counts = scipy.sparse.lil_array((len(texts), len(words)))
    for row, text in enumerate(texts):
        for word in text:
            counts[row, column[word]] += 1
    longest = max(map(len, texts)) + 1
    expected = gensim_coherence(theirs, topics, texts, longest)
    np.testing.assert_allclose(ours(topics, Corpus(counts.tocsr(), words)), expected, atol=1e-9)
    windows = CoOccurrence.of_windows(topics, texts, longest)
    np.testing.assert_allclose(ours(windows), expected, atol=1e-9)


@pytest.mark.parametrize(("ours", "theirs", "width"), [(npmi, "c_npmi", 10), (c_v, "c_v", 30)])
def test_sliding_windows_agree_with_gensim_where_no_word_repeats(sample, ours, theirs, width):
    _, topics, texts = sample
    once = [list(dict.fromkeys(text)) for text in texts[:300]]
    topics = present(topics, once)
    expected = gensim_coherence(theirs, topics, once, width)
    windows = CoOccurrence.of_windows(topics, once, width)
    np.testing.assert_allclose(ours(windows), expected, atol=1e-9)


def test_windows_by_brute_force(sample):
    """With repeated words, where gensim forgets the ones that are still in the window."""
    _, topics, texts = sample
    topics, texts, width = present(topics, texts[:60])[:4], texts[:60], 12
    found = CoOccurrence.of_windows(topics, texts, width)
    windows = [
        set(text[start : start + width])
        for text in texts
        for start in range(max(1, len(text) - width + 1))
    ]
    assert found.total == len(windows)
    for topic, joint in zip(topics, found.joint, strict=True):
        for (i, a), (j, b) in itertools.product(enumerate(topic), repeat=2):
            assert joint[i, j] == sum(a in window and b in window for window in windows)


def test_real_topics_are_more_coherent_than_random_words(sample):
    train, topics, _ = sample
    values = npmi(topics, train)
    assert values.shape == (20,) and values[:12].min() > values[12:].max() + 0.1
    assert np.isfinite(c_v(topics, train)).all()


def test_parts_add_up(sample, monkeypatch):
    train, topics, texts = sample
    whole = npmi(topics, train)
    windows = CoOccurrence.of_windows(topics, texts[:50], 20)
    monkeypatch.setattr("gengs_topics.metrics.co_occurrence._PART", 100)
    monkeypatch.setattr("gengs_topics.metrics.co_occurrence._ENTRIES", 50)
    np.testing.assert_array_equal(npmi(topics, train), whole)
    again = CoOccurrence.of_windows(topics, texts[:50], 20)
    assert again.total == windows.total
    assert all((a == b).all() for a, b in zip(again.joint, windows.joint, strict=True))


def test_edges_are_defined_and_finite():
    #                                  together  apart  never  always
    counts = scipy.sparse.csr_array([[1, 1, 0, 0, 1], [1, 2, 0, 0, 1], [0, 0, 1, 0, 1]])
    pairs = [[0, 1], [0, 2], [0, 3], [3, 2], [0, 4]]
    np.testing.assert_allclose(npmi(pairs, counts, epsilon=0), [1, -1, -1, -1, 0], atol=1e-12)
    smooth = npmi(pairs, counts)
    assert np.isfinite(smooth).all() and (np.abs(smooth) <= 1).all() and -1 < smooth[1] < -0.9
    everywhere = scipy.sparse.csr_array(np.ones((5, 2)))
    assert npmi([[0, 1]], everywhere) == 1 and c_v([[0, 1]], everywhere) == pytest.approx(1)
    assert np.isfinite(c_v([*pairs, [2], [3]], counts)).all()
    assert npmi([[2]], counts) == 0  # one word has no pairs
    assert npmi([["b", "a"]], Corpus(counts, "abcde"), epsilon=0) == pytest.approx(1)
    nothing = CoOccurrence.of_windows([["a", "b"]], [[], ["c"]], 3)
    assert nothing.total == 2 and npmi(nothing) == -1


def test_mistakes_are_named():
    counts = scipy.sparse.csr_array(np.eye(3))
    with pytest.raises(ValueError, match=r"topic 1.* 'x'.* vocabulary"):
        npmi([["a"], ["x"]], Corpus(counts, "abc"))
    with pytest.raises(ValueError, match=r"topic 0.* \[1, 1\]"):
        npmi([[1, 1]], counts)
    with pytest.raises(ValueError, match=r"columns.* topic 0"):
        npmi([[3]], counts)
    with pytest.raises(ValueError, match="at least one topic"):
        npmi([], counts)
    with pytest.raises(ValueError, match=r"documents to count.* none"):
        npmi([[0, 1]], scipy.sparse.csr_array((0, 3)))
    with pytest.raises(ValueError, match="`epsilon` of at least 0"):
        npmi([[0, 1]], counts, epsilon=-1)
    with pytest.raises(TypeError, match="a `corpus` to count"):
        npmi([[0, 1]])
    with pytest.raises(TypeError, match=r"sparse matrix.* `corpus`.* ndarray"):
        npmi([[0, 1]], np.eye(3))
    with pytest.raises(ValueError, match="`width` of at least 1"):
        CoOccurrence.of_windows([["a"]], [["a"]], 0)


def test_diversity():
    assert topic_diversity([["a", "b"], ["c", "d"]]) == 1
    assert topic_diversity([["a", "b"]] * 4) == 0.25
    with pytest.raises(ValueError, match="topics with words"):
        topic_diversity([[]])


def rbo_by_definition(one, other, p, places=2000):
    """The infinite sum, with the overlap beyond the lists' end extrapolated."""
    k, total = len(one), 0.0
    for depth in range(1, places):
        d = min(depth, k)
        agreement = len(set(one[:d]) & set(other[:d])) / d
        total += (1 - p) * p ** (depth - 1) * agreement
    return total


def test_inverted_rbo():
    rng = np.random.default_rng(0)
    topics = [list(rng.choice(30, 10, replace=False)) for _ in range(6)]
    for p in (0.5, 0.9, 0.98):
        pairs = [rbo_by_definition(a, b, p) for a, b in itertools.combinations(topics, 2)]
        assert inverted_rbo(topics, p) == pytest.approx(1 - np.mean(pairs), abs=1e-9)
    assert inverted_rbo([["a", "b"]]) == 1
    front = inverted_rbo([list("abcd"), list("axyz")])
    back = inverted_rbo([list("abcd"), list("xyza")])
    assert front < back  # the first places count most
    with pytest.raises(ValueError, match="equally many words"):
        inverted_rbo([["a"], ["a", "b"]])
    with pytest.raises(ValueError, match="different words in each"):
        inverted_rbo([["a", "a"]])
    with pytest.raises(ValueError, match="`p` between 0 and 1"):
        inverted_rbo([["a"]], p=1)
