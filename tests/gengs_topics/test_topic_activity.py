"""Which topics documents use: order, notes, proportions, and texts without a theme."""

import numpy as np
import pytest
import scipy.sparse
import torch

import gengs
import gengs_topics
from gengs_topics import NVDM, NVPDEF, BagEncoder
from gengs_topics.metrics import npmi, npmi_by_chance
from gengs_topics.model.topic_activity import measure_activity, notes, shares, strengths

WORDS = 60


def themes(documents=400, seed=0, length=1.0):
    """Two themes of ten words each, in one of three documents each, beside words of none."""
    rng = np.random.default_rng(seed)
    rates = np.full((documents, WORDS), 0.2)
    rates[: documents // 3, :10] += 2.0
    rates[-documents // 3 :, 10:20] += 2.0
    return rng.poisson(length * rates)


@pytest.fixture(scope="module")
def fitted():
    return gengs_topics.TopicModel(6, hidden=(32,), max_iter=20, random_state=0).fit(themes())


def test_topics_come_by_share_and_say_what_is_wrong_with_them(fitted):
    topics = fitted.topics(top=5)
    found = [topic.share for topic in topics]
    assert found == sorted(found, reverse=True) and sum(found) == pytest.approx(1)
    first = {int(word[1:]) for topic in topics if not topic.note for word in topic.words}
    assert {0, 10} <= {word // 10 * 10 for word in first} <= {0, 10}  # both themes, nothing else
    assert any(topic.note for topic in topics)  # six topics are more than there are
    for topic in topics:
        assert topic.note in ("", "inactive", "uncertain", "incoherent")


def test_a_topic_of_too_few_documents_is_uncertain():
    """Noise has no words that surely tell something, however well some go together by chance."""
    shares = 1 / np.arange(5, 205)
    counts = np.random.default_rng(0).multinomial(40, shares / shares.sum(), 60)
    model = gengs_topics.TopicModel(random_state=0, hidden=(32,)).fit(counts)
    active = [topic for topic in model.topics() if topic.note != "inactive"]
    assert active and all(topic.note for topic in active)
    assert "uncertain" in {topic.note for topic in active}
    for topic in active:
        assert topic.coherence != 0.0  # of the words that probably tell something


def test_columns_move_with_the_topics(fitted):
    counts = themes(seed=1)
    means = fitted.transform(counts)
    strong = [k for k, topic in enumerate(fitted.topics()) if not topic.note]
    words = [[int(word[1:]) for word in fitted.topics(8)[k].words] for k in strong]
    for topic, columns in zip(strong, words, strict=True):
        assert np.corrcoef(means[:, topic], counts[:, columns].sum(1))[0, 1] > 0.5


@pytest.mark.parametrize("topics", [3, 8])
def test_each_of_three_themes_has_a_topic(topics):
    """Two latents tell three themes apart; of more topics than themes, each is of one theme."""
    rates = np.kron(np.eye(3), np.full((60, 10), 1.5))
    counts = np.random.default_rng(0).poisson(rates)
    model = gengs_topics.TopicModel(topics, hidden=(32,), max_iter=20, random_state=0).fit(counts)
    found = np.array([rows[0][0] if rows else -1 for rows in model.strongest(counts)])
    assert found.min() >= 0
    table = np.zeros((topics, 3), int)
    np.add.at(table, (found, np.repeat([0, 1, 2], 60)), 1)
    assert {*table.argmax(1)[table.any(1)]} == {0, 1, 2} and table.max(1).sum() > 0.95 * 180


@pytest.mark.parametrize("topics", [3, 8])
def test_themes_of_few_words_have_a_topic_each(topics):
    """Seven words a theme: the eighth to tenth of a list are never seen with them."""
    rng = np.random.default_rng(0)
    theme = rng.integers(3, size=400)
    counts = np.zeros((400, 21), int)
    for document, first in enumerate(7 * theme):
        np.add.at(counts[document], first + rng.integers(7, size=6), 1)
    model = gengs_topics.TopicModel(topics, hidden=(32,), max_iter=20, random_state=0).fit(counts)
    active = [topic for topic in model.topics(7) if not topic.note]
    lists = [{int(word[1:]) // 7 for word in topic.words} for topic in active]
    assert {*map(frozenset, lists)} == {frozenset({theme}) for theme in range(3)}
    assert topics > 3 or all(topic.coherence > 0.3 for topic in active)


def test_idle_latents_of_short_texts_are_switched_off_and_can_learn_again():
    counts, new = themes(1500, length=0.4), themes(seed=1, length=0.4)
    model = gengs_topics.TopicModel(20, hidden=(32,), max_iter=10, random_state=0)
    whole = model.fit(themes(length=2.0)).network_.decoder.weight
    assert (whole != 0).any(-1).all()  # longer texts keep all
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NVPDEF, "switch_off", lambda self, idle: torch.zeros_like(idle))
        before = model.fit(counts).perplexity(new, n_draws=50)
    network = model.network_
    documents = scipy.sparse.csr_array(counts.astype(np.float32))
    measure_activity(network, documents, settle=True)  # as fit ends
    off = (network.decoder.weight == 0).all(-1)
    assert 0 < int(off.sum()) < 20
    features = network.features(torch.from_numpy(new).float())
    posteriors, prior = network.laws(0, None, features)
    divergence = torch.distributions.kl_divergence(posteriors, prior)
    assert float(divergence[:, off].detach().max()) < 1e-5
    assert model.perplexity(new, n_draws=50) < before
    model.set_params(learning_rate=1e-2)
    model.partial_fit(counts)
    assert (network.decoder.weight != 0).any(-1).all()  # they are no dead end


def networks():
    def encoder():
        return BagEncoder(WORDS, (8,))

    yield NVDM(encoder(), 4)
    for posterior in ("tilted", "implicit", "explicit"):
        for stack in ("generative", "chain", "mean-field"):
            for sizes in ((4,), (3, 4)):
                yield NVPDEF(encoder(), gengs.MidCDF(), sizes, 2.0, 8, posterior, stack)


@pytest.mark.parametrize("network", list(networks()), ids=lambda n: type(n).__name__)
def test_reordering_changes_nothing_but_the_order(network):
    counts, order = torch.from_numpy(themes(20)).float(), torch.tensor([2, 0, 3, 1])
    network.eval()
    before, topics, tree = network.intensities(counts), network.topics(), network.hierarchy()
    network.reorder(order)
    torch.testing.assert_close(network.intensities(counts), before[:, order])
    torch.testing.assert_close(network.topics(), topics[order])
    for old, new in zip(tree[-1:], network.hierarchy()[-1:], strict=True):
        torch.testing.assert_close(new, old[order])


@pytest.mark.parametrize("network", list(networks()), ids=lambda n: type(n).__name__)
def test_directions_of_reading_change_no_word(network):
    counts, centre = torch.from_numpy(themes(50)).float(), network.decoder.centre
    network.eval()
    torch.manual_seed(0)
    network.decoder.weight.data.normal_()
    latents = network.means(network.features(counts)).detach()
    before = (latents - centre) @ network.topics()
    measure_activity(network, scipy.sparse.csr_array(counts.numpy()))
    turned = network.reading.clone()
    measure_activity(network, scipy.sparse.csr_array(counts.numpy()))
    assert torch.equal(network.reading, turned)  # the same however often one looks
    torch.testing.assert_close(turned @ turned.T, torch.eye(4))
    if network.hierarchy():  # sorted only: super-topics raise latents
        assert bool(((turned == 0) | (turned == 1)).all())
    torch.testing.assert_close((network.intensities(counts) - centre) @ network.topics(), before,
                               rtol=1e-4, atol=1e-4)  # fmt: skip


def test_activity_is_that_of_the_documents():
    network = next(networks()).eval()
    counts = scipy.sparse.csr_array(themes(50))
    measure_activity(network, counts, sort=False)
    means = network.intensities(torch.from_numpy(counts.toarray()).float())
    middle = (means.quantile(0.1, 0) + means.quantile(0.9, 0)) / 2
    torch.testing.assert_close(network.usual, torch.minimum(means.median(0).values, middle))
    torch.testing.assert_close(network.deviation, means.std(0, correction=0))
    rises = (means - network.usual) / network.decoder.scale
    active = [k for k, note in enumerate(notes(network)) if note != "inactive"]
    found = strengths(network, means)[:, active]
    torch.testing.assert_close(found, rises[:, active] - rises[:, active].mean(1, keepdim=True))
    measure_activity(network, counts)
    assert shares(network).tolist() == sorted(shares(network).tolist(), reverse=True)
    network.reading.copy_(torch.eye(4))
    network.decoder.weight.data[2] = 0.0
    assert notes(network)[2] == "inactive" and float(shares(network)[2]) == 0


def test_a_text_without_a_theme_has_none(fitted):
    texts = np.zeros((4, WORDS), int)
    texts[0, :10], texts[1, 10:20], texts[2, 20:] = 3, 3, 1
    found = fitted.strongest(texts)
    leading = [
        {int(w[1:]) // 10 for w in fitted.topics()[doc[0][0]].words[:5]} for doc in found[:2]
    ]
    assert leading == [{0}, {1}]
    assert found[3] == []  # no words
    for topic, _ in found[2]:  # words of no theme
        assert {int(w[1:]) // 10 for w in fitted.topics()[topic].words[:5]}.isdisjoint({0, 1})
    assert all(value > 0 for document in found for _, value in document)


def test_proportions_sum_to_one_and_say_what_a_text_is_about(fitted):
    texts = np.zeros((3, WORDS), int)
    texts[0, :10], texts[1, 10:20] = 3, 3
    shares_of = fitted.proportions(texts)
    assert shares_of.shape == (3, 6) and np.allclose(shares_of.sum(1), 1) and (shares_of >= 0).all()
    strongest = [document[0][0] for document in fitted.strongest(texts)[:2]]
    assert [int(k) for k in shares_of[:2].argmax(1)] == strongest
    assert np.allclose(shares_of[2], 1 / 6)  # no words, no theme
    assert not np.allclose(fitted.transform(texts).sum(1), 1)  # intensities are no proportions


def test_chance_is_the_coherence_of_words_as_frequent():
    """Documents of very different lengths: all words seem to belong together, and none do."""
    rng = np.random.default_rng(0)
    lengths = np.repeat([0.1, 2.0], 300)
    counts = rng.poisson(lengths[:, None], (600, 60))
    counts[300:450, :10] = 0  # one theme: these words are in half of the long documents
    counts = scipy.sparse.csr_array(counts)
    topics = [list(range(10)), list(range(20, 30))]
    own, chance = npmi(topics, counts), npmi_by_chance(topics, counts)
    assert own[1] > 0.3 and abs(own[1] - chance[1]) < 0.05  # no theme at all
    assert own[0] - chance[0] > 0.1


def test_a_loaded_model_has_its_settings_unless_told_otherwise(tmp_path, fitted):
    fitted.set_params(n_refine=3).save(tmp_path / "model")
    fitted.set_params(n_refine=0)
    kind = gengs_topics.TopicModel
    assert kind.load(tmp_path / "model").n_refine == 3
    loaded = kind.load(tmp_path / "model", n_refine=0)
    counts = themes(20, 5)
    assert loaded.n_refine == 0 and np.array_equal(
        loaded.transform(counts), fitted.transform(counts)
    )
    assert loaded.topics() == fitted.topics()
    with pytest.raises(ValueError, match="was made with its own"):
        kind.load(tmp_path / "model", n_components=4)


def test_fractions_are_warned_of_whatever_they_are_for():
    weights = themes(40) * 0.5
    model = gengs_topics.TopicModel(2, hidden=(8,), max_iter=1, random_state=0)
    for use in ("fit", "partial_fit", "transform", "proportions", "strongest", "perplexity"):
        with pytest.warns(UserWarning, match=r"counts.* `X`"):
            getattr(model, use)(weights)


@pytest.mark.parametrize("words", ["urn", "multinomial"])
def test_completion_is_the_perplexity_of_the_rest_given_some_words(words):
    counts = themes(400)
    model = gengs_topics.TopicModel(4, hidden=(32,), max_iter=10, words=words, random_state=0).fit(
        counts
    )
    new = themes(200, seed=7)
    given = np.random.default_rng(0).binomial(new, 0.5)
    rest = new - given
    blind = model.perplexity(rest, given=np.zeros_like(given))
    told = model.perplexity(rest, given=given)
    assert told < 0.95 * blind
    assert model.perplexity(rest, given=given, per="corpus") < blind
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.perplexity(rest, given=given[:3])


def test_the_command_and_the_class_have_the_same_defaults():
    from gengs_topics.commands.topics_settings import FitConfig

    command, model = FitConfig(), gengs_topics.TopicModel().get_params()
    names = {"topics": "n_components", "epochs": "max_iter", "estimator": "gradient"}
    same = ["super_topics", "words", "hidden", "topic_penalty", "weight_decay", "turn"]
    for name in [*names, *same, "batch_size", "learning_rate"]:
        assert getattr(command, name) == model[names.get(name, name)], name


def test_progress_says_how_much_time_is_left(capsys):
    gengs_topics.TopicModel(2, hidden=(8,), max_iter=2, random_state=0, verbose=True).fit(
        themes(40)
    )
    first, last = capsys.readouterr().out.splitlines()
    assert first.startswith("pass 1 of 2: loss") and first.endswith("s left")
    assert last.endswith("at most 0 s left")
