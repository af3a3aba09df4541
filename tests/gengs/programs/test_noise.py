"""Draws by hand, of uniform or normal numbers, are recognised or named: never lost in silence."""

import pytest
import torch
from torch.distributions import Normal, Uniform

import gengs
from gengs import CutGradientWarning, differentiable

N = 50


def gumbel(p):
    return torch.stack([p, 1 - p], -1).log() - torch.rand(N, 2).log().neg().log()


def cdf(p):
    return torch.stack([p[0], torch.ones(())])


BY_HAND = {
    "difference": lambda p: (torch.rand(N) - p) < 0,
    "ceil": lambda p: torch.ceil(p - torch.rand(N)),
    "floor": lambda p: torch.floor(p + torch.rand(N)),
    "logits": lambda p: p.logit() + torch.rand_like(p).logit() > 0,
    "argmax": lambda p: gumbel(p).argmax(-1),
    "indices": lambda p: gumbel(p).max(-1).indices,
    "exponential": lambda p: (torch.empty(N).exponential_() * p).long(),
    "searchsorted": lambda p: torch.searchsorted(cdf(p), torch.rand(N)),
    "bucketize": lambda p: torch.bucketize(torch.rand(N), cdf(p)),
    "probit": lambda p: torch.randn(N) < p,
    "complement": lambda p: 1 - torch.rand(N) < p,
    "Uniform": lambda p: Uniform(0, 1).sample((N,)) < p,
    "Normal": lambda p: Normal(p, 1.0).rsample() < 0,
}


@pytest.mark.parametrize("by", [None, gengs.RLOO()], ids=["path", "score"])
@pytest.mark.parametrize("name", BY_HAND)
def test_a_draw_by_hand_beside_another_is_named(name, by):
    p = torch.full((N,), 0.3, requires_grad=True)

    def run():
        with differentiable(by=by) as program:
            z = BY_HAND[name](p) + torch.poisson(p)
        program.loss(z).mean().backward()

    if by is not None:  # it may raise at once; a warning is an error in the tests
        sentence = r"test_noise.py:\d+.*draw by torch.bernoulli"
        with pytest.raises((ValueError, CutGradientWarning), match=sentence):
            run()
    else:
        with pytest.warns(CutGradientWarning, match=r"test_noise.py:\d+: uniform numbers"):
            run()


@pytest.mark.parametrize("by", [None, gengs.RLOO()], ids=["path", "score"])
def test_noise_that_is_not_compared_is_no_news(by):
    p = torch.full((N,), 0.3, requires_grad=True)
    with differentiable(by=by) as program:
        state = p + 0.1 * torch.randn(N)
        z = torch.poisson(state.exp()) + (torch.rand(N) < 0.5) + (torch.randn(N) > 0)
    program.loss(z + state).mean().backward()


@pytest.mark.parametrize("by", [None, gengs.RLOO()], ids=["path", "score"])
def test_torch_normal_carries_the_gradient_of_its_law(by):
    """E z² = μ² + σ², at 5 standard errors; the numbers are those of the plain call."""
    mean = torch.full((20_000,), 0.7, requires_grad=True)
    std = torch.full((20_000,), 0.5, requires_grad=True)
    torch.manual_seed(0)
    with differentiable(by=by) as program:
        z = torch.normal(mean, std)
    torch.manual_seed(0)
    torch.testing.assert_close(z.detach(), torch.normal(mean, std).detach())
    found = torch.autograd.grad(program.loss(z.square()).sum(), (mean, std))
    for gradients, exact in zip(found, (1.4, 1.0), strict=True):
        assert (gradients.mean() - exact).abs() < 5 * gradients.std() / 20_000**0.5
