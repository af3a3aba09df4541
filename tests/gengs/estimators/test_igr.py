import pytest
import torch
from exact_gradients import LAWS, assert_mean
from torch.distributions import Independent, Normal, OneHotCategorical, Poisson

import gengs
from gengs.estimators import IGR, Exact
from gengs.estimators.igr import _stick_means


def broken_stick(logits):
    """The zero-temperature law: the first stick whose Gaussian is positive."""
    stop = Normal(0.0, 1.0).cdf(_stick_means(logits))
    stop = torch.cat([stop, torch.ones_like(stop[..., :1])], -1)
    go_on = torch.cat([torch.ones_like(stop[..., :1]), (1 - stop[..., :-1]).cumprod(-1)], -1)
    return stop * go_on


@pytest.mark.parametrize("law", LAWS)
def test_the_zero_temperature_law_is_exactly_the_law(law):
    start, build = LAWS[law]
    q = build(torch.tensor(start, dtype=torch.float64))
    torch.testing.assert_close(broken_stick(q.logits), q.probs)


def test_the_means_differentiate():
    logits = torch.randn(3, 6, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda t: _stick_means(t.log_softmax(-1)), (logits,))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rare_and_impossible_atoms(dtype):
    """Tiny and certain sticks keep their means finite, and impossible atoms get no weight."""
    logits = torch.tensor([0.0, -torch.inf, -90.0, 1.0, -650.0, -1e4, -torch.inf], dtype=dtype)
    logits.requires_grad_()
    q = gengs.Finite(torch.arange(7.0, dtype=dtype), logits=logits)
    torch.testing.assert_close(broken_stick(q.logits), q.probs, rtol=1e-5, atol=1e-7)
    IGR(0.3).expect(lambda z: z.square(), q).backward()
    assert logits.grad.isfinite().all()


def mean_gradient(tau, cost, replicates=60_000):
    rate = torch.full((replicates,), 3.0, requires_grad=True)
    IGR(tau).expect(cost, gengs.truncate(Poisson(rate), 12)).sum().backward()
    return rate.grad


def exact_gradient(cost):
    rate = torch.tensor([3.0], requires_grad=True)
    Exact().expect(cost, gengs.truncate(Poisson(rate), 12)).backward()
    return rate.grad


def test_the_bias_vanishes_with_the_temperature():
    """At .03 it is a twentieth of the gradient; the z-test of rate 1e-6 sees a fifth."""

    def cost(z):
        return (z - 2.6).square()

    wanted = exact_gradient(cost)
    biases = [float(mean_gradient(tau, cost).mean() - wanted) for tau in (1.0, 0.3, 0.1)]
    assert abs(biases[0]) > 2 * abs(biases[1]) > 4 * abs(biases[2])
    assert_mean(mean_gradient(0.03, cost), wanted)


def test_the_documented_bias():
    """The docstring's -0.29 of 1.79 at .1, and its variance of 31."""
    gradients = mean_gradient(0.1, lambda z: (z - 2.6).square())
    assert_mean(gradients, torch.tensor(1.795 - 0.294))
    assert gradients.var().item() == pytest.approx(31, rel=0.1)


def test_fixed_noise_gradcheck():
    logits = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)

    def value(table):
        torch.manual_seed(0)
        q = Independent(gengs.Finite(torch.arange(5.0, dtype=torch.float64), logits=table), 1)
        return IGR(0.7, samples=3).expect(lambda z: z.square().sum(-1), q)

    assert torch.autograd.gradcheck(value, (logits,))


def test_stacked_layers_nest():
    """At a low temperature both layers' gradients are the enumerated ones."""
    start = torch.tensor(0.1), torch.tensor(-0.5)

    def loss(outer, inner, theta, shift):
        first = gengs.truncate(Poisson(theta.exp()), 4)

        def cost(z):
            second = gengs.truncate(Poisson((shift + 0.2 * z).exp()), 5)
            return inner.expect(lambda y: (y - z - 1).square(), second)

        return outer.expect(cost, first).sum()

    theta, shift = (t.reshape(1).requires_grad_() for t in start)
    wanted = torch.autograd.grad(loss(Exact(), Exact(), theta, shift), (theta, shift))
    theta, shift = (t.detach().expand(100_000).clone().requires_grad_() for t in (theta, shift))
    loss(IGR(0.02), IGR(0.02), theta, shift).backward()
    assert_mean(theta.grad, wanted[0])
    assert_mean(shift.grad, wanted[1])


def test_weights_lie_on_the_simplex():
    q = OneHotCategorical(logits=torch.randn(5, 3, 6))
    seen = []

    def cost(z):
        seen.append(z)
        return z.square().sum((-1, -2))

    IGR(0.5, samples=4).expect(cost, Independent(q, 1))
    assert seen[0].shape == (4, 5, 3, 6)
    assert (seen[0] >= 0).all()
    torch.testing.assert_close(seen[0].sum(-1), torch.ones(4, 5, 3))


@pytest.mark.parametrize("batch", [(), (4,), (2, 0), (2, 3)])
def test_any_batch_and_one_atom(batch):
    rate = torch.full((*batch, 5), 2.0, requires_grad=True)
    q = Independent(Poisson(rate), 1)
    assert IGR().expect(lambda z: z.sum(-1), q).shape == batch
    one = gengs.Finite(torch.tensor([7.0]), logits=torch.zeros(*batch, 1))
    torch.testing.assert_close(IGR().expect(lambda z: z, one), torch.full(batch, 7.0))


def test_schedules_and_tensors_are_temperatures():
    q = Independent(Poisson(torch.full((4, 3), 2.0, requires_grad=True)), 1)
    for tau in (gengs.temperature.Constant(0.4), torch.tensor([0.2, 0.5, 1.0])):
        assert IGR(tau).expect(lambda z: z.sum(-1), q).shape == (4,)
    with pytest.raises(ValueError, match="temperature"):
        IGR(0.0)


def test_a_step_function_is_refused():
    q = Poisson(torch.ones(4, requires_grad=True))
    with pytest.raises(TypeError, match=r"IGR.* differentiable"):
        IGR().expect(lambda z: (z > 1).float(), q)
