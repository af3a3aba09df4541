"""The count-latent VAE: its bound, likelihood and gradients against enumeration; training."""

import copy

import pytest
import torch
from tiny_vae import IMAGES, LEVEL, PIXELS, tiny
from torch import nn
from torch.distributions import (
    Bernoulli,
    Binomial,
    Geometric,
    NegativeBinomial,
    Poisson,
    kl_divergence,
)

import gengs
from gengs_experiments.data import Batches, load_images
from gengs_experiments.models import VAE, GaussianVAE, mlp, mlp_pair


def enumerated(model, x):
    """Every joint outcome: log q(z|x), log p(z) and log p(x|z), each ``(outcomes, B)``."""
    q, p = model.laws(x)
    k = torch.arange(LEVEL, dtype=torch.float64)
    z = torch.cartesian_prod(k, k)[:, None, :].expand(-1, len(x), -1)
    logits = model.decoder((z - p.mean) / p.stddev)
    log_x = Bernoulli(logits=logits).log_prob(x.expand_as(logits)).sum(-1)
    return q.log_prob(z).sum(-1), p.log_prob(z).sum(-1), log_x


def exact_negative_elbo(model, x):
    log_q, log_p, log_x = enumerated(model, x)
    return (log_q.exp() * (log_q - log_p - log_x)).sum(0)


def exact_log_likelihood(model, x):
    _, log_p, log_x = enumerated(model, x)
    return (log_p + log_x).logsumexp(0)


def likelihood_error(model, x, samples):
    """The standard error of the importance-sampled log-likelihood, from the weights' variance."""
    log_q, log_p, log_x = enumerated(model, x)
    log_w = log_p + log_x - log_q
    relative = (log_q + 2 * log_w).logsumexp(0) - 2 * (log_q + log_w).logsumexp(0)
    return (relative.exp() - 1).sqrt() / samples**0.5


def exact_two_sample_bound(model, x):
    """-E log (w_1 + w_2) / 2 over all pairs of outcomes."""
    log_q, log_p, log_x = enumerated(model, x)
    log_w = log_p + log_x - log_q
    bound = torch.logaddexp(log_w[:, None], log_w[None]) - torch.tensor(2.0).log()
    return -((log_q[:, None] + log_q[None]).exp() * bound).sum((0, 1))


def gradient(value, model):
    return torch.cat([g.flatten() for g in torch.autograd.grad(value, network(model))])


def network(model):
    return [*model.encoder.parameters(), *model.decoder.parameters()]


# ------------------------------------------------------------------------ values by enumeration


@pytest.mark.parametrize("posterior", ["explicit", "implicit", "tilted"])
def test_the_bound_and_the_likelihood_are_those_of_enumeration(posterior):
    """Five standard errors each: false alarms below 1e-5; an error of 0.02 nats would show."""
    model = tiny(posterior=posterior)
    many = IMAGES.repeat_interleave(5000, 0)
    bound = model.negative_elbo(many, samples=4).reshape(2, 5000)
    error = bound.std(1) / 5000**0.5
    assert ((bound.mean(1) - exact_negative_elbo(model, IMAGES)).abs() < 5 * error).all()
    assert (5 * error < 0.02).all()

    exact = exact_log_likelihood(model, IMAGES)
    error = likelihood_error(model, IMAGES, 100_000)
    found = model.log_likelihood(IMAGES, samples=100_000)
    assert ((found - exact).abs() < 5 * error).all() and (5 * error < 0.1).all()
    assert (exact_negative_elbo(model, IMAGES) > -exact).all()
    few = model.log_likelihood(many, samples=2).reshape(2, 5000)  # from below
    two = -exact_two_sample_bound(model, IMAGES)
    assert ((few.mean(1) - two).abs() < 5 * few.std(1) / 5000**0.5).all() and (two < exact).all()


def test_portions_of_draws_do_not_change_the_estimate(monkeypatch):
    model = tiny()
    exact, error = exact_log_likelihood(model, IMAGES), likelihood_error(model, IMAGES, 50_000)
    monkeypatch.setattr("gengs.nn.latent_model._MOST_NUMBERS", 10 * 7000)
    assert ((model.log_likelihood(IMAGES, samples=50_000) - exact).abs() < 5 * error).all()
    monkeypatch.setattr("gengs.nn.latent_model._MOST_NUMBERS", 1)
    assert torch.isfinite(model.negative_elbo(IMAGES, samples=3)).all()


@pytest.mark.parametrize("posterior", ["explicit", "implicit", "tilted"])
def test_the_exact_estimator_gives_the_exact_bound_and_gradient(posterior):
    model = tiny(gengs.Exact(), posterior)
    loss, exact = model.loss(IMAGES), exact_negative_elbo(model, IMAGES)
    torch.testing.assert_close(loss, exact)
    torch.testing.assert_close(gradient(loss.sum(), model), gradient(exact.sum(), model))


@pytest.mark.parametrize(
    ("estimator", "target"),
    [(gengs.RLOO(4), exact_negative_elbo), (gengs.VIMCO(2), exact_two_sample_bound)],
    ids=["RLOO", "VIMCO"],
)
@pytest.mark.parametrize("posterior", ["explicit", "implicit", "tilted"])
def test_gradients_are_those_of_the_objective(estimator, target, posterior):
    """Against enumeration, from 30 batch means, 5.5 standard errors for each of 80 entries."""
    model = tiny(estimator, posterior)
    exact = target(model, IMAGES)
    exact_gradient = gradient(exact.mean(), model)
    many, values, gradients = IMAGES.repeat(2000, 1), [], []
    for _ in range(30):
        loss = model.loss(many).mean()
        values.append(loss.detach())
        gradients.append(gradient(loss, model))
    for found, wanted in ((values, exact.mean()), (gradients, exact_gradient)):
        found = torch.stack(found)
        error = found.std(0) / 30**0.5
        assert ((found.mean(0) - wanted).abs() <= 5.5 * error + 1e-12).all()
        assert error.max() < 0.01  # what the test could miss


def test_posteriors_of_images_are_not_refined():
    with pytest.raises(TypeError, match="not refined"):
        tiny().negative_elbo(IMAGES, samples=2, refine=5)


def test_evaluation_uses_exact_draws_whatever_the_estimator():
    model = tiny(gengs.GenGS(2.0)).eval()
    torch.manual_seed(1)
    evaluated = model.loss(IMAGES)
    torch.manual_seed(1)
    torch.testing.assert_close(evaluated, model.negative_elbo(IMAGES))


def test_training_value_is_the_relaxed_one_and_changes_nothing():
    model = tiny(gengs.GenGS(2.0)).eval()
    torch.manual_seed(1)
    value = model.training_value(IMAGES)
    model.train()
    torch.manual_seed(1)
    torch.testing.assert_close(value, model.loss(IMAGES).detach())
    with torch.no_grad():
        torch.manual_seed(1)
        torch.testing.assert_close(value, model.training_value(IMAGES))
    assert not value.requires_grad

    nvil = tiny(gengs.NVIL())
    nvil.loss(IMAGES)
    before = copy.deepcopy(nvil.state_dict())
    nvil.training_value(IMAGES)
    torch.testing.assert_close(nvil.state_dict(), before)


# ------------------------------------------------------------------------------------ divergences

FAMILIES = {
    "Poisson": (Poisson(torch.tensor(2.0)), lambda raw: Poisson(raw.exp())),
    "Geometric": (Geometric(torch.tensor(0.25)), lambda raw: Geometric(logits=raw)),
    "NegativeBinomial": (
        NegativeBinomial(torch.tensor(3.0), torch.tensor(0.5)),
        lambda raw: NegativeBinomial(3.0, logits=raw),
    ),
    "Bernoulli": (Bernoulli(torch.tensor(0.3)), lambda raw: Bernoulli(logits=raw)),
    "Binomial": (
        Binomial(torch.tensor(6.0), torch.tensor(0.3)),
        lambda raw: Binomial(torch.tensor(6.0), logits=raw),
    ),
}


@pytest.mark.parametrize("family", FAMILIES)
def test_explicit_posteriors_and_their_closed_form_divergence(family):
    prior, law = FAMILIES[family]
    model = tiny(prior=prior, level=None)
    q, _ = model.laws(IMAGES)
    expected = law(model.encoder(IMAGES))
    assert type(q) is type(prior)
    torch.testing.assert_close(q.mean, expected.mean)
    k = torch.arange(200.0, dtype=torch.float64)
    k = k[: {"Bernoulli": 2, "Binomial": 7}.get(family, 200)].reshape(-1, 1, 1)
    log_q, log_p = q.log_prob(k), model.latents.prior.log_prob(k)
    by_sum = (log_q.exp() * (log_q - log_p)).sum((0, -1))
    torch.testing.assert_close(model.kl(IMAGES), by_sum, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("posterior", ["explicit", "implicit", "tilted"])
def test_truncated_divergence_is_the_categorical_one(posterior):
    model = tiny(posterior=posterior)
    q, p = model.laws(IMAGES)
    by_sum = (q.probs * (q.logits - p.logits)).sum((-1, -2))
    torch.testing.assert_close(model.kl(IMAGES), by_sum)
    assert p.num_atoms == q.num_atoms == LEVEL
    lumped = 1 - Poisson(1.3).log_prob(torch.arange(3.0)).exp().sum()
    assert p.probs[-1].item() == pytest.approx(lumped.item(), rel=1e-5)


def test_mass_truncates_while_training_only():
    model = tiny(gengs.GenGS(0.5), level=None, mass=0.99)
    q, p = model.latents(model.encoder(IMAGES))
    assert q.num_atoms == p.num_atoms
    assert q.certificate.lost_mass.max() <= 0.01
    assert torch.isfinite(gradient(model.loss(IMAGES).sum(), model)).all()
    q, p = model.laws(IMAGES)
    assert isinstance(q, Poisson) and isinstance(p, Poisson)
    torch.testing.assert_close(model.kl(IMAGES), kl_divergence(q, p).sum(-1))


def test_the_weight_of_the_divergence():
    model = tiny(gengs.Exact())
    kl = model.kl(IMAGES)
    free = model.loss(IMAGES, kl_weight=0.0)
    torch.testing.assert_close(model.loss(IMAGES), free + kl)
    torch.testing.assert_close(model.loss(IMAGES, kl_weight=0.3), free + 0.3 * kl)
    warm_up = gengs.temperature.Linear(0.1, 1.0, steps=9)
    model.kl_weight = warm_up
    warm_up.step()
    torch.testing.assert_close(model.loss(IMAGES), free + 0.2 * kl)
    assert (model.training_value(IMAGES) == model.loss(IMAGES, 1.0)).all()
    bound = tiny(gengs.VIMCO(3))
    torch.manual_seed(0)
    none = bound.loss(IMAGES, kl_weight=0.0)
    assert (none < bound.negative_elbo(IMAGES, 1000)).all()


# ------------------------------------------------------------------------------- every estimator


@pytest.mark.parametrize("posterior", ["explicit", "implicit", "tilted", "whole"])
@pytest.mark.parametrize("kind", gengs.estimators.ALL, ids=lambda kind: kind.__name__)
def test_gradients_reach_encoder_and_decoder(kind, posterior):
    if kind is gengs.ArrivalTimes and posterior != "whole":
        with pytest.raises(TypeError, match="Poisson"):
            tiny(kind(), posterior).loss(IMAGES)
        return
    settings = {"level": None} if posterior == "whole" else {}
    model = tiny(kind(), "explicit" if posterior == "whole" else posterior, **settings)
    loss = model.loss(IMAGES)
    assert loss.shape == (2,)
    loss.mean().backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
    for part in (model.encoder, model.decoder):
        assert all(parameter.grad.abs().sum() > 0 for parameter in part.parameters())
    assert kind.learns == bool(list(model.estimator.parameters()))


def test_nvil_sees_the_images():
    model = tiny(gengs.NVIL())
    model.loss(IMAGES)
    assert model.estimator.baseline.first.in_features == PIXELS


# ------------------------------------------------------------------------------------ the Gaussian


def test_gaussian_reference_model():
    """One latent, by quadrature; five standard errors."""
    encoder, decoder = mlp([PIXELS, 2]), mlp([1, 8, PIXELS], nn.Tanh)
    model = GaussianVAE(encoder, decoder, latents=1, samples=3).double()
    z = torch.linspace(-8, 8, 4001, dtype=torch.float64).reshape(-1, 1, 1).expand(-1, 2, -1)
    q, p = model.laws(IMAGES)
    log_x = -model.reconstruction_cost(IMAGES, z)
    step = 16 / 4000
    exact = ((p.log_prob(z).sum(-1) + log_x).exp() * step).sum(0).log()
    bound = (q.log_prob(z).exp().sum(-1) * -log_x * step).sum(0) + model.kl(IMAGES)
    assert (model.log_likelihood(IMAGES, 100_000) - exact).abs().max() < 0.02
    many = IMAGES.repeat_interleave(5000, 0)
    for found in (model.loss(many), model.negative_elbo(many)):
        found = found.detach().reshape(2, 5000)
        assert ((found.mean(1) - bound).abs() < 5 * found.std(1) / 5000**0.5).all()
    model(IMAGES).mean().backward()
    model.decoder = nn.Linear(1, PIXELS).double()
    seen = []
    model.decoder.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    model.samples = 2
    model(IMAGES)
    pair = seen[0].reshape(2, 2, 1)
    torch.testing.assert_close(pair.mean(0), model.laws(IMAGES)[0].mean)  # antithetic
    assert model.sample_prior(4).shape == (4, PIXELS)
    with pytest.raises(ValueError, match="4 outputs"):
        GaussianVAE(encoder, decoder, latents=2)(IMAGES)


# ---------------------------------------------------------------------------------------- training


@pytest.mark.parametrize(
    ("estimator", "posterior"),
    [
        (gengs.GenGS(0.5), "explicit"),
        (gengs.MidCDF(), "explicit"),
        (gengs.MidCDF(), "implicit"),
        (gengs.MidCDF(2), "tilted"),
        (gengs.RLOO(4), "explicit"),
    ],
    ids=["GenGS", "MidCDF", "MidCDF implicit", "MidCDF tilted", "RLOO"],
)
def test_two_hundred_steps_learn_digits(estimator, posterior):
    """The discrete bound of unseen digits falls to that of independent pixels and below."""
    digits = load_images("digits")
    batches = Batches(digits.train, 100, binarise="threshold")
    unseen = Batches(digits.test, 300, binarise="threshold", shuffle=False).at(0)
    width = {"implicit": 12, "tilted": 2}.get(posterior, 1)
    model = VAE(
        *mlp_pair("64-32", digits.pixels, latents=8, width=width),
        Poisson(2.0),
        estimator,
        posterior,
        level=12,
    )
    optimiser = torch.optim.Adam(model.parameters(), 1e-2)
    start = model.negative_elbo(unseen).mean()
    for step in range(200):
        optimiser.zero_grad()
        model.loss(batches.at(step)).mean().backward()
        optimiser.step()
    end = model.negative_elbo(unseen).mean()
    share = (digits.train > 127).float().mean(0).clamp(1e-3, 1 - 1e-3)
    independent = -Bernoulli(share).log_prob(unseen).sum(-1).mean()
    assert end < start - 20 and end < independent + 0.5
