"""Is an estimator's mean gradient exact? Laws, costs, and a z-test of declared false-alarm rate.

The replicates of a gradient are the elements of one batch, each with parameters of its own: one
backward pass gives them all. The exact gradient comes from enumeration.
"""

import scipy.stats
import torch
from torch.distributions import Geometric, Independent, NegativeBinomial, Poisson

import gengs
from gengs.estimators import Exact

REPLICATES = 20_000
FALSE_ALARM = 1e-6

LAWS = {
    "poisson": ([0.4], lambda t: gengs.truncate(Poisson(t[..., 0].exp()), 6)),
    "geometric": ([-0.3], lambda t: gengs.truncate(Geometric(logits=t[..., 0]), 6)),
    "negative binomial": (
        [0.7, -0.5],
        lambda t: gengs.truncate(NegativeBinomial(t[..., 0].exp(), logits=t[..., 1]), 6),
    ),
    "implicit": (
        [0.3, -1.2, 0.8, 0.1],
        lambda t: gengs.Finite(torch.tensor([0.0, 1.0, 2.0, 4.0]).to(t), logits=t),
    ),
}
"""The parameters of one factor, and the law that they make."""

_generator = torch.Generator().manual_seed(5)
_IN, _OUT = (torch.randn(2, 8, generator=_generator, dtype=torch.float64) for _ in range(2))


def _network(total):
    hidden = (total.unsqueeze(-1) * _IN[0].to(total) + _IN[1].to(total)).tanh()
    return hidden @ _OUT[0].to(total) + 3


COSTS = {
    "quadratic": lambda total: (total - 1.3) ** 2,
    "exponential": lambda total: (0.3 * total).exp(),
    "steep sigmoid": lambda total: torch.sigmoid(6 * (total - 2.2)),
    "network": _network,
}
"""Functions of the sum over the factors, so that no factor stands alone."""


def problem(law, factors, cost, replicates, dtype=torch.float32):
    """Parameters, the law they make, a cost with a parameter of its own, and that parameter."""
    start, build = LAWS[law]
    theta = torch.tensor(start, dtype=dtype)
    if factors:
        # the factors differ
        theta = theta + torch.linspace(-0.3, 0.3, factors, dtype=dtype).unsqueeze(-1)
    theta = theta.expand(replicates, *theta.shape).clone().requires_grad_()
    weight = torch.full((replicates,), 0.9, dtype=dtype, requires_grad=True)

    def weighed(z):
        return COSTS[cost](weight * (z.sum(-1) if factors else z))

    q = build(theta)
    return theta, weight, weighed, Independent(q, 1) if factors else q


def exact(law, factors, cost):
    """The expectation and its gradients, by enumeration in double precision."""
    theta, weight, f, q = problem(law, factors, cost, 1, torch.float64)
    value = Exact().expect(f, q)
    return value.item(), *(g[0] for g in torch.autograd.grad(value.sum(), (theta, weight)))


def assert_unbiased(estimator, law, factors, cost, replicates=REPLICATES):
    """Value and gradients, of the law's and of the cost's parameters, have the exact mean."""
    value, *gradients = exact(law, factors, cost)
    theta, weight, f, q = problem(law, factors, cost, replicates)
    result = estimator.expect(f, q)
    result.sum().backward()
    assert result.shape == (replicates,)
    assert_mean(result.detach(), torch.tensor(value))
    assert_mean(theta.grad, gradients[0])
    assert_mean(weight.grad, gradients[1])


def assert_mean(samples, mean):
    """Two-sided z-test of each entry's mean over the first dimension, at one rate for all entries.

    Power: an error of 10 standard errors is found almost surely, which for 2e4 replicates is a bias
    of 7 % of a single gradient's standard deviation.
    """
    samples = samples.double()
    error = samples.std(0) / len(samples) ** 0.5
    # rounding in float32 is no bias: a mean of equal numbers has standard error zero
    z = (samples.mean(0) - mean.double().reshape(error.shape)).abs() / (error + 1e-6)
    limit = scipy.stats.norm.isf(FALSE_ALARM / 2 / error.numel())
    assert z.max() < limit, f"mean {samples.mean(0)} instead of {mean}: {z.max():.1f} errors off"


def two_layers(outer, inner, theta, shift):
    """A latent layer below another: the cost of the first is an expectation over the second."""
    first = gengs.truncate(Poisson(theta.exp()), 4)  # (R, 2)

    def cost(z):  # (S, R, 2)
        second = gengs.truncate(Poisson((shift + 0.2 * z.sum(-1)).exp()), 5)
        return inner.expect(lambda y: (y - z[..., 0] - 1).square(), second)

    return outer.expect(cost, Independent(first, 1))


def assert_nests(make, replicates=40_000):
    """The gradients of both layers' parameters have the exact mean."""
    start = torch.tensor([0.1, -0.4]), torch.tensor(-0.5)
    theta, shift = (t.double().unsqueeze(0).requires_grad_() for t in start)
    value = two_layers(Exact(), Exact(), theta, shift)
    wanted = torch.autograd.grad(value.sum(), (theta, shift))
    theta, shift = (t.expand(replicates, *t.shape).clone().requires_grad_() for t in start)
    result = two_layers(make(), make(), theta, shift)
    result.sum().backward()
    assert_mean(result.detach(), value.detach())
    assert_mean(theta.grad, wanted[0])
    assert_mean(shift.grad, wanted[1])


def gradient_variance(estimator, cost, build, theta, replicates=REPLICATES):
    """The trace of the covariance of one gradient with respect to ``theta``."""
    theta = theta.detach().expand(replicates, *theta.shape).clone().requires_grad_()
    estimator.expect(cost, build(theta)).sum().backward()
    return theta.grad.var(0).sum().item()
