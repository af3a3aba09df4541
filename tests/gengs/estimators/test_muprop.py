import pytest
import torch
from exact_gradients import (
    COSTS,
    LAWS,
    assert_mean,
    assert_nests,
    assert_unbiased,
    gradient_variance,
)
from torch.distributions import Categorical, Independent, Multinomial, OneHotCategorical, Poisson

import gengs
from gengs.estimators import REINFORCE, Exact, MuProp


@pytest.mark.parametrize("factors", [0, 3])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("law", LAWS)
def test_the_mean_gradient_is_exact(law, cost, factors):
    assert_unbiased(MuProp(), law, factors, cost)


def test_stacked_layers_nest():
    assert_nests(MuProp)


@pytest.mark.parametrize("make", [Categorical, OneHotCategorical, lambda p: Multinomial(3, p)])
def test_laws_without_a_scalar_mean(make):
    """torch leaves a Categorical's mean NaN; one-hot draws and counts are vectors."""

    def cost(z):
        return z.square() if z.dim() == 2 else (z * torch.tensor([0.5, 2.0, -1.0])).sum(-1).exp()

    start = torch.tensor([0.5, 0.2, 0.3])
    one = start.double().unsqueeze(0).requires_grad_()
    (wanted,) = torch.autograd.grad(Exact().expect(cost, make(one.float())).sum(), one)
    p = start.expand(20_000, 3).clone().requires_grad_()
    MuProp(2).expect(cost, make(p)).sum().backward()
    assert_mean(p.grad, wanted[0])


def test_a_linear_cost_leaves_no_variance():
    """What remains, rounding apart, is the exact gradient of the mean."""

    def build(rate):
        return gengs.truncate(Poisson(rate), 20)

    rate = torch.tensor(2.0)
    plain = gradient_variance(REINFORCE(), lambda z: 3 * z, build, rate)
    assert gradient_variance(MuProp(), lambda z: 3 * z, build, rate) < 1e-8 * plain


def test_the_tangent_sends_nothing_to_the_cost():
    weight = torch.tensor(2.0, requires_grad=True)
    law = gengs.Finite(torch.tensor([0.0, 4.0]), logits=torch.zeros(2, requires_grad=True))
    seen = []

    def cost(z):
        seen.append(z.detach())
        return (weight * z) ** 2

    MuProp().expect(cost, law).backward()
    torch.testing.assert_close(weight.grad, 4 * seen[0][0] ** 2)


def test_a_step_function_is_refused():
    q = Independent(Poisson(torch.ones(2, 3, requires_grad=True)), 1)
    with pytest.raises(TypeError, match=r"MuProp.* differentiable"):
        MuProp().expect(lambda z: (z.detach() > 1).float().sum(-1), q)
    scale = torch.ones((), requires_grad=True)  # something to differentiate, but not the values
    with pytest.raises(TypeError, match=r"MuProp.* differentiable"):
        MuProp().expect(lambda z: scale * z.detach().sum(-1), q)


def test_evaluations_are_counted():
    calls = []
    q = Poisson(torch.ones(4))

    def cost(z):
        calls.append(len(z))
        return z

    MuProp(3).expect(cost, q)
    assert sum(calls) == MuProp(3).evaluations == 4
