"""Blocks under torch's transforms, second derivatives, and draws that are changed in place."""

import pytest
import torch
from torch.autograd import forward_ad
from torch.utils.checkpoint import checkpoint

import gengs
from gengs import differentiable

RULES = pytest.mark.parametrize("by", [None, gengs.RLOO()], ids=["path", "RLOO"])
R = 20_000


def mean_of_draws(rate, by):
    with differentiable(by=by) as program:
        z = torch.poisson(rate.expand(R))
    return program.loss(z.square()).mean()


@pytest.mark.filterwarnings("ignore:.*jit.script:DeprecationWarning")  # torch's own, at first use
@RULES
def test_forward_mode_is_refused(by):
    three = torch.tensor(3.0)
    with pytest.raises(RuntimeError, match="reverse-mode"):
        torch.func.jvp(lambda rate: mean_of_draws(rate, by), (three,), (torch.tensor(1.0),))
    with (
        differentiable(by=by),
        forward_ad.dual_level(),
        pytest.raises(RuntimeError, match="tangent"),
    ):
        torch.poisson(forward_ad.make_dual(three, torch.tensor(1.0)))
    with differentiable(by=by):  # the block that raised has left nothing behind
        torch.poisson(three)


@RULES
def test_reverse_mode_transforms_work(by):
    """d/dλ (λ + λ²) at 3 is 7; 0.75 is 5 standard errors of the score, the wider one."""
    torch.manual_seed(0)
    found = torch.func.grad(lambda rate: mean_of_draws(rate, by))(torch.tensor(3.0))
    assert abs(found - 7) < 0.75


@RULES
@pytest.mark.parametrize("validate", [True, False])
def test_a_draw_in_vmap_is_refused(by, validate):
    rate = torch.full((5,), 3.0, requires_grad=True)
    with (
        differentiable(by=by, validate_args=validate),
        pytest.raises(RuntimeError, match=r"torch\.vmap"),
    ):
        torch.vmap(torch.poisson, randomness="different")(rate)


def test_second_derivatives_are_right_or_refused():
    """The second derivative of λ + λ² is 2, on the path to a few standard errors."""
    torch.manual_seed(0)
    rate = torch.tensor(3.0, requires_grad=True)
    (first,) = torch.autograd.grad(mean_of_draws(rate, None), rate, create_graph=True)
    (second,) = torch.autograd.grad(first, rate)
    assert abs(second - 2) < 0.1
    (first,) = torch.autograd.grad(mean_of_draws(rate, gengs.RLOO()), rate, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(first, rate)


@pytest.mark.parametrize("by", [gengs.RLOO(), gengs.REINFORCE(), gengs.FittedScore()], ids=str)
@pytest.mark.parametrize("ask", ["loss", "mean"])
@pytest.mark.parametrize("first", ["rate", "own"])
def test_second_and_mixed_derivatives_of_a_score_are_refused(by, ask, first):
    """Of E (z - own)²: in the cost's own gradient the score leaves nothing of the rate."""
    parameters = {name: torch.tensor(3.0, requires_grad=True) for name in ("rate", "own")}
    with differentiable(by=by) as program:
        z = torch.poisson(parameters["rate"].expand(100))
        cost = (z - parameters["own"]).square()
    value = getattr(program, ask)(cost).mean()
    (slope,) = torch.autograd.grad(value, parameters[first], create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivative"):
        slope.backward()


def test_a_weight_of_the_loss_may_be_learned():
    """The gradient of the score is linear in it."""
    rate, weight = (torch.tensor(number, requires_grad=True) for number in (3.0, 2.0))
    loss = weight * mean_of_draws(rate, gengs.RLOO())
    (slope,) = torch.autograd.grad(loss, rate, create_graph=True)
    (found,) = torch.autograd.grad(slope, weight)
    torch.testing.assert_close(found, slope.detach() / 2)


def test_a_cost_may_be_changed_in_place_after_its_loss():
    rate = torch.tensor(3.0, requires_grad=True)
    with differentiable(by=gengs.RLOO()) as program:
        cost = torch.poisson(rate.expand(100)) + rate
    loss = program.loss(cost)
    before = loss.detach().clone()
    cost += 1
    loss.mean().backward()
    assert torch.equal(loss, before) and rate.grad is not None


@pytest.mark.parametrize(
    ("by", "reentrant"),
    [(None, True), (None, False), (gengs.RLOO(), True)],
    ids=["path", "path, again", "RLOO"],
)
def test_a_checkpoint_in_a_block_raises(by, reentrant):
    rate = torch.full((5,), 3.0, requires_grad=True)

    def step():
        return checkpoint(torch.poisson, rate, use_reentrant=reentrant)

    with pytest.raises(RuntimeError, match="checkpoint"), differentiable(by=by) as program:  # noqa: PT012
        z = step()
        program.loss(z + torch.poisson(rate)).sum().backward()
    assert step().shape == (5,)  # outside, it is as it was


@RULES
def test_a_draw_may_be_changed_in_place(by):
    """E of 2z on half of the replicates and of 0 on the others; 5 standard errors."""
    torch.manual_seed(0)
    rate = torch.full((R,), 3.0, requires_grad=True)
    with differentiable(by=by) as program:
        z = torch.poisson(rate)
        z *= 2
        z[: R // 2] = 0
    (found,) = torch.autograd.grad(program.loss(z).sum(), rate)
    moving = found[R // 2 :]
    assert (moving.mean() - 2).abs() < 5 * moving.std() / (R / 2) ** 0.5
