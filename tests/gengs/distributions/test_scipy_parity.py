"""The count families against scipy: PMF, CDF, moments, entropy and both tails, over wide grids."""

import numpy as np
import pytest
import scipy.stats
import torch
from torch.distributions import Binomial, Geometric, NegativeBinomial, Poisson

import gengs
from gengs import law_of

PROBS = [1e-6, 1e-3, 0.1, 0.5, 0.9, 0.999, 1 - 1e-6]
GRID = (
    [("poisson", (rate,)) for rate in (1e-6, 1e-3, 0.1, 1, 7.5, 40, 63.5, 1e3, 1e4, 1e5, 1e6)]
    + [("geometric", (p,)) for p in PROBS]
    + [("binomial", (n, p)) for n in (1, 10, 1000, 1_000_000) for p in PROBS]
    + [("negative-binomial", (r, p)) for r in (0.01, 1, 30, 1e4) for p in PROBS[:-1]]
)
grid = pytest.mark.parametrize(("name", "parameters"), GRID, ids=str)
dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)

# of the PMF, relative: promised for float32, and what float64 leaves of lgamma(1e7)
ACCURACY = {torch.float32: 1e-4, torch.float64: 1e-7}


def both(name, parameters, dtype, logits=False):
    """Our family and scipy's law, with the parameters as rounded to ``dtype``."""
    tensors = [torch.tensor(float(value), dtype=dtype) for value in parameters]
    exact = [tensor.double().item() for tensor in tensors]
    if name == "poisson":
        law, reference = Poisson(*tensors), scipy.stats.poisson(*exact)
    elif name == "geometric":
        law, reference = Geometric(*tensors), scipy.stats.nbinom(1, *exact)
    elif name == "binomial":
        law, reference = Binomial(*tensors), scipy.stats.binom(*exact)
    else:
        # scipy counts with the chance of the other outcome, which 1 - p gives exactly in float64
        law, reference = NegativeBinomial(*tensors), scipy.stats.nbinom(exact[0], 1 - exact[1])
    return law_of(law), reference


def places(reference):
    """Integers all over the bulk and far into both tails."""
    levels = [1e-12, 1e-6, 1e-3, 0.05, 0.3, 0.5, 0.8, 0.99, 1 - 1e-6, 1 - 1e-12]
    k = np.unique(np.concatenate([reference.ppf(levels), reference.ppf(levels) + 1, [0, 1, 5]]))
    return torch.from_numpy(np.clip(k[np.isfinite(k)], 0, None)).long()


@grid
@dtypes
def test_pmf(name, parameters, dtype):
    family, reference = both(name, parameters, dtype)
    k = places(reference)
    log_pmf = family.log_pmf(k).double()
    wanted = torch.from_numpy(reference.logpmf(k.numpy()))
    likely = wanted > -30
    # a difference of logarithms is a relative difference of the PMF
    assert (log_pmf - wanted)[likely].abs().max() < ACCURACY[dtype]
    torch.testing.assert_close(log_pmf, wanted, rtol=1e-5, atol=ACCURACY[dtype])


@grid
@dtypes
def test_both_tails(name, parameters, dtype):
    family, reference = both(name, parameters, dtype)
    k = places(reference)
    above, below = reference.logsf(k - 1), reference.logcdf(k)
    if name == "poisson" and parameters[0] <= 64:
        # scipy's own logsf underflows or cancels sooner; the sum of terms does not
        terms = reference.logpmf(k[:, None].numpy() + np.arange(400))
        above = np.where(k > 0, scipy.special.logsumexp(terms, axis=-1), above)
    for ours, wanted in ((family.log_at_least(k), above), (family.log_at_most(k), below)):
        theirs = torch.from_numpy(wanted)
        told = (theirs > -600) & (theirs.abs() > 1e-300)
        torch.testing.assert_close(
            ours.double()[told], theirs[told], rtol=1e-5, atol=10 * ACCURACY[dtype]
        )
    middle = k[len(k) // 2 :][:1]  # one alone is as one of many
    assert family.log_at_least(middle).item() == family.log_at_least(k)[len(k) // 2].item()
    assert family.log_at_least(torch.tensor([0])).item() == 0
    assert family.log_at_most(torch.tensor([-1])).item() == -torch.inf


@grid
def test_lumped_end_atoms_hold_the_tails(name, parameters):
    family, reference = both(name, parameters, torch.float64)
    low, high = int(reference.ppf(0.2)), int(reference.ppf(0.7)) + 1
    q = gengs.truncate(family.q, low=low, high=high)
    assert q.probs[0].item() == pytest.approx(reference.cdf(low), rel=1e-7)
    assert q.probs[-1].item() == pytest.approx(reference.sf(high - 1), rel=1e-7)
    assert q.probs.sum().item() == pytest.approx(1, abs=1e-7)
    lost = reference.cdf(low - 1) + reference.sf(high)
    assert q.certificate.lost_mass.item() == pytest.approx(lost, rel=1e-6, abs=1e-12)


def test_lumped_end_atoms_of_a_cut_in_float32():
    for rate in (0.5, 5.0, 30.0, 100.0, 1e4):
        q = gengs.truncate(Poisson(torch.tensor(rate)), level=int(rate) + 3)
        wanted = scipy.stats.poisson(rate).sf(int(rate) + 1)
        assert q.probs[-1].item() == pytest.approx(wanted, rel=1e-4)


MOMENTS = [
    case
    for case in GRID
    if np.prod(case[1]) < 2e4 and not (case[0] == "geometric" and case[1][0] < 1e-2)
    if not (case[0] == "negative-binomial" and case[1][0] / (1 - case[1][1]) > 1e4)
]


@pytest.mark.parametrize(("name", "parameters"), MOMENTS, ids=str)
def test_moments_entropy_and_cdf_of_a_tight_cut(name, parameters):
    family, reference = both(name, parameters, torch.float64)
    q = gengs.truncate(family.q, tolerance=1e-13)
    assert q.mean.item() == pytest.approx(reference.mean(), rel=1e-6, abs=1e-9)
    assert q.variance.item() == pytest.approx(reference.var(), rel=1e-5, abs=1e-8)
    atoms = q.atoms.numpy()
    some = q.atoms[:: max(1, q.num_atoms // 50)]
    np.testing.assert_allclose(q.cdf(some), reference.cdf(some), rtol=1e-7, atol=1e-9)
    terms = scipy.stats.entropy(reference.pmf(atoms) / reference.pmf(atoms).sum())
    assert q.entropy().item() == pytest.approx(terms, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("rates", [(1e-3, 2.0), (3.0, 1.5), (50.0, 80.0), (3e3, 2e3), (0.0, 4.0)])
def test_skellam_pmf_and_tails(rates):
    up, down = (torch.tensor(rate, dtype=torch.float64) for rate in rates)
    law = gengs.Skellam(up, down)
    if rates[0] == 0:  # scipy needs positive rates; without a first count it is minus a Poisson
        k = torch.arange(-20, 3)
        wanted = scipy.stats.poisson(rates[1]).logpmf(-k.numpy())
    else:
        spread = int(6 * sum(rates) ** 0.5) + 3
        middle = int(rates[0] - rates[1])
        k = torch.arange(middle - spread, middle + spread, max(1, spread // 20))
        # scipy's PMF is a difference of non-central chi-squares; a convolution is exact
        j = np.arange(0, int(max(rates) + 12 * max(rates) ** 0.5) + 40)
        first, second = (scipy.stats.poisson(rate).logpmf for rate in rates)
        wanted = np.array([scipy.special.logsumexp(first(j + i) + second(j)) for i in k.tolist()])
    log_prob = law.log_prob(k.double())
    torch.testing.assert_close(log_prob, torch.from_numpy(wanted), rtol=1e-9, atol=1e-9)


def test_skellam_tails_against_scipy():
    family = law_of(gengs.Skellam(torch.tensor(3.0).double(), torch.tensor(1.5).double()))
    reference = scipy.stats.skellam(3.0, 1.5)
    for k in (-6, -1, 0, 2, 5, 11):
        at = torch.tensor([k])
        assert family.log_at_least(at).exp().item() == pytest.approx(reference.sf(k - 1), rel=1e-7)
        assert family.log_at_most(at).exp().item() == pytest.approx(reference.cdf(k), rel=1e-7)
