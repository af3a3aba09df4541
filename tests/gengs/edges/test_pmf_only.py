"""A law that is a ``log_prob`` and no more: its table carries gradients however it was first asked.

The first question may come without gradients (an evaluation, a mean, a draw): what is then computed
must not be what a later gradient goes through.
"""

import numpy as np
import pytest
import torch
from agreement import ask, complaint
from laws import LogSeries
from settings import SETTINGS

import gengs

P = 0.55


def exact(cost):
    k = np.arange(1.0, 200)
    log = -np.log1p(-P)
    probs = P**k / k / log
    slope = P ** (k - 1) / log - probs / log / (1 - P)
    f = cost(torch.from_numpy(k)).numpy()
    return float(probs @ f), {"p": slope @ f}


def test_the_reference_sums_up():
    value, slope = exact(lambda k: torch.ones_like(k))
    assert abs(value - 1) < 1e-9 and abs(slope["p"]) < 1e-9


COSTS = {
    "linear": lambda z: 1.5 * z,
    "quadratic": lambda z: (z + 0.5).square() / 4,
}
SERVED = [name for name in SETTINGS if name not in ("VIMCO", "ArrivalTimes")]


@pytest.mark.parametrize(
    ("name", "first"),
    [(name, "evaluation") for name in SERVED] + [("MuProp", "nothing"), ("MuProp", "mean")],
)
def test_the_gradient_does_not_depend_on_what_came_before(name, first):
    setting = SETTINGS[name]
    cost = COSTS[setting.cost]
    p = torch.full((1 if name == "Exact" else 2000,), P, dtype=torch.float64, requires_grad=True)
    law = LogSeries(p)
    estimator = setting.make()
    with torch.no_grad():
        if first == "evaluation":
            estimator.expect(cost, law)
        elif first == "mean":
            gengs.truncate(law, tolerance=1e-6).mean  # noqa: B018
    answer = ask(lambda: estimator.expect(cost, law), {"p": p})
    assert answer.refusal is None
    # the cut at a tail of 1e-6 is seen in the fifth digit
    assert complaint(answer, exact(cost), setting.bias, rounding=1e-3) is None


@pytest.mark.parametrize("ask_first", ["probs", "logits", "mean", "sample", "entropy", "variance"])
def test_a_table_asked_without_gradients_has_them_later(ask_first):
    rate = torch.tensor(1.7, dtype=torch.float64, requires_grad=True)
    law = gengs.truncate(torch.distributions.Poisson(rate), 6)
    with torch.no_grad():
        found = getattr(law, ask_first)
        if callable(found):
            found()
    for later in (law.probs[2], law.mean, law.logits[1], law.variance, law.entropy()):
        (slope,) = torch.autograd.grad(later, rate, retain_graph=True)
        assert slope != 0
