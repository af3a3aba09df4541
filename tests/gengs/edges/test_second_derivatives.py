"""A second derivative is right, or an error: never the derivative of a surrogate, in silence."""

from functools import partial

import pytest
import torch
from settings import SETTINGS
from torch.distributions import Independent, OneHotCategorical, Poisson

import gengs
from gengs import Finite

DOUBLE = torch.float64
TWICE = {"Exact", "GenGS", "IGR", "ArrivalTimes"}
"""Whose second derivative is that of what they estimate: a sum, or a relaxed cost."""
MOVING_DRAWS = TWICE | {"MidCDF", "StraightThroughMean", "ReinMax", "GumbelRao"}
"""Whose draws have a gradient of their own, which the slope of a cost has, too."""


def expectation(name, theta):
    """Of a cost with a parameter of its own, under a cut law."""
    estimator = SETTINGS[name].make()
    if name == "ArrivalTimes":
        q = Poisson(theta.exp().expand(3))
    else:
        q = Finite(torch.arange(4.0, dtype=DOUBLE), logits=theta * torch.arange(4.0).expand(3, 4))
    return lambda own: estimator.expect(lambda z: (z - own).square().sum(-1), Independent(q, 1))


@pytest.mark.parametrize("name", SETTINGS)
def test_an_estimate_is_not_differentiated_twice(name):
    theta = torch.tensor(0.3, dtype=DOUBLE, requires_grad=True)
    own = torch.tensor(0.4, dtype=DOUBLE, requires_grad=True)
    value = expectation(name, theta)(own)
    slopes = torch.autograd.grad(value, (theta, own), create_graph=True)
    if name in TWICE:
        assert torch.autograd.grad(slopes[0], theta)[0].isfinite()
        return
    with pytest.raises(RuntimeError, match=r"second derivative|no derivative of its own|index"):
        torch.autograd.grad(slopes[0], theta, retain_graph=True)
    if name != "VIMCO":  # the cost's own part is right: of three squares it is 6
        (second,) = torch.autograd.grad(slopes[1], own)
        assert second.item() == pytest.approx(6.0)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.parametrize("name", SETTINGS)
def test_a_mixed_derivative_is_that_of_the_draw_or_an_error(name):
    """Of -2 Σ E[z] in the rate of E: a score leaves nothing of it in the cost's own gradient."""
    theta = torch.tensor(0.3, dtype=DOUBLE, requires_grad=True)
    own = torch.tensor(0.4, dtype=DOUBLE, requires_grad=True)
    (slope,) = torch.autograd.grad(expectation(name, theta)(own), own, create_graph=True)
    if name in MOVING_DRAWS:
        slope.backward()
        assert theta.grad.item() < 0
        return
    with pytest.raises(RuntimeError, match="second derivative"):
        slope.backward()
    forward = partial(torch.func.jacfwd, randomness="same")
    for outer in (torch.func.jacrev, forward):
        for inner in (torch.func.grad, forward):
            for first, second in ((theta, own), (own, theta)):

                def once(x, y, first=first, inner=inner):
                    def value(y):
                        pair = (x, y) if first is theta else (y, x)
                        return expectation(name, pair[0])(pair[1])

                    return inner(value)(y)

                start = second.detach()
                with pytest.raises(RuntimeError, match=r"second derivative|torch\.func"):
                    outer(partial(once, y=start))(first.detach())


@pytest.mark.parametrize("event_dim", [0, 1])
@pytest.mark.parametrize("name", ["MidCDF", "GumbelRao", "RLOO"])
def test_the_slope_in_learned_atoms_has_no_derivative_in_the_table(name, event_dim):
    """Which of the atoms has the slope depends on the table, and that part is nowhere."""
    theta = torch.tensor([0.3, 0.1, -0.4], dtype=DOUBLE, requires_grad=True)
    atoms = torch.arange(3.0 + 3 * event_dim, dtype=DOUBLE).unflatten(0, (3, *[2] * event_dim))
    q = Finite(atoms.requires_grad_(), logits=theta, event_dim=event_dim)

    def cost(z):
        return z.square().flatten(1).sum(-1) if event_dim else z.square()

    value = SETTINGS[name].make().expect(cost, q)
    (slope,) = torch.autograd.grad(value, atoms, create_graph=True)
    torch.autograd.grad(slope.sum(), atoms, retain_graph=True)  # this part is there
    with pytest.raises(RuntimeError, match="second derivative"):
        slope.sum().backward()


@pytest.mark.parametrize("name", SETTINGS)
def test_a_weight_of_the_estimate_may_be_learned(name):
    """The gradient is linear in it: its derivative in the weight is a first derivative."""
    theta = torch.tensor(0.3, dtype=DOUBLE, requires_grad=True)
    weight = torch.tensor(2.0, dtype=DOUBLE, requires_grad=True)
    value = expectation(name, theta)(0.4)
    (slope,) = torch.autograd.grad(weight * value, theta, create_graph=True)
    (found,) = torch.autograd.grad(slope, weight)
    torch.testing.assert_close(found, slope.detach() / 2, rtol=1e-5, atol=0.0)


def test_forward_mode_by_two_backward_passes_is_a_first_derivative():
    def value(theta):
        torch.manual_seed(0)
        return expectation("RLOO", theta)(0.4)

    start, one = torch.tensor(0.3, dtype=DOUBLE), torch.tensor(1.0, dtype=DOUBLE)
    found = torch.autograd.functional.jvp(value, start, one)[1]
    torch.testing.assert_close(found, torch.func.grad(value)(start), rtol=1e-5, atol=0.0)


def test_nested_forward_mode_in_another_variable_passes_an_estimate_by():
    held = torch.tensor(0.3, dtype=DOUBLE)

    def cube(x):
        return x**3 + expectation("RLOO", held)(0.4)

    forward = partial(torch.func.jacfwd, randomness="same")
    assert forward(forward(cube))(torch.tensor(2.0)).item() == 12.0


# forward mode of lgamma is a decomposition that torch compiles the old way
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
@pytest.mark.parametrize("name", ["REINFORCE", "RLOO", "StraightThroughMean", "FiniteDifference"])
def test_forward_mode_has_the_same_gradient_and_no_second_one(name):
    def value(theta):
        torch.manual_seed(0)
        return expectation(name, theta)(0.4)

    forward = partial(torch.func.jacfwd, randomness="same")
    start = torch.tensor(0.3, dtype=DOUBLE)
    once = forward(value)(start)
    torch.testing.assert_close(once, torch.func.grad(value)(start), rtol=1e-5, atol=0.0)
    for outer in (forward, torch.func.jacrev):
        for inner in (forward, torch.func.grad):
            with pytest.raises(RuntimeError, match=r"second derivative|forward AD|forward mode"):
                outer(inner(value))(start)


@pytest.mark.parametrize("kind", [gengs.OneHot, OneHotCategorical])
def test_second_derivatives_of_one_hot_draws_are_exact_for_quadratics(kind):
    """Through all categories: the derivative of E[f'(z) dz/dθ], taken by the same rule."""
    matrix = torch.tensor([[1.0, 0.5, -0.2], [0.5, 2.0, 0.3], [-0.2, 0.3, -1.0]], dtype=DOUBLE)

    def cost(z):
        return torch.einsum("...i,ij,...j->...", z, matrix, z) + z @ matrix[0]

    def second(value):
        (first,) = torch.autograd.grad(value, theta, create_graph=True)
        return torch.autograd.grad(first[0] + 2 * first[1], theta, retain_graph=True)[0]

    theta = torch.tensor([0.3, -0.4, 1.0], dtype=DOUBLE, requires_grad=True)
    eye = torch.eye(3, dtype=DOUBLE)
    z = gengs.law_of(kind(logits=theta)).attach(eye)
    assert torch.equal(z.detach(), eye)
    p = theta.softmax(-1)
    found = second((p.detach() * cost(z)).sum())
    torch.testing.assert_close(found, second((p * cost(eye)).sum()), rtol=1e-10, atol=1e-10)


def test_a_linear_cost_has_its_whole_second_derivative_at_any_weight():
    theta = torch.tensor([0.3, -0.4, 1.0], dtype=DOUBLE, requires_grad=True)
    slope = torch.tensor([1.0, -2.0, 0.5], dtype=DOUBLE)
    p = theta.softmax(-1)
    (exact,) = torch.autograd.grad(p @ slope, theta, create_graph=True)
    wanted = torch.autograd.grad(exact[0], theta, retain_graph=True)[0]
    many = 200_000
    logits = theta.detach().expand(many, 3).clone().requires_grad_()
    torch.manual_seed(0)
    z = gengs.rsample(gengs.OneHot(logits), weight=0.2)
    (first,) = torch.autograd.grad((z @ slope).sum(), logits, create_graph=True)
    found = torch.autograd.grad(first[:, 0].sum(), logits)[0]
    error = found.std(0) / many**0.5  # false-alarm rate 1e-6
    assert ((found.mean(0) - wanted).abs() < 5.2 * error).all()
