"""A law that is a ``log_prob`` and no more: its table carries gradients however it was first asked.

The first question may come without gradients (an evaluation, a mean, a draw): what is then computed
must not be what a later gradient goes through.
"""

import math

import numpy as np
import pytest
import torch
from agreement import ask, complaint
from laws import LogSeries
from settings import SETTINGS

import gengs
from gengs.laws.pmf import PMF
from gengs.tables.total_mass import require_total_mass

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


class Scaled(LogSeries):
    """A PMF with a factor that its author forgot, or has too much."""

    factor = 1.0

    def log_prob(self, value):
        return super().log_prob(value) + math.log(self.factor)


@pytest.mark.parametrize("factor", [0.5, 0.95])
@pytest.mark.parametrize("batch", [(), (300,)], ids=["one", "many"])
def test_mass_that_lies_nowhere_is_an_error(factor, batch):
    """The end atom of a table would hold it: draws and gradients of another distribution."""
    law = Scaled(torch.full(batch, P, requires_grad=True))
    law.factor = factor
    sentence = f"Scaled has a log_prob that is not normalised.*sum to {factor}"
    for table in (
        lambda: gengs.rsample(law),
        lambda: gengs.truncate(law, 16),
        lambda: gengs.truncate(law, mass=0.9),
        lambda: gengs.UnOrd(2).expect(COSTS["linear"], law),
    ):
        with pytest.raises(ValueError, match=sentence):
            table()


class Zeta(LogSeries):
    """A tail that sums have no end of: after a million integers a hundredth is still missing."""

    def log_prob(self, value):
        return -1.4 * value.log() - math.log(3.105551) + 0 * self.p


def test_a_heavy_tail_or_a_far_bulk_is_not_missing_mass():
    require_total_mass(gengs.law_of(Zeta(torch.tensor(P))))
    far = torch.distributions.Poisson(torch.tensor([3.0, 40_000.0]))
    require_total_mass(PMF(far))  # in float32, whose log-gammas are off by some per mille
