"""Far out: probabilities of 1e-6, rates of 1e4, logits of 14, a thousand trials.

Only what needs no luck is asked here: enumeration, the mean, and tables. ``benchmarks.edges`` asks
the others, and says where sampling cannot judge.
"""

import numpy as np
import pytest
import torch
from agreement import ask, complaint
from cases import EXTREME

import gengs

cases = pytest.mark.parametrize("case", EXTREME, ids=lambda case: case.name)
# a whole law is cut where 1e-9 of its mass is left: that is seen in the fifth digit
types = pytest.mark.parametrize(
    ("dtype", "rounding"), [(torch.float64, 5e-5), (torch.float32, 2e-3)], ids=["double", "single"]
)


@cases
@types
@pytest.mark.parametrize("kind", ["quadratic", "smooth"])
def test_enumeration(case, kind, dtype, rounding):
    parameters = case.tensors(1, dtype=dtype)
    cost = case.cost(kind)
    answer = ask(lambda: gengs.Exact().expect(cost, case.build(**parameters)), parameters)
    assert answer.refusal is None
    value, gradients = case.reference().expectation(cost)
    assert abs(answer.values[0] - value) < rounding * max(1, abs(value))
    for name, truth in gradients.items():
        size = rounding * np.abs(truth).max()
        np.testing.assert_allclose(answer.gradients[name][0], truth, rtol=rounding, atol=size)


@cases
def test_the_gradient_of_the_mean(case):
    parameters = case.tensors(1)
    cost = case.cost("linear")
    answer = ask(
        lambda: gengs.StraightThroughMean().expect(cost, case.build(**parameters)), parameters
    )
    assert answer.refusal is None
    assert complaint(answer, case.reference().expectation(cost), rounding=1e-6) is None


@cases
def test_draws_are_where_the_mass_is(case):
    law = case.build(**case.tensors(400, requires_grad=False))
    table = case.reference()
    mean = table.probs @ table.atoms
    spread = (table.probs @ (table.atoms - mean) ** 2 / 400) ** 0.5
    drawn = law.sample().double().numpy()
    # 8 standard errors, and one stray draw of something rare
    assert abs(drawn.mean() - mean) <= 8 * spread + np.abs(table.atoms - mean).max() * 0.0026


@pytest.mark.parametrize(("dtype", "logit"), [(torch.float32, -110.0), (torch.float64, -1000.0)])
def test_a_geometric_that_hardly_ever_succeeds_draws_no_negative_count(dtype, logit):
    q = torch.distributions.Geometric(logits=torch.tensor(logit, dtype=dtype))
    assert (gengs.rsample(q, (50,)) == torch.inf).all()  # as torch's own draws
