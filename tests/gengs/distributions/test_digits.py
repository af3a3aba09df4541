"""Large counts in float64 keep their digits: log-gammas would cancel."""

import mpmath
import pytest
import torch
from torch.distributions import Binomial, NegativeBinomial, Poisson

import gengs

mpmath.mp.dps = 50


def double(x):
    return torch.tensor(x, dtype=torch.float64)


def binomial(k, n, p):
    p = mpmath.mpf(p)
    return mpmath.log(mpmath.binomial(n, k)) + k * mpmath.log(p) + (n - k) * mpmath.log1p(-p)


def negative_binomial(k, r, p):
    p = mpmath.mpf(p)
    return mpmath.log(mpmath.binomial(r + k - 1, k)) + k * mpmath.log(p) + r * mpmath.log1p(-p)


def poisson(k, rate):
    return k * mpmath.log(rate) - rate - mpmath.loggamma(k + 1)


LAWS = {
    "poisson 1e7": (lambda: Poisson(double(1e7)), lambda k: poisson(k, 1e7), 1e7, 3e3),
    "poisson 300": (lambda: Poisson(double(300.0)), lambda k: poisson(k, 300), 300, 17),
    "binomial": (
        lambda: Binomial(double(1e7), double(0.3)),
        lambda k: binomial(k, 10**7, 0.3),
        3e6,
        1.4e3,
    ),
    "rare successes": (
        lambda: Binomial(double(1e8), double(1e-8)),
        lambda k: binomial(k, 10**8, 1e-8),
        1,
        1,
    ),
    "negative binomial": (
        lambda: NegativeBinomial(double(1e6), double(0.9)),
        lambda k: negative_binomial(k, 10**6, 0.9),
        9e6,
        1e4,
    ),
    "few beside many": (
        lambda: NegativeBinomial(double(1e5), double(1e-6)),
        lambda k: negative_binomial(k, 10**5, 1e-6),
        1,
        1,
    ),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_log_pmf(name):
    build, exact, centre, spread = LAWS[name]
    record = gengs.law_of(build())
    for off in (-6, -1, 0, 0.5, 3, 7):
        k = max(round(centre + off * spread), 0)
        found = record.log_pmf(double([float(k)])).item()
        assert found == pytest.approx(float(exact(k)), rel=1e-13, abs=2e-11), k


@pytest.mark.parametrize("name", LAWS)
def test_a_table_sums_to_one(name):
    table = gengs.truncate(LAWS[name][0](), tolerance=1e-9)
    assert table.probs.sum().item() == pytest.approx(1, abs=1e-10)


def test_the_tail_of_few_beside_many():
    """P(X >= 4) is 4e-6: the complement of a sum whose terms are right to all digits."""
    table = gengs.truncate(LAWS["few beside many"][0](), 5)
    wanted = mpmath.log(mpmath.betainc(4, 10**5, 0, mpmath.mpf(1e-6), regularized=True))
    assert table.logits[-1].item() == pytest.approx(float(wanted), abs=1e-9)


def test_derivatives():
    k = double([3e5, 1e6, 1.001e6, 2e6])
    rate = double(1e6).requires_grad_()
    slopes = [torch.autograd.grad(gengs.law_of(Poisson(rate)).log_pmf(x[None]), rate)[0] for x in k]
    torch.testing.assert_close(torch.stack(slopes), k / 1e6 - 1, rtol=1e-12, atol=1e-15)
    n, p = double(1e6).requires_grad_(), double(0.3).requires_grad_()
    for x in (1e3, 2.9e5, 3.01e5):
        value = gengs.law_of(Binomial(n, p)).log_pmf(double([x]))
        in_n, in_p = torch.autograd.grad(value, (n, p))
        torch.testing.assert_close(in_p, (x / p - (1e6 - x) / (1 - p)).detach())
        wanted = torch.digamma(n + 1) - torch.digamma(n - x + 1) + torch.log1p(-p)
        torch.testing.assert_close(in_n, wanted.detach(), rtol=1e-8, atol=1e-12)


def test_the_ends():
    law = Binomial(double(2000.0), double([0.0, 1.0, 0.5]))
    found = gengs.law_of(law).log_pmf(double([0.0, 1000.0, 2000.0]))
    assert found[0].tolist() == [0, -torch.inf, -torch.inf]
    assert found[1].tolist() == [-torch.inf, -torch.inf, 0]
    assert found[2, 0].item() == pytest.approx(2000 * torch.tensor(0.5).log().item(), rel=1e-7)
