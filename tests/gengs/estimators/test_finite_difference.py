import math

import pytest
import torch
from mean_gradient import LAWS, TWO_LAYERS, assert_same_mean, assert_unbiased, two_layers
from torch.distributions import (
    Bernoulli,
    Binomial,
    Independent,
    NegativeBinomial,
    Poisson,
)

from gengs import Finite, truncate
from gengs.estimators import FiniteDifference

DOUBLE = torch.float64


@pytest.mark.parametrize("factors", [1, 3])
@pytest.mark.parametrize("law", LAWS)
def test_unbiased(law, factors):
    assert_unbiased(FiniteDifference(), law, factors)


@pytest.mark.parametrize("law", ["poisson", "implicit"])
@pytest.mark.parametrize(
    "estimator", [FiniteDifference(1), FiniteDifference(2, samples=2), FiniteDifference(9)]
)
def test_random_coordinates_are_unbiased(estimator, law):
    assert_unbiased(estimator, law, 3)


def test_two_layers_and_a_learned_cost():
    assert_same_mean(FiniteDifference(), two_layers, TWO_LAYERS)


def other_laws():
    atoms = torch.tensor([2.0, -1.0, 7.0, 0.5, 3.0], dtype=DOUBLE)
    hole = torch.tensor([0.0, 0.0, -math.inf, -math.inf, 0.0], dtype=DOUBLE)
    return {
        "truncated": (lambda p: truncate(Poisson(p[..., 0]), 8), [2.5]),
        "unsorted": (lambda p: Finite(atoms, logits=p), [0.2, -0.5, 0.1, 0.9, -1.0]),
        "forbidden": (lambda p: Finite(atoms, logits=p + hole), [0.2, -0.5, 0.1, 0.9, -1.0]),
        "own atoms": (
            lambda p: Finite(atoms.flip(0) * torch.ones(len(p), 1, dtype=DOUBLE), logits=p),
            [0.2, -0.5, 0.1, 0.9, -1.0],
        ),
        "valley": (lambda p: Finite(atoms, logits=p), [0.0, 0.2, -0.1, 0.3, -9.0]),
        "bernoulli": (lambda p: Bernoulli(logits=p[..., 0]), [0.7]),
        "learned r": (
            lambda p: NegativeBinomial(p[..., 0], torch.full_like(p[..., 0], 0.3)),
            [2.0],
        ),
        "likely": (lambda p: Binomial(4, p[..., 0]), [0.7]),  # steps down, as the next two
        "likely logits": (lambda p: Binomial(4, logits=p[..., 0]), [0.9]),
        "surely": (lambda p: Binomial(4, p[..., 0].clamp(max=1.0)), [1.0 - 1e-9]),
    }


@pytest.mark.parametrize("name", other_laws())
def test_other_laws_are_unbiased(name):
    build, values = other_laws()[name]

    def expectation(estimator, p):
        return estimator.expect(lambda z: torch.sin(1.3 * z), build(p))

    assert_same_mean(FiniteDifference(), expectation, torch.tensor(values, dtype=DOUBLE))


def test_a_rare_atom_between_likely_ones_makes_no_huge_weight():
    logits = torch.tensor([0.0, -25.0, 0.0], dtype=DOUBLE).expand(5000, 3).clone().requires_grad_()
    FiniteDifference().expect(torch.square, Finite(torch.arange(3.0), logits)).sum().backward()
    assert logits.grad.abs().max() < 5


def test_the_cost_sees_only_possible_values():
    count = torch.tensor([3.0, 5.0])

    def cost(z):
        assert ((z >= 0) & (z <= count)).all()
        return z.sum(-1)

    for p in ([0.3, 0.9], [0.0, 1.0]):
        p = torch.tensor(p, requires_grad=True)
        value = FiniteDifference(samples=200).expect(cost, Independent(Binomial(count, p), 1))
        value.backward()
        torch.testing.assert_close(p.grad, count, rtol=0.5, atol=0.5)


def test_linear_cost_of_a_poisson_has_no_noise():
    rate = torch.rand(4, 3, requires_grad=True)
    FiniteDifference().expect(
        lambda z: 2 * z.sum(-1), Independent(Poisson(rate), 1)
    ).sum().backward()
    torch.testing.assert_close(rate.grad, torch.full((4, 3), 2.0))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shapes_evaluations_and_a_cost_without_gradient(dtype):
    seen = []

    def cost(z):
        seen.append(len(z))
        return (z > 1).sum((-1, -2)).to(dtype)

    rate = torch.rand(2, 3, 2, 2, dtype=dtype, requires_grad=True)
    for estimator in (FiniteDifference(1), FiniteDifference(3, samples=2)):
        seen.clear()
        value = estimator.expect(cost, Independent(Poisson(rate), 2))
        assert value.shape == (2, 3)
        assert value.dtype == dtype
        assert sum(seen) == estimator.evaluations
    value.sum().backward()
    assert torch.isfinite(rate.grad).all()


def test_refuses_bad_arguments():
    with pytest.raises(ValueError, match="coordinates"):
        FiniteDifference(0)
