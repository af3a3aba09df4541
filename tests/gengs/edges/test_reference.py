"""The reference itself: probabilities sum to one, slopes to zero, and both follow small steps."""

import numpy as np
import pytest
import torch
from beside import FACTORS, beside
from cases import CASES, COSTS, INTERIOR
from reference import binomial, binomial_in_both, joint_expectation

cases = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


@cases
def test_probabilities_sum_to_one_and_slopes_to_zero(case):
    table = case.reference()
    assert abs(table.probs.sum() - 1) < 1e-9
    assert set(table.slopes) == set(case.parameters)
    for name, slope in table.slopes.items():
        assert slope.shape == (*np.shape(case.parameters[name]), len(table.probs))
        assert np.abs(slope.sum(-1)).max() < 1e-6 * max(1, np.abs(slope).max())


@pytest.mark.parametrize("case", INTERIOR, ids=lambda case: case.name)
def test_slopes_follow_small_steps(case):
    cost = case.cost("cubic")
    _, gradients = case.reference().expectation(cost)
    for name, values in case.parameters.items():
        if "total" in case.tags and name == "total_count":
            continue  # an integer here: the next test has it
        for at in np.ndindex(*np.shape(values)):
            ends = []
            for sign in (1, -1):
                moved = np.array(values, dtype=float)
                moved[at] += sign * 1e-5
                table = case.table(
                    **{k: np.asarray(v, float) for k, v in case.parameters.items()} | {name: moved}
                )
                ends.append(table.expectation(cost)[0])
            slope = (ends[0] - ends[1]) / 2e-5
            assert abs(slope - gradients[name][at]) < 1e-5 * (1 + abs(slope)), name


def test_the_slope_in_n_is_that_of_the_moments():
    for n, p in ((0, 0.3), (1, 0.3), (5, 0.7), (7, 1.0)):
        table = binomial_in_both(p, n)
        in_n = table.expectation(lambda z: z)[1]["total_count"]
        assert abs(in_n - p) < 1e-9
        in_n = table.expectation(lambda z: z.square())[1]["total_count"]
        assert abs(in_n - (p * (1 - p) + 2 * n * p**2)) < 1e-9


@pytest.mark.parametrize("which", FACTORS, ids=lambda which: which[0])
def test_beside_each_other_a_sum_of_costs_is_a_sum(which):
    _, _, value, found = beside(which, lambda z: z.square().sum(-1))
    singles = [which[2](np.float64(v)).expectation(lambda z: z.square()) for v in which[4]]
    assert abs(value - sum(single for single, _ in singles)) < 1e-9
    wanted = [next(iter(gradient.values())) for _, gradient in singles]
    np.testing.assert_allclose(found, wanted, atol=1e-9)


def test_a_product_of_two_is_differentiated_in_each():
    tables = [binomial(0.3, 1), binomial(0.8, 1)]
    value, gradients = joint_expectation(tables, lambda z: z[..., 0] * z[..., 1])
    assert abs(value - 0.24) < 1e-12
    assert abs(gradients[0]["probs"] - 0.8) < 1e-12 and abs(gradients[1]["probs"] - 0.3) < 1e-12


def test_costs_take_float64():
    for cost in COSTS.values():
        assert cost(torch.zeros(2, dtype=torch.float64)).dtype == torch.float64
