"""The numeric hazards of the field, one by one, and what a user may expect instead."""

import math

import pytest
import scipy.stats
import torch
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Distribution,
    Geometric,
    NegativeBinomial,
    Poisson,
    constraints,
)

import gengs
from gengs import law_of
from gengs.numerics import tracing
from gengs.numerics.gumbel import log_exponential

NAN, INF = math.nan, math.inf


def relaxed_gradient(law, *parameters, **rule):
    """Relax, backpropagate, and return the value; the gradients are left in the parameters."""
    z = gengs.Relaxed(0.5, gengs.truncate(law, **rule)).rsample_value((50,))
    z.sum().backward()
    for parameter in parameters:
        assert torch.isfinite(parameter.grad).all()
    return z


# ------------------------------------------------------------------------- cancelling tails


def test_tail_that_cancels_is_neither_negative_nor_nan():
    rate = torch.tensor(5.0, requires_grad=True)
    q = gengs.truncate(Poisson(rate), 30)
    naive = 1 - Poisson(rate).log_prob(torch.arange(29.0)).exp().sum()
    assert abs(naive) > 1e-9 or naive <= 0
    assert q.probs[-1].item() == pytest.approx(scipy.stats.poisson(5).sf(28), rel=1e-4)
    q.logits.sum().backward()
    assert torch.isfinite(rate.grad)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("a", [40, 200, 3000])
def test_tail_where_the_incomplete_gamma_function_underflows(a, dtype):
    rate = torch.tensor(0.5, dtype=dtype, requires_grad=True)
    tail = law_of(Poisson(rate)).log_at_least(torch.tensor([a]))
    first = a * math.log(0.5) - 0.5 - math.lgamma(a + 1)  # the next terms add less than 2 %
    assert tail.item() == pytest.approx(first, rel=1e-5, abs=0.03)
    tail.backward()
    # d log P(X ≥ a) / dλ = p(a − 1) / P(X ≥ a) ≈ a / λ
    assert rate.grad.item() == pytest.approx(a / 0.5, rel=0.05)


@pytest.mark.parametrize("k", [0, 5, 30])
def test_lower_tail_far_below_a_large_rate(k):
    tail = law_of(Poisson(torch.tensor(1e4))).log_at_most(torch.tensor([k])).item()
    j = torch.arange(k + 1, dtype=torch.float64)
    terms = Poisson(torch.tensor(1e4, dtype=torch.float64)).log_prob(j)
    assert tail == pytest.approx(terms.logsumexp(0).item(), rel=1e-5)


# ------------------------------------------------------------------------------- point masses


def test_rate_zero_is_a_point_mass_at_zero():
    rate = torch.zeros(3, requires_grad=True)
    q = gengs.truncate(Poisson(rate), 6)
    assert torch.equal(q.probs, torch.eye(6)[[0, 0, 0]])
    assert (q.logits[:, 1:] == -INF).all()
    assert (relaxed_gradient(Poisson(rate), rate, level=6) == 0).all()
    for rule in ({"tolerance": 1e-6}, {"mass": 0.9}):
        cut = gengs.truncate(Poisson(rate.detach()), **rule)
        assert (cut.mean == 0).all()


@pytest.mark.parametrize("p", [0.0, 1.0])
@pytest.mark.parametrize("build", [Bernoulli, lambda p: Binomial(torch.full_like(p, 4.0), p)])
def test_probabilities_zero_and_one_are_point_masses(build, p):
    p = torch.tensor([p, 0.5], requires_grad=True)
    q = gengs.truncate(build(p))
    top = q.num_atoms - 1
    assert q.mean[0] == top * p[0]
    assert q.variance[0] == 0
    assert q.entropy()[0] == 0
    z = relaxed_gradient(build(p), p)
    assert (z[:, 0] == top * p[0]).all()


def test_geometric_that_succeeds_at_once():
    p = torch.tensor([1.0, 0.3], requires_grad=True)
    q = gengs.truncate(Geometric(p), 8)
    assert torch.equal(q.probs[0], torch.eye(8)[0])
    assert (relaxed_gradient(Geometric(p), p, level=8)[:, 0] == 0).all()


def test_negative_binomial_that_never_succeeds():
    p = torch.tensor([0.0, 0.3], requires_grad=True)
    law = NegativeBinomial(torch.tensor(2.0), p)
    assert torch.equal(gengs.truncate(law, 8).probs[0], torch.eye(8)[0])
    assert (relaxed_gradient(law, p, level=8)[:, 0] == 0).all()


def test_binomial_batch_of_sure_laws_with_different_counts():
    q = gengs.truncate(Binomial(torch.tensor([3.0, 5.0]), torch.ones(2)))
    assert torch.equal(q.probs, torch.eye(6)[[3, 5]])
    assert torch.equal(q.certificate.lost_mass, torch.zeros(2, dtype=torch.float64))


@pytest.mark.parametrize("logit", [-INF, INF])
def test_infinite_logits_are_point_masses(logit):
    logits = torch.tensor([logit, 0.0], requires_grad=True)
    z = relaxed_gradient(Bernoulli(logits=logits), logits)
    assert (z[:, 0] == float(logit > 0)).all()


def test_forbidden_categories_are_never_drawn_and_send_no_nan():
    for given in ({"logits": [-INF, 0.3, -INF, 1.0]}, {"probs": [0.0, 0.4, 0.0, 0.6]}):
        ((name, values),) = given.items()
        parameter = torch.tensor(values, requires_grad=True)
        law = Categorical(**{name: parameter})
        q = gengs.truncate(law)
        assert torch.equal(q.logits == -INF, torch.tensor([True, False, True, False]))
        assert set(q.sample((1000,)).tolist()) == {1.0, 3.0}
        hard = gengs.Relaxed(0.5, q).rsample_value((1000,), hard=True)
        assert set(hard.tolist()) == {1.0, 3.0}
        relaxed_gradient(law, parameter)
        assert q.log_prob(torch.tensor(0.0)) == -INF
        assert torch.isfinite(q.entropy())


def test_all_atoms_forbidden_is_an_error():
    for given in ({"logits": torch.full((2, 3), -INF)}, {"probs": torch.zeros(2, 3)}):
        with pytest.raises(ValueError, match="possible atom in each row"):
            gengs.Finite(torch.arange(3), **given)


# -------------------------------------------------------------------------- noise and precision


def test_noise_never_meets_the_ends_of_the_uniform():
    noise = -log_exponential(torch.Size([5_000_000]))
    assert torch.isfinite(noise).all()
    # 24-bit uniforms would repeat their largest noise: 5e6 draws of them end at 16.6 = log 2^24
    assert noise.max() < 25
    assert noise.min() > -4


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
def test_half_precision_relaxes_in_float32(dtype):
    rate = torch.tensor([0.1, 3.0, 200.0], dtype=dtype, requires_grad=True)
    z = relaxed_gradient(Poisson(rate), rate, tolerance=1e-6)
    assert z.dtype == torch.float32
    assert abs(z[:, 2].mean().item() - 200) < 12
    assert rate.grad.dtype == dtype


def test_bfloat16_atoms_keep_257():
    atoms = torch.arange(255, 260).bfloat16()
    assert atoms.tolist() != list(range(255, 260))  # the user lost it before we came
    q = gengs.Finite(torch.arange(255, 260), logits=torch.zeros(5).bfloat16())
    assert q.atoms.tolist() == [255, 256, 257, 258, 259]
    point = torch.tensor([-INF, -INF, 0.0, -INF, -INF]).bfloat16()
    q = gengs.Finite(torch.arange(255, 260), logits=point)
    assert gengs.Relaxed(0.5, q).rsample_value() == 257
    counts = gengs.truncate(Poisson(torch.tensor(257.0).bfloat16()), tolerance=1e-3)
    assert 257 in counts.atoms.tolist()


@pytest.mark.parametrize("rate", [1e5, 1e6])
def test_large_rates_keep_four_digits_in_float32(rate):
    reference = scipy.stats.poisson(rate)
    for rule in ({"tolerance": 1e-6}, {"low": int(rate) - 9, "high": int(rate) + 9}):
        q = gengs.truncate(Poisson(torch.tensor(rate)), **rule, validate_args=False)
        inside = q.probs[1:-1].double().numpy()
        wanted = reference.pmf(q.atoms[1:-1].double().numpy())
        assert abs(inside / wanted - 1).max() < 1e-4


# --------------------------------------------------------------------------------- temperature


@pytest.mark.parametrize("tau", [0.0, -1.0, NAN, INF, -INF])
@pytest.mark.parametrize("wrap", [float, torch.tensor, lambda tau: torch.tensor([1.0, tau])])
def test_bad_temperature_is_an_error(tau, wrap):
    q = gengs.Finite(torch.arange(2), logits=torch.zeros(2))
    with pytest.raises(ValueError, match=r"positive, finite `temperature`, but got"):
        gengs.Relaxed(wrap(tau), q)
    with pytest.raises(ValueError, match=r"positive, finite `temperature`, but got"):
        gengs.gumbel_relax(q, tau=wrap(tau))


@pytest.mark.parametrize("wrap", [float, torch.tensor])
@pytest.mark.parametrize("tau", [1e-5, 1e-20, 1.2e-38])
def test_tiny_temperature_gives_one_hot_and_no_nan(tau, wrap):
    logits = torch.randn(200, 5, requires_grad=True)
    relaxed = gengs.Relaxed(wrap(tau), gengs.Finite(torch.arange(5), logits=logits))
    y = relaxed.rsample()
    assert (y.amax(-1) > 0.99).float().mean() > 0.99
    z = relaxed.rsample_value()
    assert torch.isfinite(z).all()
    z.sum().backward()
    assert not logits.grad.isnan().any()


# ----------------------------------------------------------------------- too short, too large


def test_truncation_too_short_is_known_and_warned_of():
    with pytest.warns(gengs.TruncationWarning, match=r"loses more than 0\.5 .* vanishes there"):
        q = gengs.truncate(Poisson(torch.tensor(15.0)), 10)
    assert q.certificate.lost_mass.item() == pytest.approx(scipy.stats.poisson(15).sf(9), rel=1e-4)


def test_huge_support_is_refused_before_it_is_allocated():
    sentence = r"table of 1000000 atoms for each of 6000000 elements \(batch shape \(2000, 3000\)\)"
    with pytest.raises(ValueError, match=sentence + r" needs about .* GiB.*tolerance="):
        gengs.truncate(Poisson(torch.ones(2000, 3000)), 1_000_000)


def test_only_tables_from_a_quarter_gib_on_look_for_free_memory(monkeypatch):
    monkeypatch.setattr(tracing, "_free_bytes", lambda device: 0.0)
    large, cpu = torch.Size([2**20]), torch.device("cpu")  # four copies of 2^20 × 16 × 4 bytes
    with pytest.raises(ValueError, match=r"0\.2 GiB.* 0\.0 GiB"):
        tracing.require_memory(large, 16, torch.float32, cpu)
    tracing.require_memory(large, 15, torch.float32, cpu)


def test_huge_window_search_is_refused_before_it_is_allocated():
    rates = torch.ones(100_000)
    rates[0] = 1e8
    with pytest.raises(ValueError, match=r"atoms.* 100000 elements"):
        gengs.truncate(Poisson(rates), tolerance=1e-6)


# ------------------------------------------------------------------------- NaN, inf, validation


@pytest.mark.parametrize("bad", [NAN, INF, -INF])
def test_bad_parameters_are_errors_when_validating(bad, torch_validation_off):
    """Where they are asked for, although torch's are off."""
    value = torch.tensor([1.0, bad])
    half = torch.tensor([0.5, bad])
    for law in (Poisson(value), Geometric(half), Binomial(torch.tensor(3.0), half)):
        with pytest.raises(ValueError, match=r"expects finite values in `\w+`"):
            gengs.truncate(law, 5, validate_args=True)
    with pytest.raises(ValueError, match=r"Skellam.* finite.* `rate_up`"):
        gengs.Skellam(value, torch.ones(2), validate_args=True)


def test_nan_logits_are_errors_when_validating(torch_validation_off):
    for law in (
        Bernoulli(logits=torch.tensor([0.0, NAN])),
        Categorical(logits=torch.tensor([0, NAN])),
    ):
        with pytest.raises(ValueError, match=r"`logits`"):
            gengs.truncate(law, validate_args=True)
    for bad in (NAN, INF):
        logits = torch.tensor([0.0, bad])
        with pytest.raises(ValueError, match=r"`logits` without NaN or \+inf"):
            gengs.Finite(torch.arange(2), logits=logits, validate_args=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_negative_probabilities_are_errors_when_validating(dtype, torch_validation_off):
    law = Categorical(torch.tensor([-0.5, 1.5], dtype=dtype))
    with pytest.raises(ValueError, match=r"Categorical expects `probs` .* Simplex\(\)"):
        gengs.truncate(law, validate_args=True)


def test_half_precision_need_not_sum_to_one_to_six_digits(torch_validation_off):
    law = Categorical(torch.linspace(0.1, 1, 98).bfloat16())
    assert not constraints.simplex.check(law.probs)
    gengs.truncate(law, validate_args=True)


def test_negative_rate_is_an_error_when_validating(torch_validation_off):
    with pytest.raises(ValueError, match=r"Poisson.* `rate`.* -1"):
        gengs.truncate(Poisson(torch.tensor([2.0, -1.0])), 5, validate_args=True)


@pytest.mark.parametrize("bad", [NAN, INF])
def test_without_validation_a_bad_number_stays_bad(bad, torch_validation_off):
    laws = [
        Poisson(torch.tensor(bad)),
        Geometric(torch.tensor(bad)),
        Binomial(torch.tensor(3.0), torch.tensor(bad)),
        NegativeBinomial(torch.tensor(3.0), torch.tensor(bad)),
        Bernoulli(torch.tensor(bad)),
        Categorical(torch.tensor([0.5, bad])),
        gengs.Skellam(torch.tensor(bad), torch.tensor(1.0), validate_args=False),
    ]
    for law in laws:
        rule = {} if isinstance(law, Bernoulli | Categorical) else {"level": 5}
        q = gengs.truncate(law, **rule, validate_args=False)
        assert q.mean.isnan(), law
        assert gengs.Relaxed(0.5, q).rsample_value().isnan(), law
    q = gengs.Finite(torch.arange(2), logits=torch.tensor([0.0, bad]), validate_args=False)
    assert q.mean.isnan()
    assert gengs.Relaxed(0.5, q).rsample_value().isnan()


@pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning")
def test_our_validation_survives_a_torch_compile_wrapper():
    torch.compile(lambda x: x)
    torch.compile(lambda x: x + 1, backend="eager")(torch.ones(1))
    Distribution._validate_args = False  # whatever the version of torch did, the worst case
    with pytest.raises(ValueError, match="finite values in `rate`"):
        gengs.truncate(Poisson(torch.tensor(NAN)), 5)
    with pytest.raises(ValueError, match="without NaN"):
        gengs.Finite(torch.arange(2), logits=torch.tensor([0.0, NAN]))
    q = gengs.Finite(torch.arange(2), logits=torch.zeros(2))
    with pytest.raises(ValueError, match="among the 2 atoms"):
        q.log_prob(torch.tensor(7.0))
    with pytest.raises(ValueError, match="Simplex"):
        gengs.Relaxed(0.5, q).log_prob(torch.tensor([0.5, 0.9]))


# --------------------------------------------------------------------------------- few atoms


def test_one_atom_is_a_constant_law():
    logits = torch.zeros(3, 1, requires_grad=True)
    q = gengs.Finite(torch.tensor([2.5]), logits=logits)
    assert (q.sample((4,)) == 2.5).all()
    assert (q.entropy() == 0).all()
    z = gengs.Relaxed(0.5, q).rsample_value((4,))
    assert (z == 2.5).all()
    z.sum().backward()
    assert (logits.grad == 0).all()
    assert torch.isfinite(gengs.Relaxed(0.5, q).log_prob(torch.ones(3, 1))).all()
    cut = gengs.truncate(Poisson(torch.tensor(0.1)), 1)
    assert cut.probs.tolist() == [1.0]


def test_zero_atoms_are_an_error():
    with pytest.raises(ValueError, match=r"at least one atom.* \(3, 0\)"):
        gengs.Finite(torch.ones(0), logits=torch.ones(3, 0))


@pytest.mark.parametrize(
    "law",
    [
        Bernoulli(torch.tensor([0.3, 0.6])),
        Categorical(torch.tensor([[0.2, 0.8, 0.0], [0.5, 0.1, 0.4]])),
        Poisson(torch.tensor([0.3, 1e30])),
    ],
    ids=lambda law: type(law).__name__,
)
def test_one_atom_has_all_the_mass(law):
    one = gengs.truncate(law, 1, validate_args=False)
    assert one.logits.tolist() == [[0.0], [0.0]]
    assert one.sample().tolist() == one.mean.tolist() == [0.0, 0.0]


@pytest.mark.parametrize("bad", [torch.nan, -0.5])
def test_half_precision_probabilities_are_looked_at_one_by_one(bad, torch_validation_off):
    probs = torch.tensor([0.5, bad, 0.5], dtype=torch.float16)
    with pytest.raises(ValueError, match="`probs`"):
        gengs.truncate(Categorical(probs=probs), validate_args=True)
