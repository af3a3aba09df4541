import math

import pytest
import torch
from exact_gradients import COSTS, LAWS, assert_mean
from torch.distributions import Independent, Poisson

import gengs
from gengs.estimators import REINFORCE, VIMCO, Exact


def problem(law, copies, cost, replicates, dtype):
    """A law of ``copies`` factors, its parameter and the cost's; the log-weight knows both."""
    start, build = LAWS[law]
    theta = torch.tensor(start, dtype=dtype).expand(replicates, -1).clone().requires_grad_()
    weight = torch.full((replicates,), 0.9, dtype=dtype, requires_grad=True)
    q = build(theta)

    def f(z):  # a negative log-weight: what it costs, and the law's own log q(z)
        return COSTS[cost](weight * z) + q.log_prob(z)

    return theta, weight, f, q, Independent(build(theta.unsqueeze(-2).expand(-1, copies, -1)), 1)


@pytest.mark.parametrize("m", [2, 3])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("law", LAWS)
def test_the_mean_gradient_is_that_of_the_enumerated_bound(law, cost, m):
    """The bound's expectation is over m independent draws: the factors of one larger law."""
    theta, weight, f, _, joint = problem(law, m, cost, 1, torch.float64)

    def bound(z):  # (S, 1, m)
        weights = [-f(z[..., i]) for i in range(m)]
        return math.log(m) - torch.stack(weights).logsumexp(0)

    value = Exact().expect(bound, joint)
    wanted = torch.autograd.grad(value.sum(), (theta, weight))

    theta, weight, f, q, _ = problem(law, m, cost, 20_000, torch.float32)
    result = VIMCO(m).expect(f, q)
    result.sum().backward()
    assert_mean(result.detach(), value.detach())
    assert_mean(theta.grad, wanted[0][0])
    assert_mean(weight.grad, wanted[1][0])


def test_stacked_layers_nest():
    """Two draws of the upper layer; the lower one is its log-weight's own expectation."""
    start = torch.tensor([0.1]), torch.tensor(-0.5)

    def upper(theta):
        return gengs.truncate(Poisson(theta.exp()), 4)

    def cost_of(inner, shift):
        def cost(z):
            lower = gengs.truncate(Poisson((shift + 0.4 * z).exp()), 5)
            return inner.expect(lambda y: (y - z - 1).square(), lower)

        return cost

    theta, shift = (t.double().reshape(1).requires_grad_() for t in start)
    f = cost_of(Exact(), shift)
    pair = Independent(upper(theta.unsqueeze(-1).expand(1, 2)), 1)
    value = Exact().expect(
        lambda z: math.log(2) - torch.stack([-f(z[..., 0]), -f(z[..., 1])]).logsumexp(0), pair
    )
    wanted = torch.autograd.grad(value.sum(), (theta, shift))
    theta, shift = (t.reshape(1).expand(20_000).clone().requires_grad_() for t in start)
    VIMCO(2).expect(cost_of(Exact(), shift), upper(theta)).sum().backward()
    assert_mean(theta.grad, wanted[0])
    assert_mean(shift.grad, wanted[1])


def test_three_factors_and_one_backward():
    rate = torch.full((5, 3), 2.0, requires_grad=True)
    result = VIMCO().expect(lambda z: z.square().sum(-1), Independent(Poisson(rate), 1))
    result.sum().backward()
    assert result.shape == (5,)
    assert rate.grad.isfinite().all()


def test_the_evaluation_is_the_same_bound():
    q = Poisson(torch.full((4000,), 2.0))
    estimator = VIMCO(5)
    trained = estimator.expect(lambda z: z.square(), q)
    evaluated = estimator.eval().expect(lambda z: z.square(), q)
    mean, error = trained.mean(), trained.std() / 4000**0.5
    assert abs(evaluated.mean() - mean) < 7 * error
    plain = REINFORCE(5).expect(lambda z: z.square(), q).mean()
    assert evaluated.mean() < plain - 1  # the bound on a negative log-likelihood is tighter


def test_one_log_weight_that_dominates_keeps_every_digit():
    """Sums of "all but one" must not cancel: the other draws' gains are tiny, and not zero."""
    from gengs.estimators.vimco import _bound_without_each

    log_weights = torch.tensor([80.0, 1.0, -2.0, 0.5], requires_grad=False)
    got = _bound_without_each(log_weights.unsqueeze(-1)).squeeze(-1)
    wide = log_weights.double()
    for i in range(4):
        rest = torch.cat([wide[:i], wide[i + 1 :]])
        wanted = torch.cat([rest, rest.mean().reshape(1)]).logsumexp(0) - math.log(4)
        torch.testing.assert_close(got[i].double(), wanted, rtol=1e-6, atol=1e-6)


def test_one_draw_is_refused():
    with pytest.raises(ValueError, match=r"VIMCO.* two `samples`.* 1"):
        VIMCO(1)
