"""Priors of a count-latent VAE that are learned, misspelt, or do not fit their atoms."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.distributions import Bernoulli, Binomial, Poisson

import gengs
from gengs.nn.count_latents import CountLatents
from gengs.nn.fixed_prior import FixedPrior
from gengs_experiments.experiments.vae import _model
from gengs_experiments.experiments.vae_settings import VaeConfig
from gengs_experiments.models import VAE


def model(prior, posterior="explicit", **settings):
    width = settings.get("level") if posterior == "implicit" else 1
    encoder, decoder = nn.Linear(8, 3 * (width or 1)), nn.Linear(3, 8)
    return VAE(encoder, decoder, prior, gengs.MidCDF(), posterior, latents=3, **settings)


class Learned(nn.Module):
    """A positive rate, by its logarithm."""

    def __init__(self, rate):
        super().__init__()
        self.log_rate = nn.Parameter(torch.tensor(rate).log())

    def forward(self):
        return Poisson(self.log_rate.exp())


KINDS = [("explicit", None), ("explicit", 12), ("implicit", 12)]


@pytest.mark.parametrize("change", [lambda m: m, copy.deepcopy, lambda m: m.double()])
@pytest.mark.parametrize(("posterior", "level"), KINDS)
def test_a_learned_prior_is_followed_and_gets_its_gradient(posterior, level, change):
    torch.manual_seed(0)
    vae = change(model(Learned(2.0), posterior, level=level))
    log_rate = vae.latents.source.log_rate
    assert any(parameter is log_rate for parameter in vae.parameters())
    x = torch.bernoulli(torch.full((20, 8), 0.4)).to(log_rate.dtype)
    before = vae.kl(x)
    for _ in range(2):  # each step has a graph of its own
        vae.loss(x).mean().backward()
    assert log_rate.grad is not None and log_rate.grad != 0
    with torch.no_grad():
        log_rate.fill_(math.log(6.0))
    assert not torch.allclose(vae.kl(x), before)
    mean = vae.draw_prior(4000).mean()
    expected = gengs.truncate(Poisson(6.0), level).mean if level else 6.0
    assert abs(mean - expected) < 0.15  # seven standard errors


def test_a_law_with_a_gradient_is_no_prior():
    with pytest.raises(ValueError, match="a module whose forward"):
        model(Poisson(nn.Parameter(torch.tensor(2.0))))
    learned = Learned(2.0)
    learned.forward = lambda: learned.log_rate
    with pytest.raises(TypeError, match=r"a module.* Parameter"):
        model(learned)


@pytest.mark.parametrize("level", [None, 12])
def test_a_model_in_half_precision_has_laws_in_float32(level):
    """A rate of exp(-20) is 0 in float16, and a table in bfloat16 does not sum to 1."""
    torch.manual_seed(0)
    vae = model(Poisson(2.0), level=level)
    nn.init.constant_(vae.encoder.bias, -20.0)
    x = torch.bernoulli(torch.full((5, 8), 0.4))
    expected = vae.kl(x)
    for dtype in (torch.float16, torch.bfloat16):
        half = copy.deepcopy(vae).to(dtype)
        torch.testing.assert_close(half.kl(x.to(dtype)), expected, rtol=0.02, atol=0)
        assert half.latents.prior.mean.dtype == torch.float32
        back = half.float().latents.prior
        torch.testing.assert_close(back.mean, vae.latents.prior.mean, rtol=0, atol=0)


@pytest.mark.parametrize(("posterior", "level"), KINDS)
def test_an_emptied_model_keeps_its_prior(posterior, level):
    vae = model(Poisson(2.0), posterior, level=level)
    mean = vae.latents.prior.mean
    assert vae.to_empty(device="cpu").latents.prior.mean == mean


@pytest.mark.parametrize("settings", [{}, {"level": 2}, {"mass": 0.99}])
@pytest.mark.parametrize("estimator", [gengs.MidCDF(), gengs.RLOO(2)])
def test_bernoulli_priors_of_several_latents(settings, estimator):
    vae = model(Bernoulli(torch.tensor([0.4, 0.5, 0.6])), **settings)
    vae.estimator = estimator
    x = torch.bernoulli(torch.full((5, 8), 0.4))
    vae.loss(x).sum().backward()
    p = torch.sigmoid(vae.encoder(x))
    prior = torch.tensor([0.4, 0.5, 0.6])
    kl = p * (p / prior).log() + (1 - p) * ((1 - p) / (1 - prior)).log()
    torch.testing.assert_close(vae.kl(x), kl.sum(-1))


def test_an_implicit_posterior_needs_a_prior_with_mass_on_every_atom():
    with pytest.raises(ValueError, match="none to 14 of 20"):
        model(Binomial(5, torch.tensor(0.3)), "implicit", level=20)
    model(Binomial(5, torch.tensor(0.3)), "implicit", level=6)


@pytest.mark.parametrize("log_rate", [-1e4, 100.0, 1e4])
def test_a_rate_of_any_size_is_finite(log_rate):
    q, p = CountLatents(Poisson(2.0))(torch.tensor([[log_rate, 1.0]], requires_grad=True))
    kl = torch.distributions.kl_divergence(q, p)
    assert kl.isfinite().all()
    kl.sum().backward()


@pytest.mark.parametrize("latents", [0, -1, "3", True])
def test_the_number_of_latents_is_checked(latents):
    with pytest.raises(ValueError, match="positive integer `latents`"):
        CountLatents(Poisson(2.0), latents=latents)


def test_a_function_that_gives_no_law():
    with pytest.raises(TypeError, match=r"function `posterior`.* Tensor"):
        CountLatents(Poisson(2.0), lambda raw: raw)(torch.zeros(2, 3))


def test_pixels_that_are_nan_are_called_so():
    x = torch.full((2, 8), float("nan"))
    with pytest.raises(ValueError, match="some are NaN"):
        model(Poisson(2.0)).loss(x)


@pytest.mark.parametrize("prior", ["poisson(2)", "poisson(2.0)", "Poisson( 2 )", "poisson(rate=2)"])
def test_a_prior_has_the_papers_level_however_it_is_typed(prior):
    assert _model(VaeConfig(prior=prior), gengs.MidCDF(), 784).latents.level == 12


def test_a_prior_that_the_paper_has_no_level_for():
    with pytest.raises(ValueError, match=r"--level.* 'poisson\(4\)'"):
        _model(VaeConfig(prior="poisson(4)"), gengs.MidCDF(), 784)


def test_a_fixed_prior_follows_buffers_that_are_swapped():
    prior = FixedPrior(gengs.truncate(Poisson(2.0), 12))
    other = {"logits": gengs.truncate(Poisson(5.0), 12).logits}
    swapped = torch.func.functional_call(prior, other, ())
    assert swapped.mean == pytest.approx(5.0, abs=0.02)
    assert prior().mean == pytest.approx(2.0, abs=0.02)
