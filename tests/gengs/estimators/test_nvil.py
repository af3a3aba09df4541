import pytest
import torch
from exact_gradients import (
    COSTS,
    LAWS,
    assert_mean,
    assert_nests,
    assert_unbiased,
    exact,
    gradient_variance,
    problem,
)
from torch import nn
from torch.distributions import Independent, Poisson

import gengs
from gengs.estimators import NVIL


def warmed(estimator, law, factors, cost):
    """After a call, the running moments are those of the cost."""
    *_, f, q = problem(law, factors, cost, 500)
    estimator.expect(f, q)
    return estimator


@pytest.mark.parametrize("factors", [0, 3])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("law", LAWS)
def test_the_mean_gradient_is_exact(law, cost, factors):
    estimator = warmed(NVIL(), law, factors, cost)
    assert_unbiased(estimator, law, factors, cost)


def test_normalising_scales_the_mean_gradient_by_one_number():
    estimator = warmed(NVIL(normalise=True), "poisson", 3, "quadratic")
    sigma = estimator.variance.sqrt()
    assert sigma > 2
    _, wanted, _ = exact("poisson", 3, "quadratic")
    theta, _, f, q = problem("poisson", 3, "quadratic", 20_000)
    estimator.expect(f, q).sum().backward()
    assert_mean(theta.grad * sigma, wanted)


def test_stacked_layers_nest():
    assert_nests(lambda: NVIL(2))


def test_the_current_cost_is_not_in_its_own_baseline():
    logits = torch.zeros(2, requires_grad=True)
    atoms = torch.tensor([5.0, 7.0])
    estimator = NVIL(baseline=None)
    estimator.expect(lambda z: z, gengs.Finite(atoms, logits=logits)).backward()
    first = float(estimator.mean)  # the first call had no baseline: its score weighs the whole cost
    assert logits.grad.abs().max() == pytest.approx(first / 2)
    logits.grad = None
    estimator.expect(lambda z: z, gengs.Finite(atoms, logits=logits)).backward()
    second = 2 * float(estimator.mean) - first  # the first two calls weigh alike
    assert logits.grad.abs().max() == pytest.approx(abs(second - first) / 2)


def test_the_running_moments_are_those_of_a_weighted_mixture():
    estimator = NVIL(baseline=None, decay=0.8)
    batches = [
        torch.randn(50, generator=torch.Generator().manual_seed(i)) * 3 + i for i in range(9)
    ]
    q = gengs.Finite(torch.tensor([0.0]), logits=torch.zeros(50, 1))
    for batch in batches:
        estimator.expect(lambda z, batch=batch: z + batch, q)
    weights = torch.tensor([])
    for i in range(9):
        step = max(1 / (i + 1), 0.2)
        weights = torch.cat([weights * (1 - step), torch.tensor([step])])
    stacked = torch.stack(batches)
    mean = (weights * stacked.mean(1)).sum()
    variance = (weights * (stacked - mean).square().mean(1)).sum()
    torch.testing.assert_close(estimator.mean, mean)
    torch.testing.assert_close(estimator.variance, variance)


def test_the_baseline_learns_in_the_same_backward_and_cuts_the_variance():
    """The cost's level depends on the rate, which only the network knows."""
    rates = torch.linspace(0.5, 4, 8).unsqueeze(-1)  # (8, 1)

    def build(theta):
        return Independent(gengs.truncate(Poisson(theta), 15), 1)

    def cost(z):
        level = 10 * rates.squeeze(-1)
        return (z - rates).square().sum(-1) + level

    def variance(estimator):
        return gradient_variance(estimator, cost, build, rates, 4000)

    estimator, plain = NVIL(), NVIL(baseline=None)
    optimiser = torch.optim.Adam(estimator.parameters(), 0.02)  # before the first call
    for sign in [1, -1] * 250:  # whether the model minimises or maximises the expectation
        optimiser.zero_grad()
        (sign * estimator.expect(cost, build(rates)).mean()).backward()
        optimiser.step()
        plain.expect(cost, build(rates))
    assert variance(estimator) < 0.3 * variance(plain)


def test_the_baseline_sends_nothing_to_the_model():
    """With the network's output held at the same numbers, the law's gradient is the same."""
    grads = []
    for trained in (True, False):
        torch.manual_seed(3)
        network = nn.Linear(3, 1)
        network.requires_grad_(trained)
        theta = torch.ones(5, 3, requires_grad=True)
        estimator = NVIL(baseline=network)
        q = Independent(Poisson(theta), 1)
        estimator.expect(lambda z: z.square().sum(-1), q).sum().backward()
        grads.append(theta.grad)
    torch.testing.assert_close(*grads, rtol=0, atol=0)


def test_the_context_may_be_the_data():
    estimator = NVIL(baseline=nn.Linear(7, 1))
    q = Independent(Poisson(torch.ones(5, 3, dtype=torch.float64, requires_grad=True)), 1)
    data = torch.randn(5, 7, dtype=torch.float64)
    result = estimator.expect(lambda z: z.sum(-1), q, context=data)
    result.sum().backward()
    assert result.dtype == torch.float64
    assert estimator.baseline.weight.grad.abs().sum() > 0
    with pytest.raises(ValueError, match=r"NVIL.* `baseline`.* one number per element"):
        estimator.expect(lambda z: z.sum(-1), q, context=torch.randn(4, 7))


def test_a_wider_or_narrower_law_is_served():
    estimator = NVIL()
    for factors in (3, 5, 1):
        rate = torch.ones(4, factors, requires_grad=True)
        estimator.expect(lambda z: z.sum(-1), Independent(Poisson(rate), 1)).sum().backward()
        assert rate.grad.isfinite().all()


def test_a_cost_without_gradient_will_do():
    rate = torch.ones(4, requires_grad=True)
    NVIL(3).expect(lambda z: (z > 1).float(), Poisson(rate)).sum().backward()
    assert rate.grad.isfinite().all()


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"NVIL.* 'mlp'.* 'cnn'"):
        NVIL(baseline="cnn")
    with pytest.raises(ValueError, match="`decay`"):
        NVIL(decay=1.0)
