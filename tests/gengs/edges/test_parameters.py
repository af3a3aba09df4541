"""A parameter that requires a gradient gets the right one, or a sentence says why not.

Every law x every parameter x every estimator, and the draw that moves. Never ``None``, never a
silent zero: an answer that cannot be told from zero counts as wrong.

The number of trials of a binomial is a parameter like any other for the draw that moves, for MidCDF
and for FiniteDifference (one more trial, one fewer). It is none for estimators that weigh outcomes
by their probability: the outcome n + 1 has probability zero and a derivative all the same, which no
table on 0, ..., n and no score of a drawn value can see. They refuse with a ``TypeError``.
"""

import pytest
import torch
from agreement import ask, complaint
from beside import FACTORS, beside
from cases import INTERIOR
from settings import SCORES, SETTINGS, TABLES, draw

import gengs

# per cell: a right estimator fails with probability 1e-7, at most 1e-4 for the whole file


def test_every_estimator_has_a_setting():
    assert {kind.__name__ for kind in gengs.estimators.ALL} == set(SETTINGS)


def may_refuse(name, case):
    """Whether the estimator has a reason to decline this law."""
    if name == "ArrivalTimes":
        return not case.name.startswith("poisson")
    if case.event_dim and name in ("FiniteDifference", "MidCDF"):
        return True  # vectors have no neighbours
    return must_refuse(name, case)


def must_refuse(name, case):
    """Whether a number that came back could not be right."""
    return "total" in case.tags and name in (*TABLES, *SCORES, "Exact", "FiniteDifference")


ATOMLESS = [SETTINGS[name].make for name in SCORES]


def replicates_of(setting, case):
    slow = ("skellam", "level=None")  # tables, and probabilities, made by sums
    if setting.make not in ATOMLESS:
        slow = (*slow, "negative binomial(total_count")
    return min(setting.replicates, 800 if any(word in case.name for word in slow) else 10_000)


cases = pytest.mark.parametrize("case", INTERIOR, ids=lambda case: case.name)


@cases
@pytest.mark.parametrize("name", SETTINGS)
def test_every_parameter_gets_its_gradient_or_a_sentence(name, case):
    setting = SETTINGS[name]
    parameters = case.tensors(replicates_of(setting, case))
    cost = case.cost(setting.cost)
    answer = ask(lambda: setting.make().expect(cost, case.build(**parameters)), parameters)
    if answer.refusal is not None:
        assert may_refuse(name, case), answer.refusal
    assert answer.refusal is not None or not must_refuse(name, case)
    table = case.reference()
    reference = table.bound_of_two(cost) if name == "VIMCO" else table.expectation(cost)
    assert complaint(answer, reference, setting.bias) is None


@cases
def test_a_draw_moves_with_every_parameter(case):
    cost = case.cost("quadratic")
    reference = case.reference().expectation(cost)
    parameters = case.tensors(replicates_of(SETTINGS["MidCDF"], case))
    answer = ask(lambda: cost(draw(case.build(**parameters))), parameters)
    if answer.refusal is not None:
        assert case.event_dim, answer.refusal
        return
    assert complaint(answer, reference) is None
    # many draws of one law: the mean over the sample shape has the same gradient
    groups = case.tensors(40)
    answer = ask(lambda: cost(draw(case.build(**groups), (50,))).mean(0), groups)
    assert complaint(answer, reference) is None


@pytest.mark.parametrize("which", FACTORS[:2], ids=lambda which: which[0])
@pytest.mark.parametrize("name", SETTINGS)
def test_latents_beside_each_other_get_their_own_gradients(name, which):
    setting = SETTINGS[name]
    linear = setting.cost == "linear"

    def cost(z):
        total = (z * torch.tensor([1.0, -0.8, 0.5], dtype=z.dtype)[: z.shape[-1]]).sum(-1)
        return total if linear else (total + 1.5).square()

    parameter, q, value, wanted = beside(which, cost, setting.replicates)
    answer = ask(lambda: setting.make().expect(cost, q), {"it": parameter})
    if name == "VIMCO":  # another objective
        assert answer.gradients["it"] is not None
        return
    if answer.refusal is not None:
        assert name == "ArrivalTimes" and which[0] == "bernoullis"
    assert complaint(answer, (value, {"it": wanted}), setting.bias) is None
