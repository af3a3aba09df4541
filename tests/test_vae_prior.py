"""Priors of a count-latent VAE that are learned, misspelt, or do not fit their atoms."""

import pytest
import torch
from torch import nn
from torch.distributions import Binomial, Poisson

import gengs
from gengs.experiments.vae import VaeConfig, _model
from gengs.models import VAE
from gengs.models.latents import CountLatents


def model(prior, posterior="explicit", **settings):
    width = settings.get("level") if posterior == "implicit" else 1
    encoder, decoder = nn.Linear(8, 3 * (width or 1)), nn.Linear(3, 8)
    return VAE(encoder, decoder, prior, gengs.MidCDF(), posterior, latents=3, **settings)


@pytest.mark.parametrize(
    ("posterior", "level"), [("explicit", None), ("explicit", 12), ("implicit", 12)]
)
def test_a_learned_prior_is_followed_and_gets_its_gradient(posterior, level):
    torch.manual_seed(0)
    rate = nn.Parameter(torch.tensor(2.0))
    vae = model(Poisson(rate), posterior, level=level)
    x = torch.bernoulli(torch.full((20, 8), 0.4))
    before = vae.kl(x)
    for _ in range(2):  # each step has a graph of its own
        vae.loss(x).mean().backward()
    assert rate.grad is not None and rate.grad != 0
    with torch.no_grad():
        rate.fill_(6.0)
    assert not torch.allclose(vae.kl(x), before)
    mean = vae.draw_prior(4000).mean()
    expected = gengs.truncate(Poisson(6.0), level).mean if level else 6.0
    assert abs(mean - expected) < 0.15  # seven standard errors


def test_an_implicit_posterior_needs_a_prior_with_mass_on_every_atom():
    with pytest.raises(ValueError, match="gives none to 14 of 20"):
        model(Binomial(5, torch.tensor(0.3)), "implicit", level=20)
    model(Binomial(5, torch.tensor(0.3)), "implicit", level=6)


def test_a_rate_that_overflows_has_a_sentence():
    with pytest.raises(ValueError, match="logarithm of a rate is 100, and the rate overflows"):
        CountLatents(Poisson(2.0))(torch.tensor([[100.0, 1.0]]))


@pytest.mark.parametrize("latents", [0, -1, "3", True])
def test_the_number_of_latents_is_checked(latents):
    with pytest.raises(ValueError, match="positive integer `latents`"):
        CountLatents(Poisson(2.0), latents=latents)


def test_a_function_that_gives_no_law():
    with pytest.raises(TypeError, match="from the function `posterior`, but got Tensor"):
        CountLatents(Poisson(2.0), lambda raw: raw)(torch.zeros(2, 3))


def test_pixels_that_are_nan_are_called_so():
    x = torch.full((2, 8), float("nan"))
    with pytest.raises(ValueError, match="some are NaN"):
        model(Poisson(2.0)).loss(x)


@pytest.mark.parametrize("prior", ["poisson(2)", "poisson(2.0)", "Poisson( 2 )", "poisson(rate=2)"])
def test_a_prior_has_the_papers_level_however_it_is_typed(prior):
    assert _model(VaeConfig(prior=prior), gengs.MidCDF(), 784).latents.level == 12


def test_a_prior_that_the_paper_has_no_level_for():
    with pytest.raises(ValueError, match=r"expected a --level for the prior 'poisson\(4\)'"):
        _model(VaeConfig(prior="poisson(4)"), gengs.MidCDF(), 784)
