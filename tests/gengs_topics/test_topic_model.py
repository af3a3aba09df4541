"""``gengs_topics.TopicModel`` as scikit-learn, pipelines, files and strangers use it."""

import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import torch
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

import gengs
import gengs_topics
from gengs_topics.model.topic_file import _digest
from gengs_topics.text.corpus import Corpus
from gengs_topics.text.text_sets import load_corpus

SMALL = {"n_components": 3, "hidden": (8,), "rates": 3.0, "level": 12, "max_iter": 2}


def small(**settings):
    return gengs_topics.TopicModel(**{**SMALL, "random_state": 0, **settings})


def expected_failures(model):
    """None: the contract holds whole."""
    return {}


@parametrize_with_checks(
    # a decay with which the last digit of float32, which one of the checks compares, does not
    # depend on the place of a document in its batch
    [
        gengs_topics.TopicModel(**SMALL),
        gengs_topics.TopicModel(**SMALL, n_refine=2, weight_decay=3.0),
    ],
    expected_failed_checks=expected_failures,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings(
    "ignore:expected counts of words:UserWarning"
)  # its data have fractions
def test_the_contract_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.fixture
def counts():
    return scipy.sparse.csr_array(np.random.default_rng(0).poisson(0.5, (60, 20)))


def test_the_same_seed_gives_the_same_topics_and_leaves_torch_alone(counts):
    before = torch.get_rng_state()
    first, second, other = small().fit(counts), small().fit(counts), small(random_state=1)
    assert np.array_equal(first.components_, second.components_)
    assert first.perplexity(counts) == second.perplexity(counts)
    assert not np.array_equal(first.components_, other.fit(counts).components_)
    assert torch.equal(torch.get_rng_state(), before)


def test_sparse_dense_and_corpus_agree(counts, tmp_path):
    words = [f"w{k}" for k in range(20)]
    corpus = Corpus(counts, words)
    corpus.save(tmp_path / "corpus")
    forms = (counts, counts.toarray(), corpus, Corpus.open(tmp_path / "corpus"))
    fitted = [small().fit(form) for form in forms]
    for model, form in zip(fitted, forms, strict=True):
        assert np.allclose(model.transform(form), fitted[0].transform(counts), atol=1e-5)
    assert fitted[2].vocabulary_ == words and fitted[0].vocabulary_ is None
    assert fitted[2].topics(top=2)[0].words[0] in words


def test_it_learns_a_real_corpus():
    train, test = load_corpus("sample")
    share = (train.totals() + 0.5).numpy()
    unigram = test.counts @ np.log(share / share.sum())
    alone = np.exp(-(unigram / test.lengths).mean())
    model = small(n_components=20, hidden=(64,), rates=10.0, level=30, max_iter=12).fit(train)
    assert model.perplexity(test) < 0.93 * alone
    assert model.score(test) == pytest.approx(-np.log(model.perplexity(test)))
    assert model.perplexity(test, per="corpus") != model.perplexity(test)
    losses = [facts["loss"] for facts in model.history_]
    assert len(losses) == 12 and losses[-1] < losses[0]


def test_partial_fit_goes_on(counts):
    model = small()
    for _ in range(3):
        model.partial_fit(counts)
    assert model.n_iter_ == 3 and len(model.history_) == 3
    before = model.components_.copy()
    model.partial_fit(counts[:7])  # fewer than a batch
    assert not np.array_equal(model.components_, before)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(counts[:, :5])
    with pytest.raises(ValueError, match="expected 20 words"):
        model.transform(Corpus(counts[:, :5], list("abcde")))


def test_early_stopping_keeps_the_best_pass(counts):
    told = []
    model = small(
        max_iter=200, early_stopping=True, patience=2, learning_rate=0.05, on_epoch=told.append,
        n_draws=200,
    ).fit(counts)  # fmt: skip
    assert 2 < model.n_iter_ < 200 and told == model.history_
    best = min(facts["perplexity"] for facts in told)
    assert told[-1]["perplexity"] > best
    held_out = model.trainer_._split(counts, model)[1]
    # the topics were sorted since, so that the draws are others
    found = model.trainer_._validate(counts, held_out, model)
    assert abs(found - best) < 0.5 * abs(found - told[-1]["perplexity"])


def test_early_stopping_holds_out_documents_with_words(counts):
    few = scipy.sparse.vstack([counts[:3], scipy.sparse.csr_array((57, 20), dtype=counts.dtype)])
    for seed in range(5):
        model = small(early_stopping=True, random_state=seed).fit(few)
        assert np.isfinite([facts["perplexity"] for facts in model.history_]).all()
    with pytest.raises(ValueError, match="to hold out"):
        small(early_stopping=True).fit(np.zeros((9, 4)))


def test_pipeline_and_grid_search():
    texts = [
        "cats purr and sleep",
        "dogs bark and run",
        "cats sleep",
        "dogs run",
        "",
        "cat dog",
    ] * 8
    pipeline = make_pipeline(CountVectorizer(), small())
    assert pipeline.fit_transform(texts).shape == (48, 3)
    names = pipeline.get_feature_names_out()
    assert names.tolist() == ["topicmodel0", "topicmodel1", "topicmodel2"]
    search = GridSearchCV(pipeline, {"topicmodel__n_components": [2, 4]}, cv=2).fit(texts)
    assert search.best_params_["topicmodel__n_components"] in (2, 4)
    words = pipeline[0].get_feature_names_out()
    assert all(len(t.words) == 3 for t in pipeline[-1].topics(3, vocabulary=words))


def test_unknown_words_and_empty_documents(counts):
    model = small().fit(counts)
    nothing = model.transform(scipy.sparse.csr_array((2, 20)))
    assert np.isfinite(nothing).all()
    with pytest.raises(ValueError, match="document with a word"):
        model.perplexity(np.zeros((2, 20)))


def test_a_document_does_not_depend_on_its_place():
    rng = np.random.default_rng(0)
    counts = rng.poisson(1.0, (20, 3))
    model = small(n_components=1).fit(counts)
    found = model.transform(counts)
    for order in [rng.permutation(20) for _ in range(50)]:
        assert (model.transform(counts[order]) == found[order]).all()


def test_super_topics(counts):
    model = small(super_topics=(2,)).fit(counts)
    found = model.hierarchy(top=2)
    assert [branch.topic for branch in found] == [0, 1]
    assert all(len(b.children) == 2 and min(b.weights) > 0 for b in found)
    assert small().fit(counts).hierarchy() == []


@pytest.mark.parametrize("form", ["array", "frame", "corpus"])
def test_a_file_brings_back_the_model(counts, tmp_path, form):
    words = [f"w{k}" for k in range(20)]
    data = {
        "array": counts,
        "frame": pd.DataFrame(counts.toarray(), columns=words),
        "corpus": Corpus(counts, words),
    }[form]
    model = small(super_topics=(2,), random_state=np.random.RandomState(3)).fit(data)
    path = tmp_path / "new" / "model.safetensors"
    model.save(path)
    loaded = gengs_topics.TopicModel.load(path)
    assert np.array_equal(loaded.transform(data), model.transform(data))
    assert loaded.perplexity(data) == model.perplexity(data)
    assert loaded.topics() == model.topics() and loaded.hierarchy() == model.hierarchy()
    assert loaded.history_ == model.history_ and loaded.n_iter_ == 2
    assert loaded.get_params()["super_topics"] == (2,)
    assert loaded.partial_fit(data).n_iter_ == 3
    assert [file.name for file in path.parent.iterdir()] == ["model.safetensors"]


def test_files_that_are_something_else(counts, tmp_path):
    from safetensors.torch import save_file

    path = tmp_path / "model.safetensors"
    with pytest.raises(FileNotFoundError, match="no topic model"):
        gengs_topics.TopicModel.load(path)
    path.write_bytes(b"\x80\x04pickle")
    with pytest.raises(ValueError, match="not a topic model"):
        gengs_topics.TopicModel.load(path)
    save_file({"a": torch.ones(2)}, path)
    with pytest.raises(ValueError, match="something else"):
        gengs_topics.TopicModel.load(path)
    small().fit(counts).save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-40])
    with pytest.raises(ValueError, match="damaged"):
        gengs_topics.TopicModel.load(path)

    def changed(change):
        from safetensors import safe_open

        path.write_bytes(whole)
        with safe_open(path, "pt") as file:
            facts = json.loads(file.metadata()["gengs"])["model"]
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        change(facts)
        header = json.dumps({"sha256": _digest(facts, tensors), "model": facts})
        save_file(tensors, path, {"gengs": header})

    changed(lambda facts: facts.update(version=1))
    with pytest.raises(ValueError, match="version 3"):
        gengs_topics.TopicModel.load(path)
    changed(lambda facts: facts.update(version=9))
    with pytest.raises(ValueError, match="version 3"):
        gengs_topics.TopicModel.load(path)
    changed(lambda facts: facts["settings"].update(levl=3))
    with pytest.raises(ValueError, match=r"'levl'.* 'level'"):
        gengs_topics.TopicModel.load(path)
    changed(lambda facts: facts["settings"].update(n_components=7))
    with pytest.raises(ValueError, match="do not fit its settings"):
        gengs_topics.TopicModel.load(path)
    changed(lambda facts: facts.pop("words"))
    with pytest.raises(ValueError, match="damaged"):
        gengs_topics.TopicModel.load(path)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"n_components": 0},
            r"'n_components' parameter of TopicModel .* range \[1, inf\) or None. Got 0",
        ),
        ({"max_iter": 1.5}, r"'max_iter' .* an int in the range \[1, inf\) or None. Got 1.5"),
        ({"n_refine": 2.9}, r"'n_refine' .* an int in the range \[0, inf\). Got 2.9"),
        ({"level": 2.7}, r"'level' .* an int in the range \[2, inf\). Got 2.7"),
        ({"level": None}, "'level' .* Got None"),
        ({"hidden": 16}, "'hidden' .* array-like. Got 16"),
        ({"hidden": (16.5,)}, "'entries of hidden' .* an int"),
        ({"hidden": ()}, "positive widths in `hidden`"),
        ({"super_topics": 3}, "'super_topics' .* array-like. Got 3"),
        ({"super_topics": (2, 0)}, "'entries of super_topics' .* Got 0"),
        ({"rates": 0}, r"'rates' .* a float in the range \(0.0, inf\) or .* Got 0"),
        ({"rates": (1.0, 0.0)}, "'entries of rates' .* Got 0.0"),
        ({"rates": float("nan")}, "'rates' .* Got nan"),
        ({"rates": "10"}, "'rates' .* Got '10'"),
        ({"learning_rate": 0.0}, "'learning_rate' .* Got 0.0"),
        ({"learning_rate": "x"}, "'learning_rate' .* Got 'x'"),
        ({"weight_decay": -1.0}, "'weight_decay' .* Got -1.0"),
        ({"weight_decay": float("nan")}, "'weight_decay' .* Got nan"),
        ({"topic_penalty": float("inf")}, "'topic_penalty' .* Got inf"),
        ({"dropout": 1.0}, r"'dropout' .* range \[0.0, 1.0\). Got 1.0"),
        ({"gradient": "Magic"}, "there is no estimator"),
        ({"gradient": gengs.MidCDF()}, "'gradient' .* an instance of 'str'. Got MidCDF"),
        ({"posterior": "gamma"}, "'posterior' .* a str among .*'tilted'.* Got 'gamma'"),
        ({"rates": (1.0, 2.0)}, "a rate for each of 1 layers"),
        ({"rates": 1e9}, "below the last atom, `level` - 1 = 11, but got"),
        ({"weigh": "letters"}, "'weigh' .* Got 'letters'"),
        ({"turn": "no"}, "'turn' .* Got 'no'"),
        ({"random_state": -1}, "'random_state' .* Got -1"),
        ({"on_epoch": 3}, "'on_epoch' .* a callable or None. Got 3"),
        ({"early_stopping": True, "validation_fraction": 1.0}, "leaves documents on both sides"),
    ],
)
def test_bad_settings_are_found_when_fitting(counts, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        small(**settings).fit(counts)


def test_settings_may_be_of_numpy(counts, tmp_path):
    settings = {
        "n_components": np.int64(3),
        "hidden": np.array([8, 4]),
        "rates": np.float32(3),
        "level": np.int32(12),
        "super_topics": [2],
        "turn": np.True_,
        "verbose": 0,
    }
    model = small(**settings).fit(counts)
    model.save(tmp_path / "model")
    loaded = gengs_topics.TopicModel.load(tmp_path / "model")
    assert loaded.hidden == (8, 4) and loaded.rates == 3.0
    assert np.array_equal(loaded.transform(counts), model.transform(counts))


def test_a_file_holds_what_was_fitted(counts, tmp_path):
    model = small().fit(counts)
    found = model.transform(counts)
    model.set_params(n_components=7, hidden="wide", n_draws=9).save(tmp_path / "model")
    loaded = gengs_topics.TopicModel.load(tmp_path / "model")
    assert (loaded.n_components, loaded.hidden, loaded.n_draws) == (3, (8,), 9)
    assert np.array_equal(loaded.transform(counts), found)
    loaded.save(tmp_path / "again")
    assert (tmp_path / "again").read_bytes() == (tmp_path / "model").read_bytes()
    with pytest.raises(ValueError, match="'n_draws' parameter"):
        model.set_params(n_draws=0.5).save(tmp_path / "other")
    assert not (tmp_path / "other").exists()


class Stop(Exception):
    pass


def stop(facts):
    raise Stop


def test_a_fit_that_fails_leaves_the_model_as_it_was(counts):
    for method in ("fit", "partial_fit"):
        model = small(on_epoch=stop)
        with pytest.raises(Stop):
            getattr(model, method)(counts)
        with pytest.raises(NotFittedError):
            model.transform(counts)
        assert not hasattr(model, "n_features_in_") and not hasattr(model, "n_iter_")
    model = small().fit(counts)
    before = model.transform(counts)
    with pytest.raises(Stop):
        model.set_params(on_epoch=stop).fit(counts[:, :5])
    assert np.array_equal(model.transform(counts), before) and model.n_iter_ == 2
    with pytest.raises(ValueError, match="Negative values"):
        model.set_params(on_epoch=None).fit(-counts[:, :5])
    assert np.array_equal(model.transform(counts), before)


def test_partial_fit_reads_the_settings_of_the_training(counts):
    first, second = (small().partial_fit(counts) for _ in range(2))
    start = first.components_.copy()
    first.set_params(learning_rate=1e-12, weight_decay=0.0).partial_fit(counts)
    second.partial_fit(counts)
    assert np.allclose(first.components_, start, atol=1e-6)
    assert not np.allclose(second.components_, start, atol=1e-3)
    kept, decayed = (small(weight_decay=0.0).partial_fit(counts) for _ in range(2))
    decayed.set_params(weight_decay=100.0).partial_fit(counts)
    kept.partial_fit(counts)
    sizes = [float(m.network_.encoder.layers[0].weight.detach().norm()) for m in (decayed, kept)]
    assert sizes[0] < 0.9 * sizes[1]
    with pytest.raises(ValueError, match="'learning_rate'"):
        first.set_params(learning_rate=-1).partial_fit(counts)


def test_short_texts_hold_the_encoder_back_more():
    rng = np.random.default_rng(0)
    for words, expected in ((8, 10.0), (40, 3.0)):
        counts = rng.poisson(words / 20, (60, 20))
        counts[0, 0] = 100_000  # one document alone makes no corpus of long ones
        model = small(max_iter=1).fit(counts)
        assert model.trainer_.optimizer.param_groups[0]["weight_decay"] == expected
        assert model.trainer_.optimizer.param_groups[1]["weight_decay"] == 0.0
        model.set_params(weight_decay=0.5).fit(counts)
        assert model.trainer_.optimizer.param_groups[0]["weight_decay"] == 0.5


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.uint8, np.int64, bool])
def test_counts_of_any_type(counts, kind):
    dense = np.minimum(counts.toarray(), 1).astype(kind)
    assert np.isfinite(small().fit(dense).transform(dense)).all()


def test_questions_before_fitting_and_wrong_ones(counts):
    with pytest.raises(NotFittedError):
        small().topics()
    assert not hasattr(small(), "components_")
    model = small().fit(counts)
    with pytest.raises(ValueError, match="'document' or 'corpus'"):
        model.perplexity(counts, per="word")
    with pytest.raises(ValueError, match="20 words in `vocabulary`"):
        model.topics(vocabulary=["a"])
    with pytest.raises(ValueError, match="at least 1 word"):
        model.topics(0)
    assert model.topics(1)[0].words[0].startswith("x")
    for number in (0, 1.5):
        with pytest.raises(ValueError, match="'n_draws' parameter"):
            model.perplexity(counts, n_draws=number)
    with pytest.raises(ValueError, match="'n_refine' parameter"):
        model.set_params(n_refine=2.9).transform(counts)


def test_a_line_for_each_pass(counts, capsys):
    small(verbose=True).fit(counts)
    assert capsys.readouterr().out.count("pass ") == 2


@pytest.mark.slow
def test_it_is_imported_when_it_is_asked_for():
    code = (
        "import sys, gengs_topics; assert 'sklearn' not in sys.modules; gengs_topics.TopicModel; "
        "assert 'sklearn' in sys.modules; sys.modules['sklearn.base'] = None; "
        "del sys.modules['gengs_topics.model.topic_model']; gengs_topics.TopicModel"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert "gengs_topics.TopicModel needs more packages" in done.stderr
    assert "pip install 'gengs[apps]'" in done.stderr


def test_a_fit_that_diverged_has_an_infinite_perplexity():
    counts = np.random.default_rng(0).poisson(0.5, (60, 30))
    model = gengs_topics.TopicModel(
        3, hidden=(8,), max_iter=1, random_state=0, learning_rate=1e8
    ).fit(counts)
    assert model.perplexity(counts) == float("inf")


def test_refined_documents_have_a_better_bound(counts):
    train, test = load_corpus("sample")
    settings = {"n_components": 20, "hidden": (64,), "rates": 10.0, "level": 30}
    model = small(**settings, max_iter=12, n_draws=10).fit(train)
    encoded, mixtures = model.perplexity(test), model.transform(test)
    model.set_params(n_refine=10)
    assert model.perplexity(test) < 0.99 * encoded  # two evaluations alike differ by 0.1 %
    moved = model.transform(test)
    assert not np.array_equal(moved, mixtures)
    np.testing.assert_array_equal(model.transform(test), moved)
    with pytest.raises(ValueError, match="'n_refine' parameter"):
        small(n_refine=-1).fit(counts)


@pytest.mark.parametrize("settings", [{}, {"super_topics": (2,)}, {"posterior": "implicit"}])
def test_a_refined_document_does_not_depend_on_the_others(counts, settings):
    model = small(n_refine=5, **settings).fit(counts)
    whole, order = model.transform(counts), np.random.default_rng(1).permutation(60)
    # the same arithmetic in batches of other sizes: all but the last digits
    np.testing.assert_allclose(model.transform(counts[order]), whole[order], atol=1e-3)
    alone = [model.transform(counts[[row]])[0] for row in range(8)]
    np.testing.assert_allclose(alone, whole[:8], atol=1e-3)
    many = scipy.sparse.vstack([counts] * 5, format="csr")  # more than one batch
    np.testing.assert_allclose(model.transform(many), np.tile(whole, (5, 1)), atol=1e-3)
