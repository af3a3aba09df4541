"""Where a law is cut, what the end atoms hold, and what the certificate says was lost."""

import math
import warnings
from contextlib import nullcontext

import numpy as np
import pytest
import scipy.stats
import torch
from torch.distributions import (
    Binomial,
    Categorical,
    Geometric,
    MixtureSameFamily,
    NegativeBinomial,
    Poisson,
    constraints,
)

import gengs
from gengs.tables.truncation import as_finite

double = torch.float64


def poisson(*rates):
    return Poisson(torch.tensor(rates, dtype=double).squeeze())


def bimodal(first=1.0, second=30.0, weight=0.5):
    weights = torch.tensor([weight, 1 - weight], dtype=double)
    rates = torch.tensor([first, second], dtype=double)
    return MixtureSameFamily(Categorical(weights), Poisson(rates))


def table(law, last=600):
    """The PMF on 0 … last, in float64."""
    return law.log_prob(torch.arange(last + 1, dtype=double)).exp().numpy()


SMALL = {
    "poisson": poisson(6.0),
    "geometric": Geometric(torch.tensor(0.2, dtype=double)),
    "negative-binomial": NegativeBinomial(
        torch.tensor(2.5).to(double), torch.tensor(0.7).to(double)
    ),
    "bimodal": bimodal(),
    "lopsided": bimodal(2.0, 300.0, 0.995),
}
small_laws = pytest.mark.parametrize("law", SMALL.values(), ids=SMALL.keys())


def test_a_window_that_begins_below_the_support():
    q = gengs.truncate(Poisson(torch.tensor([2.0, 5.0])), low=-3, high=8)
    inside = gengs.truncate(Poisson(torch.tensor([2.0, 5.0])), 9)
    torch.testing.assert_close(q.probs[:, 3:], inside.probs)
    assert torch.equal(q.probs[:, :3], torch.zeros(2, 3))


@small_laws
@pytest.mark.parametrize("rule", [{"level": 8}, {"low": 3, "high": 11}, {"low": 2, "high": 2}])
def test_cut_is_the_clipped_law(law, rule):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gengs.TruncationWarning)
        q = gengs.truncate(law, **rule)
    pmf = table(law)
    low, high = int(q.atoms[0]), int(q.atoms[-1])
    assert (low, high) == ((0, 7) if "level" in rule else (rule["low"], rule["high"]))
    clipped = np.bincount(np.clip(np.arange(len(pmf)), low, high), weights=pmf)[low:]
    np.testing.assert_allclose(q.probs.numpy(), clipped, rtol=1e-9, atol=1e-12)


def test_lumping_is_not_renormalising():
    q = gengs.truncate(poisson(7.0), 10)
    reference = scipy.stats.poisson(7.0)
    renormalised = reference.pmf(np.arange(10)) / reference.cdf(9)
    assert q.probs[-1].item() == pytest.approx(reference.sf(8), rel=1e-9)
    assert q.probs[3].item() == pytest.approx(reference.pmf(3), rel=1e-9)
    assert abs(q.probs[3].item() - renormalised[3]) > 0.008
    assert q.probs[-1].item() > 1.5 * renormalised[-1]


@small_laws
def test_certificate_is_total_variation_and_mean_error(law):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gengs.TruncationWarning)
        q = gengs.truncate(law, low=4, high=12)
    pmf = table(law)
    k = np.arange(len(pmf))
    z = np.clip(k, 4, 12)
    of_z = np.bincount(z, weights=pmf, minlength=len(pmf))
    assert q.certificate.lost_mass.item() == pytest.approx(np.abs(of_z - pmf).sum() / 2, rel=1e-6)
    assert q.certificate.mean_error.item() == pytest.approx((np.abs(z - k) * pmf).sum(), rel=1e-6)
    assert "lost_mass" in repr(q.certificate)


@pytest.mark.parametrize("by", ["probs", "logits"])
@pytest.mark.parametrize(
    ("low", "high", "wanted"),
    [
        (0, 4, [0.1, 0.2, 0.3, 0.25, 0.15]),
        (0, 2, [0.1, 0.2, 0.7]),
        (1, 3, [0.3, 0.3, 0.4]),
        (2, 2, [1.0]),
        (-1, 5, [0.0, 0.1, 0.2, 0.3, 0.25, 0.15, 0.0]),
    ],
)
def test_a_categorical_is_clipped_on_both_sides(by, low, high, wanted):
    probs = torch.tensor([0.1, 0.2, 0.3, 0.25, 0.15], dtype=double, requires_grad=True)
    law = Categorical(probs) if by == "probs" else Categorical(logits=probs.log())
    warned = pytest.warns(gengs.TruncationWarning) if low == high else nullcontext()
    with warned:  # a single atom keeps 0.3 of the mass
        q = gengs.truncate(law, low=low, high=high)
    wanted = torch.tensor(wanted, dtype=double)
    torch.testing.assert_close(q.probs, wanted)
    torch.testing.assert_close(q.logits.exp(), wanted)
    (slope,) = torch.autograd.grad(q.mean, probs)
    values = torch.arange(5, dtype=double).clamp(low, high)  # each value's own, less their mean
    torch.testing.assert_close(slope, values - (values * probs).sum().detach())


def test_mean_error_of_a_law_without_mean_is_infinite():
    class Heavy(gengs.Skellam):
        """p(k) = 1 / ((k + 1)(k + 2)) on 0, 1, …: its mean does not exist. With a rate: Poisson."""

        support = torch.distributions.constraints.nonnegative_integer

        def log_prob(self, value):
            heavy = -((value + 1) * (value + 2)).log() + 0 * self.rate_up
            return heavy.where(self.rate_up == 0, Poisson(self.rate_up).log_prob(value))

        mean = variance = property(lambda self: torch.full_like(self.rate_up, torch.inf))

    rate = torch.tensor([0.0, 2.0], dtype=double)
    heavy = gengs.truncate(Heavy(rate, torch.ones((), dtype=double)), 10).certificate
    light = gengs.truncate(Poisson(rate[1]), 10).certificate
    assert heavy.lost_mass[0].item() == pytest.approx(1 / 11, rel=1e-4)
    assert heavy.mean_error[0].item() == math.inf
    torch.testing.assert_close(heavy.mean_error[1], light.mean_error)


def test_mean_error_looks_no_further_than_the_mass(monkeypatch):
    law = gengs.Skellam(torch.tensor(3.0, dtype=double), torch.tensor(2.0, dtype=double))
    certificate = gengs.truncate(law, low=-1, high=3).certificate
    family, asked = certificate.law, []
    log_pmf = family.log_pmf
    monkeypatch.setattr(family, "log_pmf", lambda k: asked.append(k.numel()) or log_pmf(k))
    assert certificate.mean_error.item() > 0
    assert sum(asked) < 1000  # of the million integers at which it gives up


class Shifted(Poisson):
    """A Poisson count plus one."""

    def log_prob(self, value):
        inside = Poisson(self.rate).log_prob((value - 1).clamp_min(0))
        return inside.where(value >= 1, -torch.inf)


def test_subclass_with_a_pmf_of_its_own_is_asked_for_it():
    q = gengs.truncate(Shifted(torch.tensor(2.0, dtype=double)), 20)
    assert q.mean.item() == pytest.approx(3, abs=1e-6)


# ------------------------------------------------------------------------------------ mass (NP)


def algorithm_2(law, mass):
    """The paper's loop, word for word: add atoms until the mass is reached, then one more."""
    pmf, k, total = table(law), 0, 0.0
    while total < mass:
        total += pmf[k]
        k += 1
    return k + 1


@small_laws
@pytest.mark.parametrize("mass", [0.1, 0.5, 0.9, 0.99, 0.9999])
def test_mass_is_algorithm_2(law, mass):
    q = gengs.truncate(law, mass=mass)
    assert q.num_atoms == algorithm_2(law, mass)
    assert q.probs[:-1].sum() >= mass
    assert q.probs[:-2].sum() < mass


def test_widest_element_sets_the_level_of_a_mass():
    rates = (0.1, 3.0, 11.0)
    q = gengs.truncate(poisson(*rates), mass=0.99)
    assert q.num_atoms == max(algorithm_2(poisson(rate), 0.99) for rate in rates)


def test_mass_is_counted_from_the_smallest_value():
    class FromOne(Shifted):
        support = constraints.positive_integer

    q = gengs.truncate(FromOne(torch.tensor(6.0, dtype=double)), mass=0.99)
    assert q.atoms[0] == 1
    assert q.num_atoms == algorithm_2(poisson(6.0), 0.99)


def test_mass_stays_within_a_finite_support():
    q = gengs.truncate(Binomial(torch.tensor(4.0), torch.tensor(0.9)), mass=0.999999)
    assert q.num_atoms == 5


# ------------------------------------------------------------------------------------- tolerance


def smallest_window(pmf, tolerance):
    """Brute force over all windows; a window may start anywhere."""
    below = np.concatenate([[0.0], pmf.cumsum()])  # P(X < k)
    above = np.concatenate([pmf[::-1].cumsum()[::-1], [0.0]])  # P(X >= k)
    best = len(pmf)
    for low in range(len(pmf)):
        for size in range(1, min(best, len(pmf) - low)):
            if below[low] + above[low + size] <= tolerance:
                best = size
                break
    return best


@small_laws
@pytest.mark.parametrize("tolerance", [0.3, 0.01, 1e-5])
def test_tolerance_gives_the_smallest_window(law, tolerance):
    q = gengs.truncate(law, tolerance=tolerance)
    assert q.certificate.lost_mass.item() <= tolerance
    assert q.num_atoms == smallest_window(table(law, 450), tolerance)


def test_tolerance_finds_the_last_atom_beside_the_centre():
    """On one side of the rounded mean there is one more atom, and nothing further out."""
    left = gengs.truncate(poisson(1.0), tolerance=0.01)
    assert left.certificate.lost_mass.item() <= 0.01
    right = gengs.truncate(Binomial(20, torch.tensor(0.97, dtype=double)), tolerance=0.01)
    assert right.certificate.lost_mass.item() <= 0.01
    pmf = scipy.stats.binom(20, 0.97).pmf(np.arange(22))
    assert right.num_atoms == smallest_window(pmf, 0.01) == 4


@pytest.mark.parametrize("rate", [1e-6, 0.3, 10.0, 63.0, 1e3, 1e5, 1e6])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-6])
def test_float32_window_is_certified_by_scipy(rate, tolerance):
    q = gengs.truncate(Poisson(torch.tensor(rate)), tolerance=tolerance)
    reference = scipy.stats.poisson(torch.tensor(rate).double().item())
    lost = reference.cdf(q.atoms[0].item() - 1) + reference.sf(q.atoms[-1].item())
    assert lost <= tolerance * (1 + 1e-4)
    assert q.probs.sum().item() == pytest.approx(1, abs=1e-5)


def test_width_grows_like_the_root_of_the_rate():
    sizes = [gengs.truncate(poisson(rate), tolerance=1e-6).num_atoms for rate in (1e2, 1e4, 1e6)]
    assert sizes[1] / sizes[0] == pytest.approx(10, rel=0.1)
    assert sizes[2] / sizes[1] == pytest.approx(10, rel=0.1)


def test_each_element_of_a_batch_gets_its_own_window():
    q = gengs.truncate(poisson(2.0, 500.0, 1e4), tolerance=1e-6)
    assert q.atoms.shape == (3, q.num_atoms)
    assert (q.certificate.lost_mass <= 1e-6).all()
    torch.testing.assert_close(q.mean, torch.tensor([2.0, 500.0, 1e4], dtype=double))
    assert (q.atoms >= 0).all()


def test_window_of_a_binomial_batch_stays_inside_the_support():
    law = Binomial(torch.tensor([3.0, 1000.0]), torch.tensor([0.5, 0.5]))
    q = gengs.truncate(law, tolerance=1e-6)
    assert (q.certificate.lost_mass <= 1e-6).all()
    torch.testing.assert_close(q.probs.sum(-1), torch.ones(2))


@pytest.mark.parametrize("tolerance", [1e-3, 1e-6])
@pytest.mark.parametrize("rates", [[2.0], [0.5, 7.0], [100.0, 130.0], [900.0, 1000.0], [1e4]])
def test_one_window_for_all_loses_half_of_the_tolerance_on_each_side(rates, tolerance):
    """The smallest that does; from 0 on, where the least element lies near it."""
    window = as_finite(poisson(*rates), tolerance).certificate.window
    low = scipy.stats.poisson(min(rates)).ppf(tolerance / 2) if min(rates) > 500 else 0
    high = scipy.stats.poisson(max(rates)).isf(tolerance / 2)
    assert (window.low, window.size) == (low, high - low + 1)


def test_one_window_for_all_has_two_atoms_and_is_not_much_wider_than_their_own():
    assert as_finite(poisson(1e-9)).certificate.window.size == 2
    apart = as_finite(poisson(1.0, 1000.0), 1e-3).certificate.window
    each = gengs.truncate(poisson(1.0, 1000.0), tolerance=1e-3).certificate.window
    assert torch.equal(apart.low, each.low) and apart.size == each.size < 300


# -------------------------------------------------------------------------------- reuse and drift


def test_window_is_used_again_and_drift_warns():
    window = gengs.truncate(poisson(5.0), tolerance=1e-4).certificate.window
    again = gengs.truncate(poisson(5.0), window=window)  # no warning
    assert again.num_atoms == window.size
    with pytest.warns(gengs.TruncationWarning, match="loses more than .* of some Poisson"):
        gengs.truncate(poisson(9.0), window=window)


def test_level_that_loses_most_of_the_mass_warns():
    with pytest.warns(gengs.TruncationWarning, match="4 atoms"):
        gengs.truncate(poisson(30.0), 4)


def test_validation_off_does_not_warn():
    gengs.truncate(poisson(30.0), 4, validate_args=False)


# ----------------------------------------------------------------------------- the tail's gradient


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("rate", [1e-3, 2.0, 40.0, 1e3, 1e5])
def test_gradient_of_the_lumped_tail(rate, dtype):
    rate = torch.tensor(rate, dtype=dtype, requires_grad=True)
    level = int(rate.item()) + 3
    gengs.truncate(Poisson(rate), level).probs[-1].backward()
    # d/dλ P(X ≥ a) = p(a − 1)
    wanted = scipy.stats.poisson(rate.double().item()).pmf(level - 2)
    assert rate.grad.item() == pytest.approx(wanted, rel=2e-4 if dtype == torch.float32 else 1e-8)


def test_gradient_of_the_lumped_tail_of_a_binomial():
    p = torch.tensor(0.3, dtype=double, requires_grad=True)
    gengs.truncate(Binomial(torch.tensor(50.0, dtype=double), p), 20).probs[-1].backward()
    # d/dp P(X ≥ a) = N p_{N−1}(a − 1)
    wanted = 50 * scipy.stats.binom(49, 0.3).pmf(18)
    assert p.grad.item() == pytest.approx(wanted, rel=1e-9)


def test_mass_is_conserved_by_the_gradient():
    rate = torch.tensor([0.5, 4.0, 25.0], dtype=double, requires_grad=True)
    gengs.truncate(Poisson(rate), low=2, high=9, validate_args=False).probs.sum().backward()
    torch.testing.assert_close(rate.grad, torch.zeros(3, dtype=double))


def test_a_single_atom_that_loses_the_mass_is_warned_of():
    with pytest.warns(gengs.TruncationWarning, match="1 atom loses"):
        gengs.truncate(Poisson(torch.tensor(3.0)), 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gengs.truncate(Poisson(torch.tensor(0.1)), 1)


def test_true_is_no_level():
    with pytest.raises(ValueError, match="an integer `level`, but got True"):
        gengs.truncate(Poisson(torch.tensor(0.1)), True)
