"""The weight of the inflow: exact means by enumeration of the draws, one gradient per draw."""

import pytest
import torch
from torch.distributions import Categorical, Independent, OneHotCategorical, Poisson

import gengs
from gengs.laws.inflow_weight import inflow_weight
from gengs.laws.law import law_of
from gengs.laws.one_hot_mid import attach_one_hot

K = 5
DOUBLE = torch.float64
_generator = torch.Generator().manual_seed(3)
MATRIX = torch.randn(3, 3, dtype=DOUBLE, generator=_generator)
SLOPE = torch.randn(3, dtype=DOUBLE, generator=_generator)
ATOMS = torch.randn(K, 3, dtype=DOUBLE, generator=_generator)
LOGITS = torch.randn(K, dtype=DOUBLE, generator=_generator)
WEIGHTS = pytest.mark.parametrize("weight", [0.0, 0.2, 0.5])
BOTH = pytest.mark.parametrize("given", ["logits", "probs"])


def linear(c):
    return c @ SLOPE


def quadratic(c):
    return ((c @ MATRIX) * c).sum(-1) + linear(c)


def as_given(given):
    """A leaf, and what the distribution is given: logits, or normalised probabilities."""
    leaf = LOGITS.clone().requires_grad_()
    return leaf, {"logits": leaf} if given == "logits" else {"probs": leaf.softmax(-1)}


def every_draw(kind, given, weight):
    """The leaf, and each of the K draws as a value of three numbers, with its gradient."""
    leaf, parameter = as_given(given)
    index = torch.arange(K)
    if kind == "one-hot":
        fixed = LOGITS.softmax(-1)
        return leaf, attach_one_hot(index, fixed, **parameter, weight=weight) @ ATOMS
    return leaf, law_of(gengs.Finite(ATOMS, **parameter, event_dim=1))._attach_atom(index, weight)


def mean_gradient(kind, given, weight, cost):
    leaf, values = every_draw(kind, given, weight)
    (LOGITS.softmax(-1) * cost(values)).sum().backward()
    return leaf.grad


def exact_gradient(cost):
    leaf = LOGITS.clone().requires_grad_()
    (leaf.softmax(-1) * cost(ATOMS)).sum().backward()
    return leaf.grad


@pytest.mark.parametrize("kind", ["one-hot", "table"])
@BOTH
@WEIGHTS
def test_linear_costs_are_exact_at_any_weight_quadratic_ones_at_a_half(kind, given, weight):
    torch.testing.assert_close(mean_gradient(kind, given, weight, linear), exact_gradient(linear))
    found, wanted = mean_gradient(kind, given, weight, quadratic), exact_gradient(quadratic)
    assert ((found - wanted).abs().max() < 1e-12) == (weight == 0.5)


@pytest.mark.parametrize("kind", ["one-hot", "table"])
@BOTH
def test_without_inflow_every_draw_moves_as_the_mean_does(kind, given):
    leaf, values = every_draw(kind, given, 0.0)
    mean = LOGITS.clone().requires_grad_()
    for value in values:
        (found,) = torch.autograd.grad(quadratic(value), leaf, retain_graph=True)
        (slope,) = torch.autograd.grad(quadratic(at := value.detach().requires_grad_()), at)
        (wanted,) = torch.autograd.grad((mean.softmax(-1) @ ATOMS) @ slope, mean)
        torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize(
    "make",
    [
        lambda x: OneHotCategorical(logits=x),
        lambda x: OneHotCategorical(probs=x.softmax(-1)),
        lambda x: gengs.OneHot(logits=x),
        lambda x: gengs.Finite(torch.eye(x.shape[-1]).to(x), logits=x, event_dim=1),
        lambda x: Independent(gengs.OneHot(logits=x), 1),
    ],
)
@pytest.mark.parametrize("categories", [4, 100])
def test_rsample_and_midcdf_take_it_and_have_it_by_default(make, categories):
    x = torch.randn(2, categories, dtype=DOUBLE)
    cotangent = torch.randn(2, categories, dtype=DOUBLE)

    def gradient(draw):
        torch.manual_seed(0)
        leaf = x.clone().requires_grad_()
        (draw(make(leaf)) * cotangent).sum().backward()
        return leaf.grad

    def by(**settings):
        return gradient(lambda q: gengs.rsample(q, by=gengs.MidCDF(**settings)))

    usual = gradient(gengs.rsample)
    default = inflow_weight(categories)
    assert (default == 0.5) == (categories == 4)
    torch.testing.assert_close(usual, gradient(lambda q: gengs.rsample(q, weight=default)))
    torch.testing.assert_close(usual, by())
    torch.testing.assert_close(by(weight=0.1), gradient(lambda q: gengs.rsample(q, weight=0.1)))
    assert (by(weight=0.1) - by(weight=0.5)).abs().max() > 1e-3


def test_a_given_draw_moves_by_the_same_rule():
    leaf = torch.randn(3, 200, dtype=DOUBLE, requires_grad=True)
    q = OneHotCategorical(logits=leaf)
    z = gengs.rsample(q)
    cotangent = torch.randn_like(z)
    again = law_of(q).attach(z.detach())
    assert (again == z).all()
    for first, second in zip(
        torch.autograd.grad(z, leaf, cotangent, retain_graph=True),
        torch.autograd.grad(again, leaf, cotangent),
        strict=True,
    ):
        torch.testing.assert_close(first, second)


def test_with_debias_it_is_a_half():
    """The measured error is that of the exact rule, for many categories too."""
    leaf = torch.randn(40, dtype=DOUBLE, requires_grad=True)
    q = OneHotCategorical(logits=leaf)
    torch.manual_seed(0)
    exact = law_of(q).rsample(torch.Size(), weight=0.5)
    torch.manual_seed(0)
    found = law_of(q).rsample(torch.Size(), bridge=False)
    cotangent = torch.randn_like(exact)
    torch.testing.assert_close(
        torch.autograd.grad(found, leaf, cotangent, retain_graph=True),
        torch.autograd.grad(exact, leaf, cotangent),
    )
    with pytest.raises(ValueError, match=r"weight=0\.5 with `debias`.*weight=0\.1"):
        gengs.MidCDF(debias=1, weight=0.1)


def test_it_is_refused_where_it_does_not_apply():
    rate = torch.ones(2, requires_grad=True)
    for law in (Poisson(rate), Categorical(logits=rate), gengs.Finite(torch.arange(2.0), rate)):
        with pytest.raises(TypeError, match="tables of vectors only"):
            gengs.rsample(law, weight=0.1)
        with pytest.raises(TypeError, match="MidCDF takes `weight`"):
            gengs.MidCDF(weight=0.1).expect(lambda z: z.square(), law)
    q = OneHotCategorical(logits=rate)
    with pytest.raises(TypeError, match=r"MidCDF\(weight=\.\.\.\)"):
        gengs.rsample(q, by=gengs.MidCDF(), weight=0.1)
    for wrong in (-0.1, 1.5, float("nan")):
        with pytest.raises(ValueError, match="`weight` from 0 to 1"):
            gengs.rsample(q, weight=wrong)
        with pytest.raises(ValueError, match="`weight` from 0 to 1"):
            gengs.MidCDF(weight=wrong)
    with pytest.raises(TypeError, match="a number as `weight`"):
        gengs.rsample(q, weight="half")
