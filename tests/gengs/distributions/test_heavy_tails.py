"""Tails of laws that only have a PMF: nine digits, where the terms fall slowly."""

import pytest
import scipy.special
import torch
from torch.distributions import Distribution, constraints

import gengs


class Zipf(Distribution):
    """p(k) = k^-s / zeta(s) on 1, 2, ...; its tail is Hurwitz' zeta function."""

    arg_constraints = {}
    support = constraints.positive_integer

    def __init__(self, s):
        self.s = s
        super().__init__(s.shape, validate_args=False)

    def log_prob(self, value):
        return -self.s * value.log() - self._log_zeta(self.s)

    @staticmethod
    def _log_zeta(s):
        """log zeta, whose derivative torch does not have: by a step that float64 is exact for."""
        value = float(s.detach())
        step = 1e-5
        slope = scipy.special.zeta(value + step) - scipy.special.zeta(value - step)
        slope = slope / (2 * step) / scipy.special.zeta(value)
        return torch.tensor(scipy.special.zeta(value)).log() + slope * (s - s.detach())


class _Integers(constraints.Constraint):
    is_discrete = True

    def check(self, value):
        return value == value.round()


class TwoSidedZipf(Zipf):
    """Half of it on -1, -2, ...: no end on either side."""

    support = _Integers()

    def log_prob(self, value):
        magnitude = value.abs().clamp_min(1)
        return (super().log_prob(magnitude) - torch.tensor(2.0).log()).where(value != 0, -torch.inf)


def tail(s, a):
    return scipy.special.zeta(s, a) / scipy.special.zeta(s)


@pytest.mark.parametrize(("s", "a"), [(6.0, 40), (5.5, 64), (8.0, 20), (12.0, 9)])
def test_a_tail_above(s, a):
    law = Zipf(torch.tensor(s, dtype=torch.float64, requires_grad=True))
    last = gengs.truncate(law, low=1, high=a).log_prob(torch.tensor(float(a)))
    assert last.exp().item() == pytest.approx(tail(s, a), rel=1e-9)
    (slope,) = torch.autograd.grad(last, law.s)
    change = tail(s + 1e-4, a) - tail(s - 1e-4, a)
    assert slope.item() == pytest.approx(change / 2e-4 / tail(s, a), rel=1e-6)


@pytest.mark.parametrize(("s", "a"), [(4.0, 12), (5.0, 30), (9.0, 3)])
@pytest.mark.parametrize("side", [-1, 1])
def test_tails_of_a_law_without_ends(s, a, side):
    law = TwoSidedZipf(torch.tensor(s, dtype=torch.float64))
    low, high = (-a, 5) if side < 0 else (-5, a)
    end = gengs.truncate(law, low=low, high=high).log_prob(torch.tensor(float(side * a)))
    assert end.exp().item() == pytest.approx(tail(s, a) / 2, rel=1e-9)
