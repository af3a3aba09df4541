import pytest
import scipy.stats
import torch
from frequencies import FALSE_ALARM
from torch.distributions import Categorical, Independent, OneHotCategorical, Poisson

import gengs
from gengs.estimators import GenGS, GumbelRao, gumbel_rao
from gengs.numerics.gumbel_softmax import soften

DOUBLE = torch.float64
REPLICATES = 40_000


def gradients(estimator, logits, cost):
    logits = logits.expand(REPLICATES, *logits.shape).clone().requires_grad_()
    estimator.expect(cost, OneHotCategorical(logits=logits)).sum().backward()
    return logits.grad


def assert_same_variance(found, wanted, limit):
    """Within their standard errors, which fourth moments tell: a rare atom's tails are heavy."""
    squares = [(x - x.mean(0)).square() for x in (found, wanted)]
    error = sum(square.var(0) / REPLICATES for square in squares).sqrt()
    assert ((squares[0].mean(0) - squares[1].mean(0)).abs() < limit * error).all()


@pytest.mark.parametrize("tau", [0.2, 0.5, 1.0])
def test_the_mean_of_straight_through_with_less_variance(tau):
    """Power: a difference of 8 standard errors, 6 % of a gradient's deviation, is found."""
    logits, matrix = torch.randn(4, dtype=DOUBLE), torch.randn(4, 4, dtype=DOUBLE)

    def cost(z):
        return ((z @ matrix) * z).sum(-1)

    plain = gradients(GenGS(tau, hard=True), logits, cost)
    once = gradients(GumbelRao(tau, inner=1), logits, cost)
    often = gradients(GumbelRao(tau, inner=20), logits, cost)
    limit = scipy.stats.norm.isf(FALSE_ALARM / 2 / 8)
    for found in (once, often):
        error = ((plain.var(0) + found.var(0)) / REPLICATES).sqrt()
        assert ((plain.mean(0) - found.mean(0)).abs() < limit * error).all()
    assert_same_variance(once, plain, limit)
    assert (often.var(0) < 0.9 * plain.var(0)).all()


@pytest.mark.parametrize("tau", [0.2, 0.5])
def test_drawn_on_the_way_back_as_by_plain_operations(tau, monkeypatch):
    """The same mean and variance, at different noise; a table with an impossible atom."""
    logits = torch.tensor([0.3, -1.0, -torch.inf, 1.0], dtype=DOUBLE)

    def cost(z):
        return (z @ torch.tensor([1.0, -2.0, 5.0, 0.5], dtype=DOUBLE)).square()

    found = gradients(GumbelRao(tau, inner=1), logits, cost)
    monkeypatch.setattr(gumbel_rao, "is_eager", lambda *tensors: False)
    wanted = gradients(GumbelRao(tau, inner=1), logits, cost)
    assert (found[:, 2] == 0).all()
    assert (wanted[:, 2] == 0).all()
    limit = scipy.stats.norm.isf(FALSE_ALARM / 2 / 16)
    error = ((found.var(0) + wanted.var(0)) / REPLICATES).sqrt()
    assert ((found.mean(0) - wanted.mean(0)).abs() <= limit * error).all()
    possible = torch.tensor([0, 1, 3])
    assert_same_variance(found[:, possible], wanted[:, possible], limit)


def test_many_rows_in_pieces(monkeypatch):
    """Rows that are worked on a few at a time have the right means all the same."""
    monkeypatch.setattr(gumbel_rao, "_ON_CPU", 3 * 4)
    logits = torch.tensor([0.3, -1.0, 0.0, 1.0], dtype=DOUBLE).expand(7, 4).clone()
    logits.requires_grad_()
    torch.manual_seed(0)
    z = gengs.rsample(OneHotCategorical(logits=logits), by=GumbelRao(0.5, inner=4))
    z.sum().backward()
    assert logits.grad.shape == (7, 4)
    assert logits.grad.abs().max() < 1e-12  # the weights sum to one in each row


def test_gradient_with_fixed_noise(monkeypatch):
    """With draw and noise fixed it is the derivative of the relaxed values, g held still."""
    logits = torch.randn(4, dtype=DOUBLE, requires_grad=True)
    atoms = torch.arange(4, dtype=DOUBLE)
    noise = torch.randn(7, 4, dtype=DOUBLE)

    def relaxed(theta):
        return (soften(theta.log_softmax(-1) + noise, 0.5) @ atoms).mean()

    assert torch.autograd.gradcheck(relaxed, logits)
    monkeypatch.setattr(gumbel_rao, "is_eager", lambda *tensors: False)
    monkeypatch.setattr(
        gumbel_rao, "conditional_gumbel", lambda log_pi, winner: log_pi + noise.unsqueeze(1)
    )
    value = GumbelRao(0.5, inner=7).expect(lambda z: 3 * z, Categorical(logits=logits))
    (found,) = torch.autograd.grad(value, logits)
    (wanted,) = torch.autograd.grad(3 * relaxed(logits), logits)
    torch.testing.assert_close(found, wanted)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_values_are_atoms_shapes_hold_one_evaluation(dtype):
    logits = torch.randn(2, 3, 4, 5, dtype=dtype, requires_grad=True)

    def cost(z):
        assert z.shape == (2, 2, 3, 4)
        assert (z == z.round()).all()
        return z.square().sum(-1)

    estimator = GumbelRao(0.3, inner=5, samples=2)
    value = estimator.expect(cost, Independent(Categorical(logits=logits), 1))
    assert estimator.evaluations == 2
    assert value.shape == (2, 3)
    value.sum().backward()
    assert torch.isfinite(logits.grad).all()


def test_raw_laws_forbidden_atoms_nesting_and_learned_costs():
    rate = torch.tensor([1.0, 2.0], requires_grad=True)
    weight = torch.tensor(0.5, requires_grad=True)
    estimator = GumbelRao(0.5, inner=3)

    def cost(z1):
        inner = Categorical(logits=torch.stack([z1, -z1, 0 * z1 - torch.inf], -1))
        return estimator.expect(lambda z2: weight * z1 * z2 + z2**2, inner)

    estimator.expect(cost, Poisson(rate)).sum().backward()
    assert torch.isfinite(rate.grad).all()
    assert weight.grad is not None


def test_needs_a_gradient_and_good_arguments():
    q = Categorical(logits=torch.randn(3, requires_grad=True))
    with pytest.raises(TypeError, match=r"GumbelRao.* differentiable"):
        GumbelRao().expect(lambda z: (z.detach() > 1).float(), q)
    with pytest.raises(ValueError, match="temperature"):
        GumbelRao(-1.0)
    with pytest.raises(ValueError, match="inner"):
        GumbelRao(inner=0)
