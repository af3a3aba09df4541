"""A negative binomial whose total is learned: a gamma variable, then a Poisson count; no table.

False-alarm rate 1e-7 per test. 2,500 gradients find a bias of 13 % of one gradient's spread.
"""

import pytest
import torch
from agreement import ask, complaint
from reference import negative_binomial
from settings import draw
from torch.distributions import (
    AffineTransform,
    Binomial,
    Categorical,
    Independent,
    MixtureSameFamily,
    NegativeBinomial,
    TransformedDistribution,
)
from watching import Largest

import gengs

MANY = 2500


def parameters(r, p, logits=False, n=MANY):
    r = torch.full((n,), r, dtype=torch.float64, requires_grad=True)
    p = torch.full((n,), p, dtype=torch.float64, requires_grad=True)
    return {"total_count": r, "logits" if logits else "probs": p}


COSTS = {
    "linear": lambda z: 1.5 * z,
    "quadratic": lambda z: (z + 0.6).square(),
}
POINTS = [(3.0, 0.6), (0.4, 0.3), (12.0, 0.2), (1.5, 0.6)]


@pytest.mark.parametrize("cost", COSTS.values(), ids=list(COSTS))
@pytest.mark.parametrize(("r", "p"), POINTS)
@pytest.mark.parametrize("how", ["draw", "estimator"])
def test_both_gradients_are_exact(how, r, p, cost):
    given = parameters(r, p)

    def expectation():
        law = NegativeBinomial(**given)
        return cost(draw(law)) if how == "draw" else gengs.MidCDF().expect(cost, law)

    answer = ask(expectation, given)
    assert answer.refusal is None
    reference = negative_binomial(p, r).expectation(cost)
    assert complaint(answer, reference) is None


def test_logits_too():
    given = parameters(2.5, -0.4, logits=True)
    cost = COSTS["quadratic"]
    answer = ask(lambda: cost(draw(NegativeBinomial(**given))), given)
    assert complaint(answer, negative_binomial(-0.4, 2.5, True).expectation(cost)) is None


def test_the_draws_have_the_law():
    with torch.no_grad():
        z = draw(NegativeBinomial(torch.tensor(2.5), torch.tensor(0.4)), (40_000,))
    wanted = negative_binomial(0.4, 2.5).probs
    for k in range(6):
        error = (wanted[k] * (1 - wanted[k]) / 40_000) ** 0.5
        assert abs((z == k).double().mean().item() - wanted[k]) < 6 * error


@pytest.mark.parametrize("learned", [("total_count",), ("total_count", "probs"), ("probs",)])
@pytest.mark.parametrize("how", ["draw", "estimator"])
def test_no_table_is_made(how, learned):
    given = parameters(30.0, 0.8, n=300)
    for name, tensor in given.items():
        tensor.requires_grad_(name in learned)
    with Largest() as watch:
        law = NegativeBinomial(**given)
        if how == "draw":
            value = draw(law).square()
        else:
            value = gengs.MidCDF().expect(lambda z: z.square().sum(-1), Independent(law, 1))
        value.sum().backward()
    assert watch.elements <= 4 * 300, watch.shape
    assert all(given[name].grad is not None and given[name].grad.any() for name in learned)


def mixture(total):
    parts = Binomial(total, torch.tensor([0.4, 0.5], dtype=torch.float64))
    return MixtureSameFamily(Categorical(logits=torch.zeros(2, dtype=torch.float64)), parts)


def shifted(total):
    parts = Binomial(total, torch.tensor([0.4, 0.5], dtype=torch.float64))
    return TransformedDistribution(parts, [AffineTransform(1.0, 1.0)])


@pytest.mark.parametrize("build", [mixture, shifted])
@pytest.mark.parametrize(
    "estimator",
    [gengs.Exact(), gengs.RLOO(4), gengs.UnOrd(2), gengs.GenGS(0.5), gengs.MidCDF(debias=1)],
    ids=repr,
)
def test_trials_inside_of_others_are_refused(build, estimator):
    """As those of a binomial itself: the log-PMF has another derivative in them."""
    total = torch.tensor([3.0, 3.0], dtype=torch.float64, requires_grad=True)
    with pytest.raises(TypeError, match="total_count"):
        estimator.expect(lambda z: (z - 1.3) ** 2, build(total))


def test_the_draw_of_a_mixture_of_binomials_moves_with_their_trials():
    total = torch.full((MANY * 8, 2), 3.0, dtype=torch.float64, requires_grad=True)
    weights = torch.zeros(MANY * 8, 2, dtype=torch.float64)
    parts = Binomial(total, torch.tensor([0.4, 0.5], dtype=torch.float64))
    torch.manual_seed(0)
    z = gengs.rsample(MixtureSameFamily(Categorical(logits=weights), parts))
    (z - 1.3).square().sum().backward()
    error = total.grad.std(0) / (MANY * 8) ** 0.5
    assert ((total.grad.mean(0) - torch.tensor([0.08, 0.225])).abs() < 5.5 * error).all()


@pytest.mark.parametrize("cut", [lambda q: gengs.truncate(q, 8), gengs.truncate])
def test_a_table_has_no_gradient_in_trials(cut):
    total = torch.tensor(3.0, requires_grad=True)
    q = Binomial(total, torch.tensor(0.4))
    with pytest.raises(TypeError, match="total_count"):
        cut(q)
    with pytest.raises(TypeError, match="total_count"):
        gengs.gumbel_relax(q, 0.5)
    with torch.no_grad():
        assert cut(q).probs.sum().item() == pytest.approx(1.0)
