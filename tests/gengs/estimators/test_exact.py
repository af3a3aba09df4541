import itertools
import math

import pytest
import torch
from mean_gradient import TWO_LAYERS, two_layers
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Independent,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    Poisson,
)

from gengs import Finite, truncate
from gengs.estimators import Exact, exact

DOUBLE = torch.float64


def test_equals_a_hand_written_sum():
    logits = torch.randn(3, 4, dtype=DOUBLE, requires_grad=True)
    atoms, weight = (torch.randn(n, dtype=DOUBLE) for n in (4, 3))
    value = Exact().expect(
        lambda z: torch.sin((z * weight).sum(-1)), Independent(Finite(atoms, logits), 1)
    )
    pi = logits.softmax(-1)
    total = 0
    for i, j, k in itertools.product(range(4), repeat=3):
        z = torch.stack([atoms[i], atoms[j], atoms[k]])
        total = total + pi[0, i] * pi[1, j] * pi[2, k] * torch.sin((z * weight).sum())
    torch.testing.assert_close(value, total)
    torch.testing.assert_close(*(torch.autograd.grad(x, logits)[0] for x in (value, total)))


def closed_forms():
    """The laws of (z - t)², their closed form, and the parameter."""
    t = 2.6
    return [
        (lambda x: Poisson(x), lambda x: x + (x - t) ** 2, 3.0),
        (lambda p: Binomial(7, p), lambda p: 7 * p * (1 - p) + (7 * p - t) ** 2, 0.3),
        (
            lambda p: NegativeBinomial(3, p),
            lambda p: 3 * p / (1 - p) ** 2 + (3 * p / (1 - p) - t) ** 2,
            0.4,
        ),
    ]


@pytest.mark.parametrize(("law", "formula", "at"), closed_forms())
def test_closed_forms_of_the_quadratic(law, formula, at):
    parameter = torch.tensor([at, at * 0.9], dtype=DOUBLE, requires_grad=True)
    value = Exact().expect(lambda z: (z - 2.6) ** 2, law(parameter))
    torch.testing.assert_close(value, formula(parameter), rtol=1e-5, atol=1e-6)
    (found,) = torch.autograd.grad(value.sum(), parameter)
    (wanted,) = torch.autograd.grad(formula(parameter).sum(), parameter)
    torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-6)


def test_multinomial_and_vector_atoms():
    probs = torch.tensor([0.2, 0.5, 0.3], dtype=DOUBLE)
    target = torch.tensor([1.0, 0.5, 2.0], dtype=DOUBLE)
    value = Exact().expect(lambda z: (z - target).square().sum(-1), Multinomial(4, probs))
    wanted = (4 * probs * (1 - probs) + (4 * probs - target) ** 2).sum()
    torch.testing.assert_close(value, wanted)
    logits = torch.randn(2, 3, 4, dtype=DOUBLE)
    q = Independent(OneHotCategorical(logits=logits), 1)
    value = Exact().expect(lambda z: (z * target.new_ones(4)).sum((-1, -2)), q)
    torch.testing.assert_close(value, torch.full((2,), 3.0, dtype=DOUBLE))


def test_two_layers_equal_their_joint_sum():
    rate, slope, bias, scale = TWO_LAYERS.double()
    found = two_layers(Exact(), TWO_LAYERS.double()[None])
    q1 = truncate(Poisson(rate), 5)
    total = 0.0
    for z1, p1 in zip(q1.atoms, q1.probs, strict=True):
        q2 = truncate(Poisson(torch.nn.functional.softplus(slope * z1 + bias)), 7)
        for z2, p2 in zip(q2.atoms, q2.probs, strict=True):
            total += p1 * p2 * ((z2 * scale - 0.5 * z1) ** 2 + z1 * z2)
    torch.testing.assert_close(found[0], total)


def test_the_cost_never_sees_an_impossible_outcome():
    count = torch.tensor([3.0, 5.0])
    p = torch.tensor([0.3, 0.6], requires_grad=True)
    q = Independent(Binomial(count, p), 1)
    value = Exact().expect(lambda z: torch.lgamma(count - z + 1).sum(-1), q)
    value.backward()
    assert torch.isfinite(value)
    assert torch.isfinite(p.grad).all()


def test_a_learned_cost_and_a_cost_without_gradient():
    weight = torch.tensor(0.7, dtype=DOUBLE, requires_grad=True)
    rate = torch.tensor(2.0, dtype=DOUBLE, requires_grad=True)
    Exact().expect(lambda z: weight * z, Poisson(rate)).backward()
    torch.testing.assert_close(weight.grad, rate.detach())
    rate.grad = None
    Exact().expect(lambda z: (z > 1).double(), Poisson(rate)).backward()
    torch.testing.assert_close(rate.grad, (2 * (-rate).exp()).detach())  # d/dλ P(X > 1) = λ e^-λ


def test_evaluation_is_exact_too():
    q = Categorical(logits=torch.randn(5, 4))
    estimator, cost = Exact(), torch.square
    value = estimator.expect(cost, q)
    with torch.no_grad():
        torch.testing.assert_close(estimator.expect(cost, q), value)
    torch.testing.assert_close(estimator.eval().expect(cost, q), value)


@pytest.mark.parametrize("batch", [(), (0,), (2, 3)])
def test_shapes(batch):
    q = Independent(Finite(torch.arange(3), torch.randn(*batch, 2, 2, 3)), 2)
    assert Exact().expect(lambda z: z.sum((-1, -2)), q).shape == batch


def test_too_many_outcomes():
    q = Independent(Categorical(logits=torch.randn(50, 12)), 1)
    with pytest.raises(ValueError, match=r"50 factors.* UnOrd"):
        Exact().expect(lambda z: z.sum(-1), q)
    with pytest.raises(ValueError, match="tolerance"):
        Exact(tolerance=2.0)


def test_tolerance_decides_how_much_of_the_tail_is_summed():
    q = Poisson(torch.tensor(3.0, dtype=DOUBLE))
    loose, tight = (Exact(e).expect(torch.exp, q).item() for e in (1e-3, 1e-12))
    wanted = math.exp(3 * (math.e - 1))
    assert abs(tight / wanted - 1) < 1e-4 < abs(loose / wanted - 1)


def test_a_batch_of_many_outcomes_each_is_refused_before_it_fills_the_memory(monkeypatch):
    law = Independent(truncate(Poisson(torch.full((100, 5), 2.0)), 12), 1)
    with pytest.raises(ValueError, match=r"24,883,200 points.* 100"):
        Exact().expect(lambda z: z.sum(-1), law)
    monkeypatch.setattr(exact, "_MOST_EVALUATIONS", 2**12)
    few = Bernoulli(torch.full((9_000,), 0.5))
    assert Exact().expect(lambda z: z, few).shape == (9_000,)


def test_as_many_evaluations_as_it_takes_but_no_more(monkeypatch):
    q = Independent(Bernoulli(torch.full((2, 11), 0.5)), 1)  # 2^11 outcomes, twice
    monkeypatch.setattr(exact, "_MOST_EVALUATIONS", 2**12)
    torch.testing.assert_close(Exact().expect(lambda z: z.sum(-1), q), torch.full((2,), 5.5))
    monkeypatch.setattr(exact, "_MOST_EVALUATIONS", 2**12 - 1)
    with pytest.raises(ValueError, match="4,096 points"):
        Exact().expect(lambda z: z.sum(-1), q)
