"""A cost through which no gradient flows: right for those who need none, refused by the others.

False-alarm rate 1e-7 per test.
"""

import numpy as np
import pytest
import torch
from agreement import Answer, ask, complaint
from cases import COSTS
from reference import binomial, cut, poisson, scored
from settings import SETTINGS
from torch.distributions import Bernoulli, Poisson

import gengs

ATOMS, LOGITS = np.array([-1.0, 0.5, 2.0, 5.0]), np.array([0.3, -1.2, 0.8, 0.1])
LAWS = {
    "cut poisson": (1.6, lambda x: gengs.truncate(Poisson(x), 5), lambda: cut(poisson(1.6), 0, 4)),
    "bernoulli": (0.4, lambda x: Bernoulli(x), lambda: binomial(0.4, 1)),
    "uneven": (
        LOGITS,
        lambda x: gengs.Finite(torch.from_numpy(ATOMS), logits=x),
        lambda: scored(ATOMS, LOGITS),
    ),
    "poisson": (1.6, Poisson, lambda: poisson(1.6)),
}


def step(z):
    return 1 + COSTS["step"](z - 0.75)


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", SETTINGS)
def test_a_step(name, law):
    setting = SETTINGS[name]
    at, build, table = LAWS[law]
    at = torch.as_tensor(at, dtype=torch.float64)
    many = 1 if name == "Exact" else setting.replicates
    parameter = at.expand((many, *at.shape)).clone().requires_grad_()
    answer = ask(lambda: setting.make().expect(step, build(parameter)), {"it": parameter})
    if setting.make().needs_cost_gradient:
        assert answer.refusal is not None and answer.refusal.startswith("TypeError")
        return
    assert answer.refusal is None
    reference = table().bound_of_two(step) if name == "VIMCO" else table().expectation(step)
    (truth,) = reference[1].values()
    found = Answer(gradients={"it": answer.gradients["it"]})
    assert complaint(found, (0.0, {"it": truth}), setting.bias) is None
