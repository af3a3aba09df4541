"""Tails of binomials and negative binomials against scipy, and the warning that looks at them."""

import warnings

import numpy as np
import pytest
import scipy.stats
import torch
from torch.distributions import Binomial, Geometric, NegativeBinomial

import gengs
from gengs import truncate
from gengs.numerics.tails import log_beta_tail

double = torch.float64
P = torch.cat(
    [
        torch.logspace(-12, -0.01, 120, dtype=double),
        1 - torch.logspace(-9, -1, 40, dtype=double),
        torch.tensor([0.0, 1.0], dtype=double),
    ]
)


@pytest.mark.parametrize("r", [0.3, 3.0, 50.0])
@pytest.mark.parametrize("a", [1, 2, 13, 64, 65, 200])
def test_the_tail_of_a_negative_binomial(r, a):
    """By the sum below a small integer, by a fraction elsewhere; the same digits on both sides."""
    found = log_beta_tail(
        torch.tensor([float(a)], dtype=double), torch.tensor(r, dtype=double), P.log(), (-P).log1p()
    )
    with np.errstate(divide="ignore"):
        expected = np.log(scipy.special.betainc(float(a), r, P.numpy()))
    known = expected > -690  # further down, scipy's own number is subnormal
    assert known.sum() > 50
    np.testing.assert_allclose(found.numpy()[known], expected[known], rtol=1e-9, atol=1e-9)
    assert not torch.isnan(found).any()


@pytest.mark.filterwarnings("ignore:truncation to")
@pytest.mark.parametrize("size", [12, 30])
def test_the_lumped_tail_of_float32_parameters(size):
    """Where 1 - (the rest) takes over from the fraction, float32 sums would be off by 3 %."""
    p = torch.linspace(0.05, 0.6, 300)
    laws = [
        (truncate(NegativeBinomial(3.0, probs=p), size), scipy.stats.nbinom(3, 1 - p.double())),
        (truncate(Binomial(40, probs=p), high=size - 1), scipy.stats.binom(40, p.double())),
    ]
    for law, reference in laws:
        expected = reference.sf(size - 2)
        near = (expected > 1e-9) & (expected < 1e-3)
        assert near.sum() > 20
        found = law.probs[:, -1].double().numpy()
        np.testing.assert_allclose(found[near], expected[near], rtol=1e-5)


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_a_tail_of_nothing_or_of_everything_has_a_derivative():
    a, b = (torch.tensor([3.0], dtype=double, requires_grad=True) for _ in range(2))
    log_x = torch.tensor([-torch.inf, 0.0], dtype=double)
    tail = log_beta_tail(a, b, log_x, log_x.flip(0)).exp()
    assert tail.tolist() == [0.0, 1.0]
    with torch.autograd.detect_anomaly():  # no NaN on the way, even if it is masked later
        slopes = torch.autograd.grad(tail.sum(), (a, b))
    assert [slope.item() for slope in slopes] == [0.0, 0.0]


@pytest.mark.parametrize("r", [[3.0], [3.0, 5.0]])
def test_one_count_for_all_or_one_for_each(r):
    total = torch.tensor(r, dtype=double)
    law = NegativeBinomial(total, probs=torch.tensor(0.4, dtype=double))
    table = truncate(law, 12).probs
    k = np.arange(11)
    for row, one in zip(table, r, strict=True):
        expected = scipy.stats.nbinom.pmf(k, one, 0.6)
        expected = np.append(expected, scipy.stats.nbinom.sf(10, one, 0.6))
        np.testing.assert_allclose(row.numpy(), expected, rtol=1e-10)


def warned(law, size):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        truncate(law, size)
    return any(issubclass(w.category, gengs.TruncationWarning) for w in caught)


@pytest.mark.parametrize("p", [0.01, 0.5, 0.7, 0.78, 0.8, 0.9, 0.9999])
@pytest.mark.parametrize("size", [2, 12, 80])
def test_a_warning_comes_exactly_where_half_the_mass_is_lost(p, size):
    some = torch.tensor([0.1, p], dtype=double)
    three = torch.tensor(3.0, dtype=double)
    assert warned(NegativeBinomial(three, probs=some), size) == (
        scipy.stats.nbinom.sf(size - 1, 3, 1 - p) > 0.5
    )
    assert warned(Geometric(1 - some), size) == (p**size > 0.5)
    # the element with the larger count is not the one with the larger p
    both = torch.tensor([40.0, 3.0], dtype=double)
    lost = scipy.stats.nbinom.sf(size - 1, both.numpy(), 1 - some.numpy())
    assert warned(NegativeBinomial(both, probs=some), size) == (lost.max() > 0.5)
