"""StraightThrough: the discrete law in everything but the gradient of its draws."""

import pytest
import torch
from frequencies import assert_frequencies
from torch.distributions import Independent, Poisson, kl_divergence

import gengs


@pytest.fixture
def law():
    rate = torch.tensor([2.0, 4.0], requires_grad=True)
    return gengs.StraightThrough(0.5, gengs.truncate(Poisson(rate), 15))


def test_draws_are_atoms_at_their_rates_with_a_gradient(law):
    # chi-square at 1e-6 over 20 000 draws for each of two elements
    z = law.rsample((20_000,))
    assert law.support.check(z).all()
    assert torch.isfinite(law.log_prob(z)).all()  # exactly the atoms
    for element in range(2):
        counts = torch.bincount(z[:, element].long(), minlength=15)
        assert_frequencies(counts, law.law.probs[element])
    assert z.requires_grad
    assert not law.sample((3,)).requires_grad


def test_gradient_is_that_of_the_relaxation():
    def gradient(draw):
        rate = torch.tensor([2.0, 4.0], requires_grad=True)
        torch.manual_seed(1)
        draw(gengs.StraightThrough(0.5, gengs.truncate(Poisson(rate), 15))).sum().backward()
        return rate.grad

    hard = gradient(lambda law: law.rsample((50,)))
    soft = gradient(lambda law: law.relaxed.rsample_value((50,)))
    torch.testing.assert_close(hard, soft)


def test_everything_else_is_the_discrete_law(law):
    q = law.law
    for name in ("mean", "variance", "mode"):
        assert torch.equal(getattr(law, name), getattr(q, name))
    assert torch.equal(law.entropy(), q.entropy())
    assert torch.equal(law.enumerate_support(), q.enumerate_support())
    value = q.sample((4,))
    assert torch.equal(law.log_prob(value), q.log_prob(value))


def test_expands_and_nests(law):
    assert law.expand((3, 2)).rsample((4,)).shape == (4, 3, 2)
    joint = Independent(law, 1)
    assert joint.log_prob(joint.rsample()).shape == ()


def test_divergence_is_that_of_the_discrete_laws(law):
    prior = gengs.truncate(Poisson(torch.ones(2)), 15)
    wanted = kl_divergence(law.law, prior)
    straight = gengs.StraightThrough(1.0, prior)
    for q, p in ((law, prior), (law, straight), (law.law, straight)):
        torch.testing.assert_close(kl_divergence(q, p), wanted)
    torch.testing.assert_close(
        kl_divergence(law, Poisson(torch.ones(2))), kl_divergence(law.law, Poisson(torch.ones(2)))
    )
