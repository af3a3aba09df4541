"""The tails of cut Poissons against scipy, below the cut and above it, and who uses them."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.stats
import torch
from torch.distributions import Independent, Poisson, kl_divergence

import gengs
from gengs import GenGS, MidCDF, midcdf_sample, truncate
from gengs.distributions.families import family_of
from gengs.distributions.poisson_tail import LARGEST_CUT, cut_tail, differentiable_cut_tail

double = torch.float64
RATES = torch.logspace(-6, 4, 401, dtype=double)
CUTS = [1, 2, 3, 11, 40, LARGEST_CUT]


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-6), (double, 1e-13)])
def test_tails_are_those_of_scipy(cut, dtype, tolerance):
    """Relative to the numbers that are added up: the tolerance is a few roundings."""
    rate = RATES.to(dtype)
    wide = rate.double().numpy()
    log = cut_tail(rate, cut, float(rate.max()))
    tail = scipy.stats.poisson.logsf(cut - 1, wide)
    before = scipy.stats.poisson.logpmf(cut - 1, wide)
    scale = 1 + np.abs((cut - 1) * np.log(wide)) + wide + cut * np.log(cut)
    good = np.isfinite(tail) & (tail > -700)  # further down scipy underflows
    for found, expected in ((log.before, before), (log.tail, tail), (log.growth, tail - before)):
        error = np.abs(found.double().numpy() - expected) / scale
        assert error[good].max() < tolerance
    assert torch.isfinite(torch.stack(log)).all()


@pytest.mark.parametrize("cut", CUTS)
def test_rates_below_the_cut_take_the_same_values_in_any_company(cut):
    below = RATES[cut >= RATES]
    alone = cut_tail(below, cut, float(below.max()))
    together = cut_tail(RATES, cut, float(RATES.max()))
    for one, other in zip(alone, together, strict=True):
        torch.testing.assert_close(other[: len(below)], one, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("cut", CUTS)
def test_the_differentiable_ones_are_the_same(cut):
    rate = RATES[RATES < 300]
    for one, other in zip(
        cut_tail(rate, cut, float(rate.max())), differentiable_cut_tail(rate, cut), strict=True
    ):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cut", CUTS)
def test_what_is_looked_up_is_as_good_as_the_series(cut):
    """Up to four times the cut, and at the ends of pieces; past it the series are taken."""
    ends = torch.arange(1, 4 * cut * 32, max(1, cut // 4)) / 32
    rate = torch.cat([ends.nextafter(torch.tensor(0.0)), ends, torch.tensor([1e-30, 1e-3])])
    looked_up = cut_tail(rate, cut, float(rate.max()))
    series = cut_tail(torch.cat([rate, torch.tensor([4.0 * cut])]), cut, 4.0 * cut)
    exact = cut_tail(rate.double(), cut, float(rate.max()))
    for name in ("growth", "tail"):
        right = getattr(exact, name)
        error = (getattr(looked_up, name) - right).abs().max()
        assert not torch.equal(getattr(looked_up, name), getattr(series, name)[:-1])
        assert error < 1.5 * (getattr(series, name)[:-1] - right).abs().max() + 3e-7


@pytest.mark.filterwarnings("ignore::gengs.TruncationWarning")
def test_rates_that_change_behind_autograds_back_are_seen_at_the_first_look():
    for factor in (50.0, 0.0):
        rate = torch.tensor([1.0, 2.0])
        law = truncate(Poisson(rate), 7)
        rate.data.mul_(factor)
        expected = truncate(Poisson(factor * torch.tensor([1.0, 2.0])), 7).logits
        torch.testing.assert_close(law.logits, expected)


def test_a_law_on_the_cpu_while_the_default_device_is_another():
    rate = torch.tensor([1.0, 2.0])
    with torch.device("meta"):  # a cut that nothing else here has looked up
        table = truncate(Poisson(rate), 58).logits
    torch.testing.assert_close(table, truncate(Poisson(rate.double()), 58).logits.float())


@pytest.mark.parametrize("dtype", [torch.float32, double])
def test_any_layout_of_memory_will_do(dtype):
    rate = torch.rand(5, 7, dtype=dtype).mul(30).t()
    whole = cut_tail(rate, 11, 30.0)
    flat = cut_tail(rate.reshape(-1), 11, 30.0)
    assert all(torch.equal(a.reshape(-1), b) for a, b in zip(whole, flat, strict=True))


@pytest.mark.filterwarnings("ignore::gengs.TruncationWarning")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (double, 1e-11)])
def test_the_table_and_its_gradient_above_the_cut(dtype, tolerance):
    rate = torch.logspace(-3, 3, 100, dtype=dtype, requires_grad=True)
    k, weight = torch.arange(12), torch.linspace(-1, 2, 12, dtype=dtype)
    table = truncate(Poisson(rate), 12).logits
    wide = rate.detach().double().requires_grad_()
    expected = family_of(Poisson(wide)).clipped_log_pmf(k, True)
    large = 1 + wide.detach().unsqueeze(-1)  # what is added up is as large as the rate
    assert ((table.double() - expected).abs() / large).max() < tolerance
    (found,) = torch.autograd.grad((table.exp() * weight).sum(), rate)
    (right,) = torch.autograd.grad((expected.exp() * weight.double()).sum(), wide)
    torch.testing.assert_close(found.double(), right, rtol=50 * tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore::gengs.TruncationWarning")
def test_clipped_draws_move_by_half_the_slope_of_their_tail():
    rate = torch.tensor([9.0, 30.0, 200.0], dtype=double, requires_grad=True)
    torch.manual_seed(0)
    z = midcdf_sample(truncate(Poisson(rate.expand(1000, 3)), 8))
    assert (z[:, 1:] == 7).any()
    (found,) = torch.autograd.grad(z.sum(), rate)
    tail = scipy.stats.poisson.sf(6, rate.detach().numpy())
    at_end = scipy.stats.poisson.pmf(6, rate.detach().numpy()) / tail / 2
    inside = (1 + z / rate).detach() / 2
    expected = torch.where(z < 7, inside, torch.tensor(at_end)).sum(0)
    torch.testing.assert_close(found, expected)


@pytest.mark.filterwarnings("ignore::gengs.TruncationWarning")
def test_the_tails_are_made_once_for_draw_table_and_divergence(monkeypatch):
    from gengs.distributions import truncated

    made = []

    def counting(*inputs):
        made.append(inputs)
        return cut_tail(*inputs)

    prior = truncate(Poisson(torch.tensor(2.0)), 12)
    prior.make_table()
    monkeypatch.setattr(truncated, "cut_tail", counting)
    for estimator in (MidCDF(), GenGS(0.5)):
        made.clear()
        rate = torch.tensor([[0.5, 3.0, 40.0]], requires_grad=True)
        q = truncate(Poisson(rate), 12)
        cost = estimator.expect(lambda z: z.square().sum(-1), Independent(q, 1))
        (cost + kl_divergence(q, prior).sum(-1)).sum().backward()
        assert len(made) == 1
        assert torch.isfinite(rate.grad).all()


def test_rates_that_were_changed_in_place_are_looked_at_again():
    rate = torch.tensor([1.0, 2.0])
    prior = truncate(Poisson(torch.tensor(2.0)), 12)
    q = truncate(Poisson(rate), 12)
    before = kl_divergence(q, prior)
    rate.add_(3.0)
    after = kl_divergence(q, prior)
    torch.testing.assert_close(after, kl_divergence(truncate(Poisson(rate), 12), prior))
    assert not torch.allclose(before, after)


@pytest.mark.parametrize("size", [1, 2, 12, 65, 80])
@pytest.mark.parametrize("rate", [1e-3, 0.4, 11.2, 11.5, 11.8, 63.0, 66.0, 2000.0])
def test_a_warning_comes_exactly_where_half_the_mass_is_lost(size, rate):
    lost = scipy.stats.poisson.sf(size - 1, rate)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        truncate(Poisson(torch.tensor([0.1, rate], dtype=double)), size)
    warned = [w for w in caught if issubclass(w.category, gengs.TruncationWarning)]
    assert len(warned) == (lost > 0.5 and size > 1)
    assert all(w.filename == __file__ for w in warned)


# ----------------------------------------------------------------- whoever asked first, and when


def prior():
    return truncate(Poisson(torch.tensor(2.0)), 12)


@pytest.mark.parametrize("first", [lambda q: kl_divergence(q, prior()), midcdf_sample])
@pytest.mark.parametrize(
    "then",
    [
        lambda q: kl_divergence(q, prior()),
        midcdf_sample,
        lambda q: q.mean,
        lambda q: GenGS(0.5).expect(lambda z: z.square(), q),
    ],
)
def test_a_law_that_was_asked_in_inference_mode_can_be_trained(first, then):
    rate = torch.tensor([1.0, 3.0], requires_grad=True)
    q = truncate(Poisson(rate), 12)
    with torch.inference_mode():
        first(q)
    then(q).sum().backward()
    assert torch.isfinite(rate.grad).all()


def _by_data(q, rate):
    rate.data.add_(3.0)
    return q


def _by_numpy(q, rate):
    rate.numpy()[:] += 3.0
    return q


def _copied(q, rate):
    rate.add_(1.0)
    kl_divergence(q, prior())
    rate.add_(1.0)
    return copy.deepcopy(q)


def _pickled_and_changed(q, rate):
    q = pickle.loads(pickle.dumps(q))  # noqa: S301  # our own
    q.source.rate.add_(3.0)
    return q


@pytest.mark.parametrize("change", [_by_data, _by_numpy, _copied])
@pytest.mark.parametrize("inference", [False, True])
def test_however_the_rates_are_changed_a_law_agrees_with_itself(change, inference):
    with torch.inference_mode(inference):
        rate = torch.tensor([1.0, 2.0])
        q = truncate(Poisson(rate), 12)
        midcdf_sample(q)
        q = change(q, rate)
        closed = kl_divergence(q, prior())
        probs = q.probs
        torch.testing.assert_close(probs.sum(-1), torch.ones(2))
        by_table = torch.special.xlogy(probs, probs / prior().probs).sum(-1)
        torch.testing.assert_close(closed, by_table, rtol=1e-4, atol=1e-5)


def test_a_pickled_law_follows_its_own_rates():
    q = truncate(Poisson(torch.tensor([1.0, 2.0])), 12)
    kl_divergence(q, prior())
    q = _pickled_and_changed(q, None)
    right = kl_divergence(truncate(Poisson(torch.tensor([4.0, 5.0])), 12), prior())
    torch.testing.assert_close(kl_divergence(q, prior()), right)


def test_half_precision_is_looked_at_again_too():
    rate = torch.full((100,), 2.0, dtype=torch.bfloat16, requires_grad=True)
    q = truncate(Poisson(rate), 12)
    midcdf_sample(q)
    with torch.no_grad():
        rate.fill_(60.0)
    z = midcdf_sample(q)
    assert (z == 11).all()
    (grad,) = torch.autograd.grad(z.sum(), rate)
    assert (grad < 1e-6).all()


@pytest.mark.parametrize("size", [2, 12, 65])
def test_tiny_rates_have_a_gradient(size):
    rate = torch.tensor([1e-38, 1e-37, 1e-30, 1e-10], requires_grad=True)
    (grad,) = torch.autograd.grad(truncate(Poisson(rate), size).mean.sum(), rate)
    torch.testing.assert_close(grad, torch.ones(4), rtol=1e-4, atol=0)


def test_a_divergence_follows_the_table_that_somebody_asked_for():
    q = truncate(Poisson(torch.tensor([1.0, 2.0], requires_grad=True)), 12)
    logits = q.logits
    (grad,) = torch.autograd.grad(kl_divergence(q, prior()).sum(), logits)
    assert grad.shape == (2, 12)


@pytest.mark.parametrize("tolerance", [1e-10, 1e-14, 1e-16])
def test_a_window_that_was_just_chosen_draws_no_warning(tolerance):
    with warnings.catch_warnings():
        warnings.simplefilter("error", gengs.TruncationWarning)
        for rate in torch.linspace(0.05, 12, 60, dtype=double):
            truncate(Poisson(rate), tolerance=tolerance)


def test_nobody_changes_the_atoms_of_others():
    from gengs.models.latents import CountLatents

    latents = CountLatents(Poisson(2.0), level=12)
    q, p = latents(torch.zeros(4, 3))
    q.enumerate_support(expand=False).mul_(10)
    assert p.mean < 2


def test_a_model_moves_while_saved_tensors_go_elsewhere():
    from gengs.models.latents import CountLatents

    latents = CountLatents(Poisson(torch.tensor(2.0)), level=12)
    with torch.autograd.graph.save_on_cpu():
        latents.to(double)
    assert latents.prior.mean.dtype == double
