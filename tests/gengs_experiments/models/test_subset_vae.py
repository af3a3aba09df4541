"""A VAE whose latents are groups of k-of-n elements, so small that it can be enumerated."""

from itertools import product

import pytest
import torch
from torch import nn

import gengs
from gengs.nn import SubsetLatents
from gengs_experiments.models import VAE, mlp

GROUPS, N, K, PIXELS = 2, 4, 2, 5
IMAGES = torch.tensor([[1, 0, 1, 1, 0], [0, 0, 1, 0, 1.0]], dtype=torch.float64)


def tiny(estimator, **settings):
    torch.manual_seed(5)
    encoder, decoder = mlp([PIXELS, GROUPS * N]), mlp([GROUPS * N, 8, PIXELS], nn.Tanh)
    prior = gengs.Subset(K, torch.zeros(N))
    settings = {"latents": GROUPS} | settings
    return VAE(encoder, decoder, prior, estimator, **settings).double()


def enumerated(model):
    """The negative ELBO and the log-likelihood, by all 36 outcomes."""
    q, p = model.laws(IMAGES)
    sets = gengs.Subset(K, torch.zeros(N)).outcomes().double()
    z = torch.stack([torch.stack(pair) for pair in product(sets, sets)])  # (36, G, N)
    z = z.unsqueeze(1).expand(-1, len(IMAGES), -1, -1)
    log_q, log_p = q.log_prob(z).sum(-1), p.log_prob(z).sum(-1)
    cost = model.reconstruction_cost(IMAGES, z)  # (36, B)
    elbo = (log_q.exp() * (cost + log_q - log_p)).sum(0)
    return elbo, (log_p - cost).logsumexp(0)


def test_bounds_are_those_of_all_outcomes():
    model = tiny(gengs.MidCDF())
    elbo, likelihood = (x.detach() for x in enumerated(model))
    torch.manual_seed(0)
    found = torch.stack([model.negative_elbo(IMAGES, 200) for _ in range(20)])
    # twenty means: 4.9 standard errors are a false alarm of 1e-4 for t with 19 degrees of freedom
    assert ((found.mean(0) - elbo).abs() < 4.9 * found.std(0) / 20**0.5).all()
    torch.testing.assert_close(model.log_likelihood(IMAGES, 4000), likelihood, atol=0.02, rtol=0)


def test_the_swap_rules_gradient_reaches_the_encoder():
    model = tiny(gengs.MidCDF(debias=1))
    weight = model.encoder[-1].weight
    exact = torch.autograd.grad(enumerated(model)[0].sum(), weight)[0]
    torch.manual_seed(0)
    many = IMAGES.repeat(50, 1)
    groups = [torch.autograd.grad(model.loss(many).sum() / 50, weight)[0] for _ in range(20)]
    found = torch.stack(groups)
    error = found.std(0) / 20**0.5
    # 32 numbers, 6.5 standard errors of t with 19 degrees of freedom: a false alarm of 1e-4
    assert ((found.mean(0) - exact).abs() <= 6.5 * error).all()
    assert (error < 0.05 * exact.abs().max()).all()  # what it would notice


@pytest.mark.parametrize(
    "estimator",
    [gengs.StraightThroughMean(), gengs.GenGS(0.5), gengs.RLOO(2), gengs.VIMCO(3), gengs.MuProp()],
    ids=repr,
)
def test_every_estimator_trains_it(estimator):
    model = tiny(estimator, standardise=False)
    model.loss(IMAGES).mean().backward()
    assert all(p.grad.isfinite().all() and p.grad.any() for p in model.encoder.parameters())
    assert model.sample_prior(3).shape == (3, PIXELS)
    assert model.reconstruct(IMAGES).shape == IMAGES.shape
    assert model.active_units(IMAGES).shape == (GROUPS, N)


def test_the_prior_itself_costs_nothing():
    q, p = SubsetLatents(gengs.Subset(3, torch.randn(6)))(torch.zeros(2, 12, dtype=torch.bfloat16))
    assert q.logits.dtype == torch.float32
    torch.testing.assert_close(torch.distributions.kl_divergence(q, p), torch.zeros(2, 2))


def test_bad_usage():
    with pytest.raises(ValueError, match="leave out `posterior`, `level` and `mass`"):
        tiny(gengs.MidCDF(), level=3)
    with pytest.raises(ValueError, match="Subset prior of one group"):
        SubsetLatents(gengs.Subset(1, torch.zeros(2, 3)))
    with pytest.raises(ValueError, match="without gradients"):
        SubsetLatents(gengs.Subset(1, torch.zeros(3, requires_grad=True)))
    with pytest.raises(ValueError, match=r"4 outputs for each group, .* got shape \(2, 9\)"):
        SubsetLatents(gengs.Subset(2, torch.zeros(4)))(torch.zeros(2, 9))
