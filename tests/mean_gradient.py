"""Is an estimator's mean gradient the exact one? Replicates run through the batch dimension.

False-alarm rate 1e-6 for each call, over all coordinates together. Power: with N replicates a bias
of 8 standard errors, 8 / sqrt(N) of a single gradient's standard deviation (6 % for N = 20,000), is
found almost surely.
"""

import scipy.stats
import torch
from frequencies import FALSE_ALARM
from torch.distributions import (
    Binomial,
    Categorical,
    Geometric,
    Independent,
    NegativeBinomial,
    Poisson,
)
from torch.nn.functional import softplus

from gengs import Finite, truncate
from gengs.estimators import Exact

DOUBLE = torch.float64
ATOMS = torch.tensor([-1.0, 0.0, 2.0, 5.0], dtype=DOUBLE)

LAWS = {
    "poisson": (lambda p: Poisson(p[..., 0].exp()), [-0.3]),
    "geometric": (lambda p: Geometric(logits=p[..., 0]), [0.6]),
    "geometric probs": (lambda p: Geometric(p[..., 0]), [0.6]),
    "binomial": (lambda p: Binomial(4, p[..., 0]), [0.3]),
    "binomial logits": (lambda p: Binomial(4, logits=p[..., 0]), [0.9]),
    "negative binomial": (lambda p: NegativeBinomial(2, p[..., 0]), [0.25]),
    "negative binomial logits": (lambda p: NegativeBinomial(2, logits=p[..., 0]), [-1.0]),
    "categorical": (lambda p: Categorical(logits=p), [0.3, -1.0, 0.6, 0.0]),
    "implicit": (lambda p: Finite(ATOMS, logits=p), [0.2, 0.9, -0.7, -0.4]),
}
"""How to build the law of a factor from parameters in the last dimension, and their values."""

FEW = ["poisson", "geometric", "binomial", "negative binomial", "categorical", "implicit"]

_generator = torch.Generator().manual_seed(0)
_HIDDEN, _OUT = (torch.randn(2, 6, generator=_generator, dtype=DOUBLE) for _ in range(2))


def _network(u):
    return (torch.tanh(torch.stack([u, u.square() / 4], -1) @ _HIDDEN) * _OUT[0]).sum(-1)


COSTS = [
    lambda u: (u - 1.3).square(),
    lambda u: (0.3 * u).exp(),
    lambda u: torch.sigmoid(8 * (u - 1.7)),
    _network,
]
"""Quadratic, exponential, steep, a small network; of a number."""


def all_costs(z):
    """Row i of the batch pays the i-th cost: values (S, 4, N) or (S, 4, N, 3) to (S, 4, N)."""
    if z.dim() == 4:
        z = (z * torch.tensor([1.0, -0.7, 0.4], dtype=z.dtype)).sum(-1) + 1
    return torch.stack([cost(z[:, i]) for i, cost in enumerate(COSTS)], 1)


def assert_unbiased(estimator, name, factors, replicates=20_000):
    """All four costs at once, on a scalar (``factors=1``) or on a vector of latents."""
    build, values = LAWS[name]
    values = torch.tensor(values, dtype=DOUBLE)
    if factors > 1:
        values = values * torch.tensor([[1.0], [0.8], [1.1]], dtype=DOUBLE)

    def expectation(estimator, p):
        q = build(p.movedim(1, 0))  # (4, N, [3])
        return estimator.expect(all_costs, q if factors == 1 else Independent(q, 1)).sum(0)

    assert_same_mean(estimator, expectation, values.expand(4, *values.shape), replicates)


def assert_same_mean(estimator, expectation, parameters, replicates=20_000, tolerance=1e-5):
    """The mean gradient of ``expectation(estimator, parameters)`` is that of ``Exact``.

    ``tolerance`` allows for what a truncation changes.
    """
    exact = _gradients(Exact(), expectation, parameters, 1)[0]
    found = _gradients(estimator, expectation, parameters, replicates)
    error = found.std(0) / replicates**0.5
    distance = ((found.mean(0) - exact).abs() - tolerance * (1 + exact.abs())).clamp_min(0)
    z = (distance / error.clamp_min(1e-12)).max().item()
    limit = scipy.stats.norm.isf(FALSE_ALARM / 2 / exact.numel())
    assert z < limit, f"the mean gradient {found.mean(0)} is {z:.1f} errors off {exact}"


def _gradients(estimator, expectation, parameters, replicates, at_once=2_000):
    found = []
    for start in range(0, replicates, at_once):  # in pieces that fit the cache
        size = min(at_once, replicates - start)
        repeated = parameters.to(DOUBLE).expand(size, *parameters.shape).clone().requires_grad_()
        expectation(estimator, repeated).sum().backward()
        found.append(repeated.grad)
    return torch.cat(found)


def two_layers(estimator, p):
    """A count that drives a second one, with a learned cost: ``expect`` inside ``expect``."""
    rate, slope, bias, scale = p.unbind(-1)

    def cost(z1):  # (S, N)
        q = truncate(Poisson(softplus(slope * z1 + bias)), 7)
        return estimator.expect(lambda z2: (z2 * scale - 0.5 * z1).square() + z1 * z2, q)

    return estimator.expect(cost, truncate(Poisson(rate), 5))


TWO_LAYERS = torch.tensor([1.2, 0.4, -0.2, 0.8])
