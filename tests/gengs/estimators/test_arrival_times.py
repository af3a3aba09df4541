import math

import pytest
import torch
from frequencies import assert_mean
from mean_gradient import assert_same_mean
from torch.distributions import Geometric, Independent, Poisson

import gengs
from gengs import truncate
from gengs.estimators import ArrivalTimes

DOUBLE = torch.float64


def counts(estimator, rate, replicates=40_000):
    seen = []
    q = Poisson(torch.full((replicates,), rate, dtype=DOUBLE, requires_grad=True))
    estimator.expect(lambda z: seen.append(z[0].detach()) or z, q)
    return seen[0].numpy()


@pytest.mark.parametrize("rate", [0.05, 3.0, 40.0])
@pytest.mark.parametrize("tau", [0.1, 1.0])
def test_the_mean_of_the_cubic_is_the_rate(rate, tau):
    assert_mean(counts(ArrivalTimes(tau), rate), rate)


@pytest.mark.parametrize("tau", [0.1, 0.7])
def test_the_mean_of_the_sigmoid_is_known(tau):
    z = counts(ArrivalTimes(tau, kind="sigmoid"), 3.0)
    assert_mean(z, 3.0 * (1 + tau * math.log1p(math.exp(-1 / tau))))


def test_linear_costs_have_no_bias():
    def expectation(estimator, rate):
        return estimator.expect(lambda z: 2 * z.sum(-1), Independent(Poisson(rate), 1))

    assert_same_mean(ArrivalTimes(0.8), expectation, torch.tensor([3.0, 0.4]), 40_000)


def test_bias_of_the_quadratic_vanishes_with_the_temperature():
    """Exact gradient 1.8. E z² = λ² + λ ∫s² dt, so at τ the cubic's is 1.8 - 9/35 τ."""
    for tau in (0.8, 0.2):
        rate = torch.full((200_000,), 3.0, dtype=DOUBLE, requires_grad=True)
        ArrivalTimes(tau).expect(lambda z: (z - 2.6) ** 2, Poisson(rate)).sum().backward()
        assert_mean(rate.grad.numpy(), 1.8 - 9 / 35 * tau)


@pytest.mark.parametrize("kind", ["cubic", "sigmoid"])
def test_gradcheck_with_fixed_noise(kind):
    estimator = ArrivalTimes(0.6, kind=kind, samples=3)
    rate = torch.tensor([0.7, 4.0], dtype=DOUBLE, requires_grad=True)

    def value(rate):
        torch.manual_seed(3)
        return estimator.expect(torch.sin, Poisson(rate))

    assert torch.autograd.gradcheck(value, rate)


def test_tiny_temperature_gives_exact_counts():
    z = torch.from_numpy(counts(ArrivalTimes(1e-7), 2.0, 5000))
    assert (z - z.round()).abs().max() < 1e-6
    assert_mean(z.numpy(), 2.0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_shapes_nesting_learned_costs_and_rate_zero(dtype):
    rate = torch.tensor([[0.0, 1e-9, 2.0], [300.0, 5.0, 1.0]], dtype=dtype, requires_grad=True)
    weight = torch.tensor(0.5, dtype=dtype, requires_grad=True)
    estimator = ArrivalTimes(0.5, samples=2)

    def cost(z1):
        assert z1.shape == (2, 2, 3)
        inner = Independent(Poisson(1 + weight * z1), 1)
        return estimator.expect(lambda z2: (z2 - z1).square().sum(-1), inner)

    with pytest.warns(gengs.BoundaryWarning, match="ArrivalTimes: some parameter of Poisson"):
        value = estimator.expect(cost, Independent(Poisson(rate), 1))
    assert value.shape == (2,)
    assert value.dtype == dtype
    value.sum().backward()
    assert torch.isfinite(rate.grad).all()
    assert weight.grad is not None
    empty = Poisson(torch.ones(0, dtype=dtype, requires_grad=True))
    assert estimator.expect(torch.sin, empty).shape == (0,)


def test_refuses_other_laws_and_bad_arguments():
    rate = torch.ones(3, requires_grad=True)
    for q in (truncate(Poisson(rate), 5), Geometric(logits=rate)):
        with pytest.raises(TypeError, match=r"ArrivalTimes .*Poisson"):
            ArrivalTimes().expect(torch.sin, q)
    with pytest.raises(TypeError, match=r"ArrivalTimes.* differentiable"):
        ArrivalTimes().expect(lambda z: (z.detach() > 1).float(), Poisson(rate))
    with pytest.raises(ValueError, match="kind"):
        ArrivalTimes(kind="step")
    with pytest.raises(ValueError, match="temperature"):
        ArrivalTimes(0.0)


def test_too_few_arrivals_are_refused():
    rate = torch.tensor([2.0, 500.0], requires_grad=True)
    with pytest.raises(ValueError, match=r"arrivals=60.* too few.* 40"):
        ArrivalTimes(arrivals=60).expect(torch.sin, Poisson(rate))


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_rate_that_is_not_finite_is_named(bad):
    rate = torch.tensor([3.0, bad], requires_grad=True)
    with pytest.raises(ValueError, match="ArrivalTimes expects finite values in `rate`"):
        ArrivalTimes().expect(lambda z: z, Poisson(rate, validate_args=False))
