"""The multinomial: vector atoms while they are few, a chain of conditional binomials past that."""

import pytest
import scipy.stats
import torch
from frequencies import assert_frequencies, assert_mean
from torch.distributions import Independent, Multinomial

import gengs
from gengs.laws.multinomial import (
    MOST_OUTCOMES,
    compositions,
    explodes,
    multinomial_probs,
    number_of_outcomes,
)
from gengs.laws.relaxed_multinomial import relax_multinomial

PROBS = torch.tensor([0.2, 0.5, 0.3])


@pytest.mark.parametrize(("total", "boxes"), [(0, 3), (1, 1), (4, 1), (1, 4), (3, 3), (6, 4)])
def test_every_composition_once(total, boxes):
    atoms = compositions(total, boxes)
    assert atoms.shape == (number_of_outcomes(total, boxes), boxes)
    assert (atoms >= 0).all()
    assert (atoms.sum(-1) == total).all()
    assert atoms.unique(dim=0).shape == atoms.shape


@pytest.mark.parametrize("total", [1, 4, 12])
@pytest.mark.parametrize("by", ["probs", "logits"])
def test_enumeration_is_scipys_multinomial(total, by):
    probs = torch.tensor([0.2, 0.5, 0.3], dtype=torch.float64)
    law = Multinomial(total, **{by: probs if by == "probs" else probs.log()})
    q = gengs.truncate(law)
    wanted = scipy.stats.multinomial(total, probs.numpy()).pmf(q.atoms.numpy())
    torch.testing.assert_close(q.probs, torch.from_numpy(wanted), rtol=1e-9, atol=1e-15)
    torch.testing.assert_close(q.mean, law.mean)
    torch.testing.assert_close(q.variance, law.variance)


def test_enumeration_of_an_impossible_box():
    probs = torch.tensor([0.0, 0.4, 0.6], requires_grad=True)
    q = gengs.truncate(Multinomial(3, probs))
    assert (q.log_prob(torch.tensor([1.0, 1.0, 1.0])) == -torch.inf).all()
    gengs.Relaxed(0.5, q).rsample_value((20,)).square().sum().backward()
    assert torch.isfinite(probs.grad).all()


def test_too_many_outcomes_are_refused_with_a_way_out():
    law = Multinomial(50, torch.ones(10))
    assert number_of_outcomes(50, 10) > MOST_OUTCOMES
    assert explodes(Multinomial(MOST_OUTCOMES, torch.ones(2)))  # one outcome more than balls
    assert not explodes(Multinomial(MOST_OUTCOMES - 1, torch.ones(2)))
    with pytest.raises(ValueError, match=r"too many.* gumbel_relax"):
        gengs.truncate(law)
    assert gengs.gumbel_relax(law, tau=0.5).shape == (10,)
    assert gengs.gumbel_relax(Independent(Multinomial(50, torch.ones(2, 10)), 1)).shape == (2, 10)


# ------------------------------------------------------------------------------------ the chain


def relax(law, temperature, shape, hard=False, generator=None):
    log_p = multinomial_probs(law)[1]
    size = torch.Size(shape)
    return relax_multinomial(log_p, law.total_count, temperature, size, hard, generator)


@pytest.mark.parametrize("tau", [0.1, 1.0, 5.0])
@pytest.mark.parametrize("hard", [False, True])
def test_counts_are_non_negative_and_sum_to_the_total(tau, hard):
    law = Multinomial(13, torch.tensor([[0.7, 0.1, 0.1, 0.1], [0.01, 0.01, 0.97, 0.01]]))
    z = relax(law, tau, (500,), hard)
    assert z.shape == (500, 2, 4)
    assert (z >= 0).all()
    torch.testing.assert_close(z.sum(-1), torch.full((500, 2), 13.0), rtol=1e-5, atol=1e-5)
    if hard:
        assert torch.equal(z, z.round())


def test_hard_chain_follows_the_multinomial():
    # chi-square at 1e-6 over 30 000 draws: a link whose chance is off by .02 is found
    law = Multinomial(4, PROBS)
    z = relax(law, 0.5, (30_000,), True)
    q = gengs.truncate(law)
    index, found = q.index_of(z)
    assert found.all()
    assert_frequencies(torch.bincount(index, minlength=q.num_atoms), q.probs)


def test_hard_chain_of_many_balls_has_the_right_counts():
    # z-test at 1e-6 of means and of second moments: 8 % of a standard deviation is found
    law = Multinomial(500, PROBS)
    z = relax(law, 0.5, (3000,), True)
    for box, p in enumerate(PROBS.tolist()):
        assert_mean(z[:, box], 500 * p)
        assert_mean((z[:, box] - 500 * p).square(), 500 * p * (1 - p))


def test_cold_chain_has_the_gradient_of_the_mean():
    # d E[z] / d logits = N (diag p − p pᵀ); at τ = .1 the bias is a few per cent
    logits = PROBS.log().requires_grad_()
    law = Multinomial(6, logits=logits)
    z = relax(law, 0.1, (20_000,))
    rows = [torch.autograd.grad(z[:, k].mean(), logits, retain_graph=True)[0] for k in range(3)]
    wanted = 6 * (torch.diag(PROBS) - torch.outer(PROBS, PROBS))
    torch.testing.assert_close(torch.stack(rows), wanted, rtol=0.15, atol=0.1)


@pytest.mark.parametrize(
    "probs", [[0.0, 0.3, 0.7], [0.3, 0.7, 0.0], [0.3, 0.0, 0.7], [0.0, 1.0, 0.0]]
)
def test_impossible_boxes_stay_empty_and_send_no_nan(probs):
    probs = torch.tensor(probs, requires_grad=True)
    z = relax(Multinomial(7, probs), 0.5, (50,))
    assert (z.detach()[:, probs.detach() == 0] == 0).all()
    z.square().sum().backward()
    assert torch.isfinite(probs.grad).all()


def test_same_generator_same_counts():
    law = Multinomial(5, PROBS)
    one, other = (relax(law, 0.5, (), False, torch.Generator().manual_seed(1)) for _ in range(2))
    assert torch.equal(one, other)


def test_a_batch_of_temperatures_is_part_of_the_batch():
    temperature = torch.tensor([[0.3], [0.5], [1.0], [2.0]])
    z = relax(Multinomial(5, logits=torch.randn(2, 3)), temperature, (6,))
    assert z.shape == (6, 4, 2, 3)
    torch.testing.assert_close(z.sum(-1), torch.full((6, 4, 2), 5.0))
