"""A straight-through draw: the discrete law in everything but the gradient of its draws."""

import pytest
import torch
from frequencies import assert_frequencies
from torch.distributions import Poisson

import gengs


def law():
    rate = torch.tensor([2.0, 4.0], requires_grad=True)
    return rate, gengs.truncate(Poisson(rate), 15)


@pytest.mark.parametrize(
    "draw",
    [
        lambda q: gengs.rsample(q, (20_000,), by=gengs.GenGS(0.5, hard=True)),
        lambda q: gengs.gumbel_relax(q.expand((20_000, 2)), 0.5, hard=True),
    ],
    ids=["rsample", "gumbel_relax"],
)
def test_draws_are_atoms_at_their_rates_with_a_gradient(draw):
    # chi-square at 1e-6 over 20 000 draws for each of two elements
    torch.manual_seed(0)
    _, q = law()
    z = draw(q)
    assert q.support.check(z).all()
    for element in range(2):
        counts = torch.bincount(z[:, element].long(), minlength=15)
        assert_frequencies(counts, q.probs[element])
    assert z.requires_grad


def test_gradient_is_that_of_the_relaxation():
    def gradient(draw):
        rate, q = law()
        torch.manual_seed(1)
        draw(q).sum().backward()
        return rate.grad

    hard = gradient(lambda q: gengs.rsample(q, (50,), by=gengs.GenGS(0.5, hard=True)))
    soft = gradient(lambda q: gengs.Relaxed(0.5, q).rsample_value((50,)))
    torch.testing.assert_close(hard, soft)
