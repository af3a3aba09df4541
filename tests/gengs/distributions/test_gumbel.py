"""Gumbel noise, its rare values, and noise conditioned on the winner."""

import math
import subprocess
import sys

import pytest
import scipy.stats
import torch
from frequencies import FALSE_ALARM

import gengs
from gengs.estimators.gumbel_rao import conditional_gumbel
from gengs.numerics.gumbel import log_exponential
from gengs.numerics.inverse_cdf import inverse_cdf_index

dtypes = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


@dtypes
def test_noise_is_gumbel(dtype, generator):
    # Kolmogorov-Smirnov at a false-alarm rate of 1e-6: finds a CDF that is off by .006
    noise = -log_exponential(torch.Size([200_000]), dtype, generator=generator)
    assert scipy.stats.kstest(noise.numpy(), "gumbel_r").pvalue > FALSE_ALARM


@dtypes
def test_noise_is_finite_and_negated_log_exponential(dtype):
    shape = torch.Size([1001])
    one, other = (torch.Generator().manual_seed(3) for _ in range(2))
    noise = -log_exponential(shape, dtype, generator=one)
    assert torch.isfinite(noise).all()
    assert torch.equal(noise, -log_exponential(shape, dtype, generator=other))


@dtypes
@pytest.mark.parametrize("end", ["lowest", "highest"])
def test_the_extreme_uniforms_have_finite_noise(end, dtype, monkeypatch):
    """The smallest and the largest number a generator has, fed by hand: u is never 0 and never 1.

    They come once in 2**31 or more draws: no test that draws would see them.
    """
    one = 1 - torch.finfo(dtype).eps / 2

    def word(self, low=0, high=None, generator=None):
        top = torch.iinfo(self.dtype).max if high is None else high - 1
        return self.fill_(low if end == "lowest" else top)

    def fraction(self, low=0.0, high=1.0, generator=None):
        return self.fill_(low if end == "lowest" else low + (high - low) * one)

    def fractions(*size, generator=None, **options):
        return torch.full(size[0], 0.0 if end == "lowest" else one, **options)

    def words(low, high, size, generator=None, **options):
        return torch.full(size, low if end == "lowest" else high - 1, **options)

    monkeypatch.setattr(torch.Tensor, "random_", word)
    monkeypatch.setattr(torch.Tensor, "uniform_", fraction)
    monkeypatch.setattr(torch, "rand", fractions)
    monkeypatch.setattr(torch, "randint", words)
    noise = -log_exponential(torch.Size([5]), dtype)
    assert noise.isfinite().all() and (noise == noise[0]).all()
    # the ends reach atoms of probability 1e-9, and are as far out as the steps of u allow
    assert (20 < noise[0] < 60) if end == "lowest" else (-4 < noise[0] < -2.5)
    if end == "lowest" and dtype == torch.float32:  # in the middle of its cell of 2**-31
        torch.testing.assert_close(noise[0].item(), 32 * math.log(2), rtol=1e-6, atol=0)


@dtypes
@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 5), (0,), (4, 0), (2, 3, 1)], ids=str)
def test_odd_and_empty_sizes(shape, dtype):
    noise = -log_exponential(torch.Size(shape), dtype)
    assert noise.shape == shape
    assert noise.dtype == dtype
    again = -log_exponential(torch.Size(shape), dtype)
    assert shape.count(0) or not torch.equal(noise, again)


def test_same_seed_same_noise():
    def draw(seed):
        return -log_exponential(torch.Size([9]), generator=torch.Generator().manual_seed(seed))

    assert torch.equal(draw(1), draw(1))
    assert not torch.equal(draw(1), draw(2))


def test_global_seed_reaches_the_noise():
    torch.manual_seed(8)
    first = -log_exponential(torch.Size([9]))
    torch.manual_seed(8)
    assert torch.equal(first, -log_exponential(torch.Size([9])))


def test_half_precision_noise_is_refused():
    with pytest.raises(TypeError, match="float32 or float64"):
        log_exponential(torch.Size([3]), torch.bfloat16)


def assert_poisson(count, expected):
    """Two-sided test of a rare event's count; false-alarm rate 1e-6."""
    law = scipy.stats.poisson(expected)
    low, high = law.ppf(FALSE_ALARM / 2), law.isf(FALSE_ALARM / 2)
    assert low <= count <= high, f"{count} draws of the rare atom, expected about {expected:.0f}"


@pytest.mark.parametrize("rare", [1e-6, pytest.param(1e-7, marks=pytest.mark.slow)])
def test_rare_atom_wins_at_its_rate(rare, generator):
    # 30 wins of the rare atom are expected, 8 to 62 accepted: a sampler that bars it (a clamped
    # uniform), or draws it at less than a seventh or more than three times its rate, is found.
    # The rare one of two atoms wins where log rare + g > log(1 - rare) + g'.
    margin = math.log1p(-rare) - math.log(rare)
    size = torch.Size([1_000_000])
    wins, rounds = 0, round(30 / rare / size[0])
    for _ in range(rounds):
        difference = -log_exponential(size, generator=generator)
        difference -= -log_exponential(size, generator=generator)
        wins += int((difference > margin).sum())
    assert_poisson(wins, 30)


def test_rare_atom_is_drawn_by_a_finite_law_at_its_rate():
    # 30 draws are expected, as above
    q = gengs.Finite(torch.arange(2), probs=torch.tensor([1.0, 1e-6]))
    assert_poisson(int(q.sample((30_000_000,)).sum()), 30)


def test_inverse_cdf_finds_an_atom_of_probability_1e_minus_12():
    probs = torch.tensor([0.5, 1e-12, 0.5 - 1e-12], dtype=torch.float64)
    uniforms = 0.5 + torch.tensor([-1e-12, 0.2e-12, 0.8e-12, 2e-12], dtype=torch.float64)
    index = inverse_cdf_index(probs, torch.Size([4]), uniforms=uniforms)
    assert index.tolist() == [0, 1, 1, 2]


def test_inverse_cdf_passes_impossible_atoms_by_at_both_ends():
    probs = torch.tensor([0.0, 0.3, 0.0, 0.7, 0.0])
    ends = torch.tensor([0.0, 1.0], dtype=torch.float64)
    uniforms = torch.stack([ends[0], torch.nextafter(ends[1], ends[0])])
    assert inverse_cdf_index(probs, torch.Size([2]), uniforms=uniforms).tolist() == [1, 3]


# --------------------------------------------------------------------------- given the winner

LOGITS = torch.tensor([0.5, -1.0, 0.2, -3.0]).log_softmax(-1)


def test_winner_wins_always():
    winner = torch.randint(4, (50_000,))
    perturbed = conditional_gumbel(LOGITS, winner)
    assert torch.equal(perturbed.argmax(-1), winner)


@pytest.mark.parametrize("k", range(4))
def test_over_random_winners_the_noise_is_unconditional(k):
    # z̃ given b ~ π is z = log π + g; Kolmogorov-Smirnov at 1e-6 finds a CDF that is off by .01
    winner = gengs.Finite(torch.arange(4), logits=LOGITS).sample_index((100_000,))
    perturbed = conditional_gumbel(LOGITS, winner)
    assert scipy.stats.kstest(perturbed[:, k] - LOGITS[k], "gumbel_r").pvalue > FALSE_ALARM


def test_impossible_atom_given_another_winner():
    logits = torch.tensor([0.0, -torch.inf, 0.0], requires_grad=True)
    normalised = logits - math.log(2)
    perturbed = conditional_gumbel(normalised, torch.tensor([0, 2]))
    assert (perturbed[:, 1] == -torch.inf).all()
    perturbed[:, [0, 2]].sum().backward()
    assert torch.isfinite(logits.grad).all()


def test_gradient_given_the_winner():
    winner = torch.tensor([0, 2, 3])

    def perturbed(logits):
        normalised = logits.log_softmax(-1)
        torch.manual_seed(2)
        return conditional_gumbel(normalised, winner)

    logits = LOGITS.double().requires_grad_()
    assert torch.autograd.gradcheck(perturbed, logits)
    assert torch.autograd.gradgradcheck(perturbed, logits)


def test_noise_that_was_first_asked_for_on_another_device():
    """In a process of its own: what is kept between calls is kept for all of it."""
    program = """
import torch, gengs
from gengs.numerics.gumbel import log_exponential
with torch.device("meta"):
    assert log_exponential(torch.Size([3])).device.type in ("meta", "cpu")
assert torch.isfinite(-log_exponential(torch.Size([3]))).all()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shape", [(), (1,), (4,)], ids=str)
def test_probabilities_that_are_nan_draw_no_atom(shape):
    """Where nobody checks, an error is better than a number that looks like a draw."""
    law = gengs.Finite(torch.arange(3.0), logits=torch.full((2, 3), torch.nan), validate_args=False)
    with pytest.raises(IndexError):
        law.sample(shape)
