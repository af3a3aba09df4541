"""The exponential tilt: what it contains, its gradients, and posteriors made of it."""

import pytest
import torch
from torch import nn
from torch.distributions import (
    Binomial,
    Geometric,
    NegativeBinomial,
    OneHotCategorical,
    Poisson,
    kl_divergence,
)

import gengs
import gengs_experiments.models
from gengs.nn.count_latents import CountLatents

PRIORS = {
    "Poisson": (Poisson(torch.tensor(2.0, dtype=torch.double)), 12),
    "Geometric": (Geometric(torch.tensor(0.25, dtype=torch.double)), 25),
    "NegativeBinomial": (NegativeBinomial(3.0, torch.tensor(0.5, dtype=torch.double)), 30),
    "Binomial": (Binomial(6, torch.tensor(0.3, dtype=torch.double)), None),
    "of each latent": (Poisson(torch.tensor([0.5, 2.0, 7.0], dtype=torch.double)), 16),
    "uneven": (gengs.Finite(torch.tensor([0.0, 0.5, 3.0, 10.0]), probs=torch.ones(4)), None),
}


def finite(name):
    law, level = PRIORS[name]
    return gengs.truncate(law, level)


@pytest.mark.parametrize("name", PRIORS)
def test_the_tilt_is_its_formula(name):
    p = finite(name)
    a, b = torch.tensor(1.7, dtype=torch.double), torch.tensor(0.6, dtype=torch.double)
    atoms, mean = p.atoms, p.mean.unsqueeze(-1)
    t = (atoms - mean) / ((p.probs * (atoms - mean) ** 2).sum(-1, keepdim=True)).sqrt()
    weights = p.probs * (a * t - b * t**2).exp()
    q = gengs.tilt(p, a, b)
    torch.testing.assert_close(q.probs, (weights / weights.sum(-1, keepdim=True)).to(q.probs))
    torch.testing.assert_close(gengs.tilt(p, 0.0).probs, p.probs)


def test_the_tilt_of_a_poisson_is_a_poisson():
    """With exp(a / sd) as the factor of the rate; cut far out, where no mass is."""
    p = gengs.truncate(Poisson(torch.tensor(2.0, dtype=torch.double)), 60)
    q = gengs.tilt(p, torch.tensor(2.0**0.5, dtype=torch.double) * torch.tensor(3.0).double().log())
    torch.testing.assert_close(q.mean.item(), 6.0)
    torch.testing.assert_close(q.variance.item(), 6.0)


def test_gradients_reach_all_parameters_of_both_laws():
    def value(rate, a, b):
        p = gengs.truncate(Poisson(rate), 9)
        q = gengs.tilt(p, a, b)
        return kl_divergence(q, p) + q.mean

    points = (1.5, 0.7, 0.3)
    arguments = [torch.tensor(x, dtype=torch.double, requires_grad=True) for x in points]
    assert torch.autograd.gradcheck(value, arguments)


def test_what_cannot_be_tilted_is_named():
    with pytest.raises(ValueError, match="truncate expects a rule"):
        gengs.tilt(Poisson(2.0), 1.0)
    with pytest.raises(TypeError, match="tilt expects numbers as atoms"):
        gengs.tilt(OneHotCategorical(torch.ones(3)), 1.0)
    with pytest.raises(ValueError, match="logits"):
        gengs.tilt(gengs.truncate(Poisson(2.0), 5), torch.tensor(float("nan")))


# ------------------------------------------------------------------------------------- posteriors


def latents(name, **settings):
    law, level = PRIORS[name]
    return CountLatents(law, "tilted", level=level, **settings)


def posterior(name, location, log_precision):
    raw = torch.tensor([location, log_precision], dtype=torch.double).repeat(3)  # three latents
    return latents(name)(raw.expand(2, 6))


@pytest.mark.parametrize("name", PRIORS)
def test_a_tilted_posterior_contains_the_prior_and_every_atom(name):
    q, p = posterior(name, 0.0, -20.0)
    torch.testing.assert_close(q.probs, p.probs.expand_as(q.probs), rtol=1e-5, atol=1e-8)
    # sharp ones, from far left of the atoms to far right of them
    raw = torch.stack([torch.linspace(-40, 40, 4000), torch.full((4000,), 20.0)], -1)
    q, p = latents(name)(raw.repeat(1, 3))
    for latent in range(3):
        atoms = p.atoms.expand(3, -1)[latent] if p.atoms.dim() > 1 else p.atoms
        assert q.mode[:, latent].unique().tolist() == atoms.tolist()
        assert (q.probs[:, latent].amax(0) > 0.999).all()


@pytest.mark.parametrize("name", PRIORS)
@pytest.mark.parametrize("dtype", [torch.float, torch.half])
def test_no_raw_number_is_too_large(name, dtype):
    """Laws, divergences, draws and gradients stay finite, and only possible atoms are drawn."""
    torch.manual_seed(0)
    ends = torch.tensor([-6e4, -50.0, -1.0, 0.0, 3.0, 50.0, 6e4], dtype=dtype)
    raw = torch.cartesian_prod(ends, ends)[:, None, :].expand(-1, 3, -1).flatten(1)
    raw = raw.detach().requires_grad_()
    q, p = latents(name)(raw)
    assert q.logits.dtype != torch.half and q.logits.isfinite().all()
    kl = kl_divergence(q, p)
    assert kl.isfinite().all() and (kl > -1e-5).all()
    z = gengs.rsample(q, torch.Size([50]))
    assert (q.log_prob(z.detach()) > -80).all()
    (z.square().sum() + kl.sum()).backward()
    assert raw.grad.isfinite().all()
    assert raw.grad.abs().max() < 1e6


def test_a_law_with_a_sure_atom_has_slopes_of_its_own_size():
    """The slope of a draw in the location: at most about the distance that a draw can be off.

    Ten million draws of laws that are sure of an atom up to e^-10, so that both neighbours come up.
    """
    torch.manual_seed(1)
    raw = torch.tensor([1.2, 20.0]).repeat(100_000, 1).requires_grad_()
    q, _ = CountLatents(Poisson(2.0), "tilted", level=12)(raw)
    z = gengs.rsample(q)
    assert len(z.unique()) > 1
    (slope,) = torch.autograd.grad(z.sum(), raw)
    assert slope.abs().max() < 60


class Rates(nn.Module):
    def __init__(self):
        super().__init__()
        self.log_rate = nn.Parameter(torch.tensor([0.1, 1.0, 1.6]))

    def forward(self):
        return Poisson(self.log_rate.exp())


def test_a_learned_prior_under_a_tilted_posterior():
    torch.manual_seed(0)
    prior = Rates()
    q, p = CountLatents(prior, "tilted", level=20)(torch.randn(5, 6))
    (kl_divergence(q, p).sum() + gengs.rsample(q, torch.Size([2])).sum()).backward()
    assert prior.log_rate.grad.isfinite().all() and prior.log_rate.grad.all()


def test_mistakes_are_named():
    with pytest.raises(ValueError, match=r"tilted posterior.* atoms"):
        CountLatents(Poisson(2.0), "tilted")
    with pytest.raises(ValueError, match="2 outputs for each latent"):
        CountLatents(Poisson(2.0), "tilted", level=5)(torch.zeros(2, 3))


class Heavy(nn.Module):
    """A prior whose variance nobody knows."""

    def forward(self):
        law = Poisson(torch.tensor([2.0, 2.0]))
        law.__class__ = type("Heavy", (Poisson,), {"variance": torch.tensor(torch.inf)})
        return law


def test_a_prior_without_a_variance_is_shown_as_it_is():
    def model(**settings):
        networks = nn.Linear(4, 2), nn.Linear(2, 4)
        return gengs_experiments.models.VAE(
            *networks, Heavy(), gengs.MidCDF(), lambda raw: Poisson(raw.exp()), **settings
        )

    with pytest.raises(ValueError, match="pass standardise=False"):
        model()
    model(standardise=False).loss(torch.ones(3, 4)).sum().backward()


def test_the_decoder_sees_standardised_counts_or_the_counts():
    seen = []
    for standardise in (True, False):
        torch.manual_seed(0)
        networks = nn.Linear(4, 3), nn.Linear(3, 4)
        networks[1].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
        model = gengs_experiments.models.VAE(
            *networks, Poisson(4.0), gengs.MidCDF(), level=20, standardise=standardise
        )
        model.half().float()  # no digits of the mean are lost
        model.loss(torch.ones(5, 4))
    assert seen[1].equal(seen[1].round()) and seen[1].min() >= 0
    p = gengs.truncate(Poisson(torch.tensor(4.0)), 20)
    torch.testing.assert_close(seen[0] * p.stddev + p.mean, seen[1])


@pytest.mark.parametrize("samples", [2, 3, 8])
def test_several_draws_are_antithetic_pairs(samples):
    """Of a symmetric law, the draws of u and 1 - u lie opposite to one another."""
    torch.manual_seed(0)
    p = gengs.truncate(Binomial(10, torch.tensor(0.5)))
    q = gengs.tilt(p, torch.zeros(4000), 0.3)
    seen = []
    gengs.MidCDF(samples, antithetic=True).expect(lambda z: seen.append(z.detach()) or z, q)
    pairs = (samples + 1) // 2
    first, second = seen[0][: samples - pairs], seen[0][pairs:]
    assert (first + second == 10).all() and len(first.unique()) > 5
