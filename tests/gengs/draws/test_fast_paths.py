"""The tables' quick ways: they serve plain backpropagation, and step aside for everything else."""

import gc
import resource

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad
from torch.distributions import Distribution, Independent, Poisson, constraints, kl_divergence

import gengs
from gengs import Finite, GenGS, MidCDF, Relaxed, rsample, truncate

ATOMS = torch.arange(5.0)


# ------------------------------------------------------------------------ the precision of products


def test_autocast_leaves_the_probabilities_alone():
    logits = torch.randn(40, 5)
    rate = torch.rand(40) * 2 + 0.1

    def numbers():
        q, p = Finite(ATOMS, logits=logits), truncate(Poisson(rate), 5)
        return q.probs.sum(-1), kl_divergence(q, p), q.mean, p.logits

    plain = numbers()
    with torch.autocast("cpu", torch.bfloat16):
        mixed = numbers()
    for expected, found in zip(plain, mixed, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("estimator", [GenGS(0.5), MidCDF(), gengs.RLOO(2)], ids=str)
def test_autocast_trains_counts(estimator):
    rate = torch.full((6, 3), 2.0, requires_grad=True)
    with torch.autocast("cpu", torch.bfloat16):
        q = truncate(Poisson(rate), 12)
        loss = estimator.expect(lambda z: z.square().sum(-1), Independent(q, 1))
        loss = loss + kl_divergence(q, truncate(Poisson(torch.tensor(1.0)), 12)).sum(-1)
    loss.mean().backward()
    assert torch.isfinite(rate.grad).all()


# ------------------------------------------------------------------- transforms and forward mode


def test_a_fixed_law_inside_vmap_and_grad():
    prior = truncate(Poisson(torch.tensor(2.0)), 5)

    def divergence(rate):
        return kl_divergence(truncate(Poisson(rate), 5), truncate(Poisson(torch.tensor(2.0)), 5))

    rates = torch.tensor([3.0, 2.0])
    expected = kl_divergence(truncate(Poisson(rates), 5), prior)
    torch.testing.assert_close(torch.func.vmap(divergence)(rates), expected)
    means = torch.func.vmap(lambda x: x * Finite(ATOMS, logits=torch.zeros(5)).mean)(torch.ones(2))
    torch.testing.assert_close(means, torch.full((2,), 2.0))
    laws = Finite(ATOMS, logits=torch.zeros(2, 5)), truncate(Poisson(rates), 5)
    slope = torch.func.grad(lambda x: (x * kl_divergence(*laws)).sum())(torch.ones(2))
    torch.testing.assert_close(slope, kl_divergence(*laws))


@pytest.mark.parametrize("estimator", [MidCDF(), GenGS(), gengs.RLOO(2)], ids=str)
def test_the_gradient_of_a_cost_under_a_law_made_outside(estimator):
    q = Independent(Finite(ATOMS, logits=torch.zeros(2, 5, requires_grad=True)), 1)

    def value(w):
        torch.manual_seed(0)
        return estimator.expect(lambda z: (z * w).square().sum(-1), q)

    slope, found = torch.func.grad_and_value(value)(torch.tensor(1.0))
    torch.testing.assert_close(slope, 2 * found)  # of a square


def test_jacobians_of_relaxed_values_all_at_once():
    def value(logits):
        torch.manual_seed(0)
        return Relaxed(0.5, Finite(ATOMS, logits=logits)).rsample_value()

    logits = torch.randn(3, 5)
    one_by_one = torch.autograd.functional.jacobian(value, logits)
    at_once = torch.autograd.functional.jacobian(value, logits, vectorize=True)
    torch.testing.assert_close(at_once, one_by_one)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
def test_forward_mode_goes_through_a_law_and_its_divergence():
    uniform = Finite(ATOMS, logits=torch.zeros(5))
    with forward_ad.dual_level():
        law = Finite(ATOMS, logits=forward_ad.make_dual(torch.zeros(5), ATOMS))
        mean = forward_ad.unpack_dual(law.mean).tangent
        divergence = forward_ad.unpack_dual(kl_divergence(law, uniform)).tangent
    torch.testing.assert_close(mean, torch.tensor(2.0))  # the variance of a die with 5 sides
    torch.testing.assert_close(divergence, torch.tensor(0.0))


def test_a_prior_from_inference_mode_serves_a_training_step():
    logits = torch.randn(2, 7, requires_grad=True)
    with torch.inference_mode():
        frozen = truncate(Poisson(torch.tensor([1.0, 2.0])), 7)
        truncate(Poisson(torch.tensor([1.0])), 9)  # leaves its constants behind
    q = Finite(torch.arange(7.0), logits=logits)
    (found,) = torch.autograd.grad(kl_divergence(q, frozen).sum(), logits)
    prior = truncate(Poisson(torch.tensor([1.0, 2.0])), 7)
    q = Finite(torch.arange(7.0), logits=logits)
    (expected,) = torch.autograd.grad(kl_divergence(q, prior).sum(), logits)
    torch.testing.assert_close(found, expected)
    rate = torch.tensor([1.0], requires_grad=True)
    (slope,) = torch.autograd.grad(truncate(Poisson(rate), 9).mean.sum(), rate, create_graph=True)
    slope.sum().backward()


# ------------------------------------------------------------------------------ the mid-CDF table


@pytest.mark.parametrize(("batch", "samples"), [((0,), ()), ((2,), (0,)), ((2, 0), (3,))])
def test_no_draws_have_no_gradient(batch, samples):
    logits = torch.zeros(*batch, 5, requires_grad=True)
    rsample(Finite(ATOMS, logits=logits), samples).sum().backward()
    assert torch.equal(logits.grad, torch.zeros(*batch, 5))


def test_many_atoms_take_little_memory():
    n = 20_000  # a square table of these would have 1.6 GB
    logits = torch.zeros(1, n, requires_grad=True)
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    gengs.law_of(Finite(torch.arange(float(n)), logits=logits)).rsample(
        torch.Size(), bridge=False
    ).sum().backward()
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown < 200 * 1024  # kibibytes


def test_wide_atoms_of_each_element_beside_narrow_logits():
    logits = torch.tensor([0.0, -7.0, -9.0, 0.0, 1.0]).repeat(3, 1).requires_grad_()
    law = Finite(torch.arange(5.0).double().repeat(3, 1), logits=logits)
    rsample(law, (20,)).sum().backward()
    assert torch.isfinite(logits.grad).all() and logits.grad.abs().sum() > 0


# ----------------------------------------------------------------------------------------- checks


class _Unhashable(constraints.Constraint):
    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = None  # type: ignore[assignment]

    def check(self, value: Tensor) -> Tensor:
        return value > 0


class _Own(Distribution):
    """A Poisson of somebody's own whose constraint has no hash."""

    arg_constraints = {"rate": _Unhashable()}
    support = constraints.nonnegative_integer

    def __init__(self, rate: Tensor) -> None:
        self.rate = rate
        super().__init__(rate.shape, validate_args=False)

    def log_prob(self, value: Tensor) -> Tensor:
        return Poisson(self.rate).log_prob(value)


def test_a_constraint_without_a_hash():
    assert truncate(_Own(torch.ones(2)), 9).probs.shape == (2, 9)
    with pytest.raises(ValueError, match="`rate`"):
        truncate(_Own(torch.tensor([1.0, -1.0])), 9)
