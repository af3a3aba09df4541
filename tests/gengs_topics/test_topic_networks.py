"""Poisson topics in layers: every estimator nests, bounds are bounds, evaluation is exact."""

import math

import pytest
import torch
from torch.distributions import Poisson, kl_divergence

from gengs import Exact, MidCDF, truncate
from gengs.estimators.spec import parse_estimator
from gengs_topics import NVDM, NVPDEF, BagEncoder, PositiveLinear, perplexity
from gengs_topics.model.bag_encoder import thinned
from gengs_topics.model.document_weights import document_weights
from gengs_topics.model.layers import PoissonLayer
from gengs_topics.model.topic_training import topic_optimizer
from gengs_topics.model.topic_words import branches, top_words, topics_as_json
from gengs_topics.model.word_decoder import WordDecoder

WORDS = 12


def documents(n=6):
    return torch.poisson(torch.full((n, WORDS), 0.8))


def network(estimator="MidCDF", sizes=(3, 4), posterior="tilted", stack="chain", level=8, **more):
    return NVPDEF(
        BagEncoder(WORDS, (16,)), parse_estimator(estimator), sizes, 1.0, level, posterior, stack,
        **more,
    )  # fmt: skip


@pytest.mark.parametrize("stack", ["chain", "mean-field", "generative"])
@pytest.mark.parametrize("posterior", ["explicit", "implicit", "tilted"])
@pytest.mark.parametrize(
    "estimator",
    ["MidCDF", "GenGS", "GenGS(hard=True)", "RLOO(2)", "NVIL", "VIMCO(2)", "RELAX", "UnOrd(2)"],
)
def test_every_estimator_nests_and_reaches_every_parameter(estimator, posterior, stack):
    model, x = network(estimator, posterior=posterior, stack=stack), documents()
    loss = model.loss(x)
    assert loss.shape == (6,) and torch.isfinite(loss).all()
    loss.mean().backward()
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            assert parameter.grad is not None, name
            assert torch.isfinite(parameter.grad).all(), name
    assert model.intensities(x).shape == (6, 4) and model.intensities(x, 0).shape == (6, 3)
    assert (model.intensities(x) >= 0).all()
    assert torch.isfinite(model.training_value(x)).all()


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("stack", ["chain", "generative"])
def test_any_number_of_layers(layers, stack):
    model = network(sizes=(2,) * layers, stack=stack)
    model.loss(documents()).sum().backward()
    assert len(model.hierarchy()) == (layers - 1 if stack == "generative" else 0)


def test_whole_poisson_laws_without_truncation():
    model = network("ArrivalTimes", posterior="explicit", level=None)
    model.loss(documents()).sum().backward()
    assert model.negative_elbo(documents()).shape == (6,)


def test_the_bound_is_the_expectation_over_all_counts():
    """One latent: the exact sum over its atoms is what the average of draws tends to."""
    model, x = network("Exact", (1,), "implicit", level=6).eval(), documents(3)
    q, p = model.laws(0, None, model.encoder(x))
    with torch.no_grad():
        costs = model.decoder.cost(x, q.atoms.view(-1, 1, 1).expand(6, 3, 1))  # (n, B)
        exact = (q.logits.squeeze(1).exp().T * costs).sum(0) + kl_divergence(q, p).sum(-1)
        likelihood = torch.logsumexp(p.logits.expand(1, 6).T - costs, 0)
    # four standard deviations of a mean of 20,000 draws: false alarms in 3 of 10,000 runs
    spread = costs.std() / math.sqrt(20_000)
    assert (model.negative_elbo(x, samples=20_000) - exact).abs().max() < 4 * spread
    assert torch.allclose(model.log_likelihood(x, samples=20_000), likelihood, atol=0.02)
    assert (-likelihood <= exact + 1e-4).all()


def test_the_gradient_of_two_layers_is_that_of_the_exact_expectation():
    """Score-function draws in both layers against a sum over all pairs of counts."""
    torch.manual_seed(1)
    exact = NVPDEF(BagEncoder(WORDS, (4,)), Exact(), (1, 1), 1.0, 4, "implicit", "generative")
    drawn = NVPDEF(
        BagEncoder(WORDS, (4,)), parse_estimator("RLOO(3)"), (1, 1), 1.0, 4, "implicit",
        "generative",
    )  # fmt: skip
    drawn.load_state_dict(exact.state_dict())
    x = documents(1)
    exact.loss(x).sum().backward()
    target = exact.heads[0].weight.grad.clone()
    repeats = x.expand(4000, -1)
    estimates = torch.stack(
        [torch.autograd.grad(drawn.loss(part).mean(), drawn.heads[0].weight)[0]
         for part in repeats.split(100)]
    )  # fmt: skip
    error = estimates.std(0) / math.sqrt(len(estimates))
    # 16 entries at five standard errors, 40 means each: a false alarm in some 5,000 runs
    assert ((estimates.mean(0) - target).abs() <= 5 * error + 1e-6).all()
    assert target.abs().max() > 10 * error.max()  # a wrong sign or factor would be seen


def test_importance_sampling_tightens_the_bound():
    for model in (network(stack="generative"), NVDM(BagEncoder(WORDS, (8,)), 3)):
        x = documents(40)
        bound = model.negative_elbo(x, 50).mean()
        assert -model.log_likelihood(x, 50).mean() < bound


def test_perplexity_has_its_two_definitions_and_leaves_empty_documents_out():
    model, x = network(sizes=(3,)), documents(5)
    x[2] = 0
    model.decoder.weight.data.zero_()  # the words do not depend on the draw
    bound, lengths = model.negative_elbo(x), x.sum(-1)
    filled = lengths > 0
    found = perplexity(model, [x[:3], x[3:]])
    by_document = (bound[filled] / lengths[filled]).mean().exp()
    assert found.document == pytest.approx(float(by_document), rel=1e-5)
    corpus = (bound[filled].sum() / lengths.sum()).exp()
    assert found.corpus == pytest.approx(float(corpus), rel=1e-5)
    with pytest.raises(ValueError, match="document with a word"):
        perplexity(model, [torch.zeros(2, WORDS)])


def test_evaluation_uses_exact_draws_whatever_trained_the_model():
    model = network("GenGS", sizes=(3,))
    seen = []
    model.decoder.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0]))
    model.negative_elbo(documents(), samples=3)
    assert all(torch.equal(z, z.round()) for z in seen)
    seen.clear()
    model.training_value(documents())
    assert not all(torch.equal(z, z.round()) for z in seen)


def test_without_topics_the_model_is_the_unigram_model():
    unigram = torch.rand(WORDS).softmax(-1)
    decoder = WordDecoder(3, WORDS, unigram, centre=2.0)
    x = documents()
    z = torch.full((1, 6, 3), 2.0)
    assert torch.allclose(decoder.cost(x, z)[0], -(x * unigram.log()).sum(-1), atol=1e-4)


@pytest.mark.parametrize("posterior", ["explicit", "implicit"])
def test_raw_zeros_are_the_prior(posterior):
    layer = PoissonLayer(4, 3.0, 12, posterior)
    prior = layer.prior()
    q = layer.posterior(torch.zeros(2, 4 * layer.width), prior)
    assert torch.allclose(q.probs, truncate(Poisson(torch.tensor(3.0)), 12).probs, atol=1e-6)
    assert kl_divergence(q, prior).abs().max() < 1e-5


def test_a_tilt_moves_and_narrows():
    layer = PoissonLayer(1, 10.0, 40, "tilted")

    def law(slope, curvature):
        return layer.posterior(torch.tensor([[slope, curvature]]), layer.prior())

    assert law(0.5, -9.0).mean > law(0.0, -9.0).mean > law(-0.5, -9.0).mean
    assert law(0.0, 3.0).variance < law(0.0, -9.0).variance


def test_positive_weights():
    layer = PositiveLinear(5, 3, rate=2.0, typical=4.0)
    rates = layer(torch.full((1000, 5), 4.0))
    assert (layer.weight > 0).all() and (layer(torch.zeros(5)) > 0).all()
    assert 0.8 < float(rates.detach().mean()) < 4.5


def test_thinning_keeps_the_share_and_spares_evaluation():
    x = torch.full((200, 50), 4.0)
    kept = thinned(x, 0.7)
    assert (kept <= x).all() and torch.equal(kept, kept.round())
    # 40,000 tokens: four standard deviations of the share are 0.0092
    assert abs(float(kept.mean()) / 4 - 0.7) < 0.0092
    assert (thinned(torch.full((9,), 0.25), 0.5).unique() * 4 % 1 == 0).all()
    encoder = BagEncoder(50, (4,), thinning=0.5).eval()
    assert torch.equal(encoder(x), encoder(x))


def test_documents_count_the_same_or_tokens_do():
    lengths = torch.tensor([4.0, 2.0, 0.0, 128.0])
    assert document_weights(lengths, "documents", 2.0).tolist() == [0.5, 1.0, 1.0, 0.015625]
    assert document_weights(lengths, "tokens", 2.0).tolist() == [1.0, 1.0, 1.0, 0.15625]


def test_words_of_topics_and_the_forest_above_them():
    model = network(sizes=(2, 3), stack="generative")
    model.decoder.weight.data.zero_()
    for topic, word in enumerate((5, 7, 1)):
        model.decoder.weight.data[topic, word] = 3.0
    model.maps[0].raw_weight.data[:] = torch.tensor([[5.0, -5.0], [-5.0, 5.0], [4.0, -4.0]])
    vocabulary = [f"w{k}" for k in range(WORDS)]
    assert [topic.words[0] for topic in top_words(model, vocabulary)] == ["w5", "w7", "w1"]
    assert [branch.children[:2] for branch in branches(model)] == [(0, 2), (1, 2)]
    first, second = topics_as_json(model, vocabulary)["hierarchy"]
    assert first["words"][:2] == ["w5", "w1"] and second["words"][0] == "w7"
    assert [child["topic"] for child in first["children"][:2]] == [0, 2]


def test_training_finds_planted_topics():
    """Two kinds of documents with words of their own: the bound falls below the unigram model's."""
    torch.manual_seed(0)
    half = WORDS // 2
    rates = torch.full((400, WORDS), 0.05)
    rates[:200, :half], rates[200:, half:] = 2.0, 2.0
    x = torch.poisson(rates)
    unigram = (x.sum(0) + 0.5) / (x.sum(0) + 0.5).sum()
    model = NVPDEF(BagEncoder(WORDS, (16,)), MidCDF(), (2,), 3.0, 15, "tilted", unigram=unigram)
    optimizer = topic_optimizer(model, 1e-2)
    for _ in range(150):
        optimizer.zero_grad()
        model.loss(x[torch.randint(400, (64,))]).mean().backward()
        optimizer.step()
    alone = math.exp(-float((x * unigram.log()).sum() / x.sum()))
    assert perplexity(model.eval(), [x], 5).corpus < 0.75 * alone
    means = model.intensities(x)
    gap = (means[:200].mean(0) - means[200:].mean(0)).abs().max()
    assert gap > 2


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: network(sizes=()), "positive `sizes`"),
        (lambda: network(stack="upwards"), "`stack` to be one of chain"),
        (lambda: network(posterior="gamma"), "`posterior` to be one of explicit"),
        (lambda: network(level=None), "a `level` of atoms"),
        (lambda: PoissonLayer(2, -1.0), "positive, finite `rate`"),
        (lambda: PoissonLayer(2, 14.0, 15), "`rate` below the last atom, `level` - 1 = 14"),
        (lambda: PoissonLayer(2, 1.0, 1), "`level` of at least 2 atoms"),
        (lambda: NVPDEF(BagEncoder(5, (3,)), MidCDF(), (3,), rates=0), "finite `rates`, but got 0"),
        (lambda: NVPDEF(BagEncoder(5, (3,)), MidCDF(), (3,), rates=1e9), "`rates` below the last"),
        (lambda: BagEncoder(5, (3,), thinning=1.0), "`thinning` in"),
        (lambda: BagEncoder(5, ()), "positive widths"),
        (lambda: BagEncoder(5, activation="sine"), "one of relu"),
        (lambda: WordDecoder(2, 3, torch.zeros(3)), "positive probabilities"),
        (lambda: PositiveLinear(2, 3, rate=0.0), "positive `rate`"),
    ],
)
def test_bad_settings(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_one_estimator_for_each_layer():
    with pytest.raises(TypeError, match="each of 2 layers"):
        NVPDEF(BagEncoder(WORDS, (4,)), [MidCDF()] * 3, (2, 2))
