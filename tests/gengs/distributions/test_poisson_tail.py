"""The tails of cut Poissons against scipy, below the cut and above it, and who uses them."""

import warnings

import numpy as np
import pytest
import scipy.stats
import torch
from torch.distributions import Poisson, kl_divergence

import gengs
from gengs import GenGS, law_of, rsample, truncate
from gengs.laws.poisson import log_poisson_tail

double = torch.float64
RATES = torch.logspace(-6, 4, 401, dtype=double)


def test_a_law_on_the_cpu_while_the_default_device_is_another():
    rate = torch.tensor([1.0, 2.0])
    with torch.device("meta"):  # a cut that nothing else here has looked up
        table = truncate(Poisson(rate), 58).logits
    torch.testing.assert_close(table, truncate(Poisson(rate.double()), 58).logits.float())


@pytest.mark.filterwarnings("ignore::gengs.TruncationWarning")
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-5), (double, 1e-11)])
def test_the_table_and_its_gradient_above_the_cut(dtype, tolerance):
    rate = torch.logspace(-3, 3, 100, dtype=dtype, requires_grad=True)
    k, weight = torch.arange(12), torch.linspace(-1, 2, 12, dtype=dtype)
    table = truncate(Poisson(rate), 12).logits
    wide = rate.detach().double().requires_grad_()
    family = law_of(Poisson(wide))
    expected = torch.cat([family.log_pmf(k[:-1]), family.log_at_least(k[-1:])], -1)
    large = 1 + wide.detach().unsqueeze(-1)  # what is added up is as large as the rate
    assert ((table.double() - expected).abs() / large).max() < tolerance
    (found,) = torch.autograd.grad((table.exp() * weight).sum(), rate)
    (right,) = torch.autograd.grad((expected.exp() * weight.double()).sum(), wide)
    torch.testing.assert_close(found.double(), right, rtol=50 * tolerance, atol=tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 2e-7), (double, 3e-12)])
@pytest.mark.parametrize("last", [*range(1, 9), 11, 20, 29, 45, 63, 64])
def test_a_tail_has_all_the_digits_of_its_type(last, dtype, tolerance):
    # where one formula takes over from the other the tail is 1e-8 or 1e-4
    rate = torch.logspace(-6, 3, 3000, dtype=double).to(dtype)
    found = truncate(Poisson(rate), last + 1, validate_args=False).logits[:, -1].double().numpy()
    right = scipy.stats.poisson.logsf(last - 1, rate.double().numpy())
    with np.errstate(invalid="ignore"):  # -inf of both
        error = np.abs(found - right) / np.maximum(1, np.abs(right))
    assert error[right > -600].max() < tolerance  # below, scipy's own are subnormal


@pytest.mark.filterwarnings("ignore::gengs.TruncationWarning")
def test_clipped_draws_move_by_half_the_slope_of_their_tail():
    rate = torch.tensor([9.0, 30.0, 200.0], dtype=double, requires_grad=True)
    torch.manual_seed(0)
    z = rsample(truncate(Poisson(rate.expand(1000, 3)), 8))
    assert (z[:, 1:] == 7).any()
    (found,) = torch.autograd.grad(z.sum(), rate)
    tail = scipy.stats.poisson.sf(6, rate.detach().numpy())
    at_end = scipy.stats.poisson.pmf(6, rate.detach().numpy()) / tail / 2
    inside = (1 + z / rate).detach() / 2
    expected = torch.where(z < 7, inside, torch.tensor(at_end)).sum(0)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("size", [1, 2, 12, 65, 80])
@pytest.mark.parametrize("rate", [1e-3, 0.4, 11.2, 11.5, 11.8, 63.0, 66.0, 2000.0])
def test_a_warning_comes_exactly_where_half_the_mass_is_lost(size, rate):
    lost = scipy.stats.poisson.sf(size - 1, rate)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        truncate(Poisson(torch.tensor([0.1, rate], dtype=double)), size)
    warned = [w for w in caught if issubclass(w.category, gengs.TruncationWarning)]
    assert len(warned) == (lost > 0.5)
    assert all(w.filename == __file__ for w in warned)


# ----------------------------------------------------------------- whoever asked first, and when


def prior():
    return truncate(Poisson(torch.tensor(2.0)), 12)


@pytest.mark.parametrize("first", [lambda q: kl_divergence(q, prior()), rsample])
@pytest.mark.parametrize(
    "then",
    [
        lambda q: kl_divergence(q, prior()),
        rsample,
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


@pytest.mark.parametrize("size", [2, 12, 65])
def test_tiny_rates_have_a_gradient(size):
    rate = torch.tensor([1e-38, 1e-37, 1e-30, 1e-10], requires_grad=True)
    (grad,) = torch.autograd.grad(truncate(Poisson(rate), size).mean.sum(), rate)
    torch.testing.assert_close(grad, torch.ones(4), rtol=1e-4, atol=0)


@pytest.mark.parametrize("tolerance", [1e-10, 1e-14, 1e-16])
def test_a_window_that_was_just_chosen_draws_no_warning(tolerance):
    with warnings.catch_warnings():
        warnings.simplefilter("error", gengs.TruncationWarning)
        for rate in torch.linspace(0.05, 12, 60, dtype=double):
            truncate(Poisson(rate), tolerance=tolerance)


def test_nobody_changes_the_atoms_of_others():
    from gengs.nn.count_latents import CountLatents

    latents = CountLatents(Poisson(2.0), level=12)
    q, p = latents(torch.zeros(4, 3))
    q.enumerate_support(expand=False).mul_(10)
    assert p.mean < 2


def test_a_model_moves_while_saved_tensors_go_elsewhere():
    from gengs.nn.count_latents import CountLatents

    latents = CountLatents(Poisson(torch.tensor(2.0)), level=12)
    with torch.autograd.graph.save_on_cpu():
        latents.to(double)
    assert latents.prior.mean.dtype == double


@pytest.mark.parametrize("compiling", [True, False], ids=["compiled", "eager"])
@pytest.mark.parametrize("upper", [True, False], ids=["at least", "less than"])
def test_a_tail_at_a_whole_rate_has_its_derivative(upper, compiling, monkeypatch):
    """The next term is as large as the last one: 1 - ratio is 0, in a branch that is not taken."""
    # a compiler differentiates that branch, too
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: compiling)
    rate = torch.arange(2.0, 50.0, dtype=double, requires_grad=True)
    a = rate.detach() + (-1 if upper else 1)
    (slope,) = torch.autograd.grad(log_poisson_tail(a, rate, upper).exp().sum(), rate)
    # d/dλ P(X >= a) = P(X = a - 1)
    right = Poisson(rate.detach()).log_prob(a - 1).exp()
    torch.testing.assert_close(slope, right if upper else -right, rtol=1e-9, atol=0.0)


def probs_of(size):
    return lambda rate: (
        truncate(Poisson(rate, validate_args=False), size, validate_args=False).probs
    )


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own
@pytest.mark.parametrize("size", [2, 12, 65])
def test_forward_mode_inside_forward_mode(size):
    """torch would drop the second derivative of a node with a jvp, without a word."""
    rate = torch.tensor(3.0, dtype=double)
    found = torch.func.jacfwd(torch.func.jacfwd(probs_of(size)))(rate)
    expected = torch.func.jacrev(torch.func.jacrev(probs_of(size)))(rate)
    torch.testing.assert_close(found, expected)
    assert found.abs().max() > 1e-2


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # torch's own
def test_forward_mode_inside_forward_mode_of_a_long_tail_says_no():
    with pytest.raises(NotImplementedError, match="forward AD"):
        torch.func.jacfwd(torch.func.jacfwd(probs_of(80)))(torch.tensor(3.0))


@pytest.mark.parametrize("size", [2, 6, 80])
def test_derivatives_at_a_rate_of_zero(size):
    """log p(0) = -λ there as everywhere; a second derivative is a number."""
    rate = torch.tensor(0.0, dtype=double, requires_grad=True)
    (slope,) = torch.autograd.grad(truncate(Poisson(rate), size).logits[0], rate)
    assert slope == -1
    second = torch.func.jacrev(torch.func.jacrev(probs_of(size)))(rate.detach())
    assert second.isfinite().all()


@pytest.mark.parametrize(("low", "size"), [(2.5, 5), (0, 0), (torch.tensor([0.5]), 3)])
def test_a_window_of_no_integers(low, size):
    with pytest.raises(ValueError, match="one integer or more"):
        truncate(Poisson(5.0), window=gengs.Window(low, size, allowed=0.1))


def test_a_number_is_no_window():
    with pytest.raises(TypeError, match="truncate expects a Window"):
        truncate(Poisson(5.0), window=12)


@pytest.mark.parametrize("size", [64, 65, 66])
def test_both_formulas_of_the_tail(size):
    rate = torch.cat([torch.logspace(-3, 3.5, 200, dtype=double)])
    found = law_of(Poisson(rate)).log_clipped(torch.arange(size), 0)[:, -1]
    expected = scipy.stats.poisson.logsf(size - 2, rate.numpy())
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("high", [-2, 0, 3])
def test_windows_that_begin_before_zero(high):
    rate = torch.tensor([0.5, 4.0], dtype=double, requires_grad=True)
    law = truncate(Poisson(rate), low=-5, high=high, validate_args=False)
    k = np.arange(-5, high)
    for row, r in zip(law.probs.detach(), rate.tolist(), strict=True):
        np.testing.assert_allclose(row[:-1], scipy.stats.poisson.pmf(k, r), rtol=1e-12)
        np.testing.assert_allclose(row[-1], scipy.stats.poisson.sf(high - 1, r), rtol=1e-9)
    (slope,) = torch.autograd.grad(law.mean.sum(), rate)  # of min(X, high): P(X < high)
    np.testing.assert_allclose(slope, scipy.stats.poisson.cdf(high - 1, rate.detach()), atol=1e-12)
