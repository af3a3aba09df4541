"""Vector atoms cost what they must: K numbers per draw, never K x K."""

import pytest
import torch
from torch.distributions import OneHotCategorical
from torch.nn.functional import gumbel_softmax
from watching import Largest

import gengs

K, BATCH = 512, 4


def scores(*shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(2)).requires_grad_()


def largest(function):
    with Largest() as watch:
        function()
    return watch


def test_the_watch_sees_a_planted_square():
    assert largest(lambda: torch.ones(3, 50).unsqueeze(-1) * torch.eye(50)).elements == 7500
    assert largest(lambda: torch.ones(50, 1).expand(50, 900)).elements == 50


@pytest.mark.parametrize("hard", [False, True])
def test_relaxing_a_one_hot_law_is_linear_in_its_size(hard):
    logits = scores(BATCH, K)

    def step():
        y = gengs.gumbel_relax(OneHotCategorical(logits=logits), 0.7, hard)
        (y * torch.arange(K)).sum().backward()

    watch = largest(step)
    assert watch.elements <= 8 * BATCH * K, watch.shape


def test_softmax_itself_passes_this_limit():
    logits = scores(BATCH, K)
    watch = largest(lambda: (gumbel_softmax(logits) * torch.arange(K)).sum().backward())
    assert watch.elements <= 8 * BATCH * K


@pytest.mark.parametrize("name", ["GenGS", "ReinMax", "StraightThroughMean", "RLOO", "REINFORCE"])
def test_estimators_on_a_one_hot_law_are_linear_in_its_size(name):
    logits = scores(BATCH, K)

    def step():
        q = OneHotCategorical(logits=logits)
        getattr(gengs, name)().expect(lambda z: (z * torch.arange(K)).sum(-1), q).sum().backward()

    watch = largest(step)
    assert watch.elements <= 16 * BATCH * K, watch.shape


@pytest.mark.parametrize("hard", [False, True])
def test_a_codebook_is_one_matrix_product(hard):
    width = 32
    logits, codebook = scores(BATCH * 8, K), scores(K, width).detach()
    law = gengs.Finite(codebook, logits=logits, event_dim=1)

    def step():
        gengs.Relaxed(0.7, law).rsample_value(hard=hard).square().sum().backward()

    watch = largest(step)
    # the weights (32 x 512) and the book (512 x 32), not their product (32 x 512 x 32)
    assert watch.elements <= 4 * BATCH * 8 * K, watch.shape


@pytest.mark.parametrize("hard", [False, True])
def test_one_hot_values(hard):
    logits = scores(2, 3, 5)
    y = gengs.gumbel_relax(OneHotCategorical(logits=logits), 0.7, hard)
    assert y.shape == (2, 3, 5)
    torch.testing.assert_close(y.sum(-1), torch.ones(2, 3))
    assert (y >= 0).all() and (not hard or bool(((y == 0) | (y == 1)).all()))
    (slope,) = torch.autograd.grad((y * torch.arange(5)).sum(), logits)
    assert slope.any() and slope.sum(-1).abs().max() < 1e-5


def test_one_hot_draws_have_the_law_of_the_softmax():
    # the mean of both, over 20,000 draws: each entry within 6 standard errors (2e-9 per entry)
    logits = torch.tensor([0.3, -1.0, 0.8, 0.0])
    law = OneHotCategorical(logits=logits.expand(20_000, 4))
    ours, theirs = gengs.gumbel_relax(law, 0.7), gumbel_softmax(logits.expand(20_000, 4), 0.7)
    error = (ours.var(0) / 20_000 + theirs.var(0) / 20_000).sqrt()
    assert ((ours.mean(0) - theirs.mean(0)).abs() < 6 * error).all()
    assert ((ours.square().mean(0) - theirs.square().mean(0)).abs() < 6 * error).all()


def test_the_event_can_stand_in_another_dimension():
    logits = scores(2, 5, 3).detach()
    law = OneHotCategorical(logits=logits.movedim(1, -1))
    torch.manual_seed(3)
    last = gengs.gumbel_relax(law, 0.7)
    torch.manual_seed(3)
    middle = gengs.gumbel_relax(law, 0.7, dim=1)
    assert middle.shape == (2, 5, 3)
    torch.testing.assert_close(middle, last.movedim(-1, 1))
