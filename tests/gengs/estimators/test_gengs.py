"""GenGS: its documented bias, its limit, and the paper's variants."""

import pytest
import torch
from torch.distributions import Independent, NegativeBinomial, Poisson

import gengs
from gengs import IGR, Finite, GenGS, truncate


def quadratic(z):
    return (z - 2.6).square()


def bias(estimator, replicates):
    """Mean gradient minus the exact one, on Poisson(3) cut to 14 atoms; and its standard error."""
    torch.manual_seed(0)
    rate = torch.full((replicates,), 3.0, dtype=torch.float64, requires_grad=True)
    (gradients,) = torch.autograd.grad(
        estimator.expect(quadratic, truncate(Poisson(rate), 14)).sum(), rate
    )
    one = torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    value = gengs.Exact().expect(quadratic, truncate(Poisson(one), 14))
    (exact,) = torch.autograd.grad(value, one)
    return float(gradients.mean() - exact), float(gradients.std() / replicates**0.5)


def test_the_documented_bias():
    """-22 % of 1.8 at temperature 0.5; 100,000 gradients know it to 1 % of 1.8."""
    off, error = bias(GenGS(0.5), 100_000)
    assert abs(off / 1.8 + 0.22) < 5 * error / 1.8 + 0.01


@pytest.mark.parametrize("kind", [GenGS, IGR])
def test_the_bias_vanishes_with_the_temperature(kind):
    """Each temperature is a third of the last; five standard errors, 1e-6 false alarms."""
    far, far_error = bias(kind(1.0), 100_000)
    near, near_error = bias(kind(0.05), 400_000)
    assert abs(far) > 5 * far_error
    assert abs(near) < abs(far) / 4 + 5 * near_error
    assert 5 * near_error < abs(far)  # it would notice a bias that stays


def test_the_variants_of_the_paper():
    rate = torch.tensor([[2.0, 3.0]], requires_grad=True)
    logits = torch.zeros(1, 2, 12, requires_grad=True)
    for q in (
        truncate(Poisson(rate), 12),  # explicit
        truncate(Poisson(rate), mass=0.999),  # NP
        truncate(NegativeBinomial(3.0, logits=rate - 3), mass=0.99),
        Finite(torch.arange(12), logits=logits),  # Imp
    ):
        for hard in (False, True):
            seen = []

            def cost(z, seen=seen):
                seen.append(z.detach())
                return z.square().sum(-1)

            value = GenGS(0.5, samples=10, hard=hard).expect(cost, Independent(q, 1))
            assert value.shape == (1,) and value.requires_grad
            assert seen[0].shape == (10, 1, 2)
            assert bool((seen[0] == seen[0].round()).all()) == hard


def test_a_schedule_is_read_at_each_call():
    schedule = gengs.temperature.Linear(5.0, 1e-8, steps=2)
    estimator = GenGS(schedule)
    rate = torch.full((500,), 3.0, requires_grad=True)
    seen = []

    def cost(z):
        seen.append((z - z.round()).abs().max().item())
        return z

    for _ in range(3):
        estimator.expect(cost, truncate(Poisson(rate), 12))
        schedule.step()
    assert seen[0] > 0.1 > seen[2]


def test_pathwise_gradients_with_fixed_noise():
    """With the noise held, the relaxed draw is a plain function: gradcheck."""
    logits = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)

    def value(logits, tau):
        torch.manual_seed(0)
        q = Independent(Finite(torch.arange(5.0, dtype=torch.float64), logits=logits), 1)
        return GenGS(tau, samples=2).expect(lambda z: z.pow(3).sum(-1).sin(), q)

    tau = torch.tensor(0.7, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(value, (logits, tau))
    assert torch.autograd.gradgradcheck(lambda x: value(x, 0.7), (logits,))


@pytest.mark.parametrize("temperature", [0.0, -1.0, float("nan"), float("inf")])
def test_bad_temperatures(temperature):
    with pytest.raises(ValueError, match="temperature"):
        GenGS(temperature)
