"""A cost with steps: its slope is zero wherever it is asked, and its values differ.

Whoever follows the slope has a gradient of exactly zero then, and says so, with one draw as with
several, for a single element as for a batch. Nobody else does, and nobody does without a reason.
"""

import warnings

import pytest
import torch
from torch.distributions import Independent, Poisson

import gengs
from gengs.estimators import ALL

STEPS = {
    "floor": lambda z: torch.floor(z / 2),
    "round": lambda z: torch.round(z / 2),
    "sign": lambda z: torch.sign(z - 2.3),
    "compared": lambda z: (z > 2).to(z.dtype) + 0 * z,
}
FOLLOW = [kind for kind in ALL if not kind.handles_steps]
FLAT = {
    **{kind.__name__: kind for kind in FOLLOW},
    "GenGS(hard)": lambda: gengs.GenGS(0.5, hard=True),
    "GenGS(samples=4)": lambda: gengs.GenGS(0.5, samples=4),
    "MidCDF(4)": lambda: gengs.MidCDF(4),
}


def test_who_follows_the_slope():
    """By their facts: all that need the cost's gradient, except those that measure differences."""
    assert {kind for kind in ALL if kind.needs_cost_gradient} - set(FOLLOW) == {gengs.MuProp}
    assert all(kind.needs_cost_gradient for kind in FOLLOW)
    assert gengs.MidCDF(debias=1).handles_steps and not gengs.MidCDF().handles_steps


@pytest.mark.parametrize("batch", [(), (1,), (20,)], ids=["one", "batch of one", "batch"])
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", FLAT)
def test_whoever_follows_the_slope_says_so(name, step, batch):
    rate = torch.full(batch, 2.3, requires_grad=True)
    with pytest.warns(gengs.StepCostWarning, match=f"^{name.partition('(')[0]}: the slope of") as w:
        FLAT[name]().expect(STEPS[step], Poisson(rate)).sum().backward()
    assert len(w) == 1 and w[0].filename == __file__


def test_vectors_too():
    rate = torch.full((5, 3), 2.3, requires_grad=True)
    q = Independent(Poisson(rate), 1)
    with pytest.warns(gengs.StepCostWarning):
        gengs.MidCDF().expect(lambda z: torch.floor(z / 2).sum(-1), q).sum().backward()


@pytest.mark.parametrize("kind", [k for k in ALL if k.handles_steps], ids=lambda k: k.__name__)
def test_the_others_have_nothing_to_say(kind):
    rate = torch.full((20,), 2.3, requires_grad=True)
    kind().expect(STEPS["compared"], Poisson(rate)).sum().backward()
    assert rate.grad.count_nonzero()


@pytest.mark.parametrize("make", [gengs.MuProp, lambda: gengs.MidCDF(debias=1)])
def test_differences_are_right_for_steps(make):
    """d/dλ P(z > 2) = λ² exp(-λ) / 2. 5 standard errors: 6e-7 false alarms each."""
    rate = torch.full((4_000,), 2.3, dtype=torch.float64, requires_grad=True)
    make().expect(STEPS["compared"], Poisson(rate)).sum().backward()
    wanted = (rate[0] ** 2 * (-rate[0]).exp() / 2).detach()
    assert (rate.grad.mean() - wanted).abs() < 5 * rate.grad.std() / 4_000**0.5


# ------------------------------------------------------------------------------- no false alarms

DATA = torch.linspace(-1.0, 1.0, 20)
SILENT = {
    "constant": lambda z: 0 * z + 3.0,
    # a decoder whose weights start at zero: costs differ with the data, and not with the draw
    "not yet in use": lambda z: (DATA - 0.0 * z).square(),
    "flat below": lambda z: torch.relu(z - 200.0),
    # flat on both sides of a slope that few draws are on
    "clamped": lambda z: z.clamp(2.2, 2.9) + z.clamp(4.5, 6.5),
}


@pytest.mark.parametrize("cost", SILENT)
@pytest.mark.parametrize("name", FLAT)
def test_no_false_alarm(name, cost):
    rate = torch.full((20,), 2.3, requires_grad=True)
    for _ in range(3):
        FLAT[name]().expect(SILENT[cost], Poisson(rate)).sum().backward()


def test_two_draws_on_either_side_of_a_slope():
    """Most pairs of draws lie where it is flat, on two levels: further draws tell."""
    rate = torch.tensor(5.0, requires_grad=True)
    for _ in range(50):
        gengs.MidCDF(2).expect(lambda z: z.clamp(4.5, 5.5), Poisson(rate)).backward()


def test_a_result_that_is_not_used():
    rate = torch.full((20,), 2.3, requires_grad=True)
    (0.0 * gengs.GenGS().expect(torch.square, Poisson(rate))).sum().backward()


def test_silence_on_request():
    rate = torch.full((20,), 2.3, requires_grad=True)
    law = Poisson(rate, validate_args=False)
    gengs.MidCDF().expect(STEPS["floor"], law).sum().backward()


# ---------------------------------------------------------------------------------- what it costs


def evaluations(cost, replicates=1):
    seen = []
    rate = torch.full((20,), 2.3, requires_grad=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gengs.StepCostWarning)
        gengs.MidCDF().expect(lambda z: cost(z, seen), Poisson(rate)).sum().backward()
    return len(seen)


def test_a_cost_with_a_slope_is_evaluated_once():
    assert evaluations(lambda z, seen: seen.append(z) or z.square()) == 1
    assert evaluations(lambda z, seen: seen.append(z) or torch.floor(z)) > 1


def test_the_random_numbers_are_those_of_a_program_without_the_check():
    after = []
    for validate in (True, False):
        torch.manual_seed(0)
        rate = torch.full((20,), 2.3, requires_grad=True)
        law = Poisson(rate, validate_args=validate)
        gengs.MidCDF().expect(lambda z: 0 * (z + torch.rand(20)), law).sum().backward()
        after.append(torch.rand(3))
    assert torch.equal(*after)


def test_the_gradient_of_the_cost_itself_is_untouched():
    rate = torch.full((20,), 2.3, requires_grad=True)
    weight = torch.tensor(2.0, requires_grad=True)
    costs = gengs.MidCDF().expect(lambda z: weight + 0 * z, Poisson(rate))
    costs.sum().backward()
    assert weight.grad == 20
