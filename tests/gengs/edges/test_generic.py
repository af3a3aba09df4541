"""What torch's own generic tests ask of every distribution, asked of ours.

Shapes and types of samples, ``expand``, ``enumerate_support``, ``log_prob`` against ``cdf`` and
``icdf``, entropy and moments, pickling, validation, broadcasting: the properties, in our own words,
on every law of ours, scalar and batched, in float32 and float64.
"""

import pickle

import pytest
import torch
from our_laws import DENSITIES, DOUBLE, FLOAT, LAWS, NUMBERS, PAIRS, TABLES, WITH_LOG_PROB, finite
from torch.distributions import Distribution, Independent, constraints, kl_divergence

import gengs

every = pytest.mark.parametrize("name", LAWS)
with_log_prob = pytest.mark.parametrize("name", WITH_LOG_PROB)
tables = pytest.mark.parametrize("name", [name for name in LAWS if name in TABLES])
scalars = pytest.mark.parametrize("name", NUMBERS)
types = pytest.mark.parametrize("dtype", [FLOAT, DOUBLE], ids=str)
batches = pytest.mark.parametrize("batch", [(), (3,), (2, 3)], ids=str)


@every
@batches
@types
@pytest.mark.parametrize("shape", [(), (4,), (2, 4), (0,)], ids=str)
def test_sample_shape_and_type(name, batch, dtype, shape):
    law = LAWS[name](dtype, batch)
    assert law.batch_shape == batch
    drawn = law.sample(torch.Size(shape))
    assert drawn.shape == torch.Size(shape) + law.batch_shape + law.event_shape
    assert drawn.dtype == dtype and not drawn.requires_grad
    if law.has_rsample:
        assert law.rsample(torch.Size(shape)).shape == drawn.shape


@every
def test_a_law_over_nothing(name):
    if name in ("cut one-hot", "cut multinomial", "cut mixture"):
        pytest.skip("torch's own laws of these names refuse an empty batch")
    law = LAWS[name](FLOAT, (0,))
    assert law.sample((2,)).shape == (2, 0, *law.event_shape)
    if name in TABLES:
        assert law.probs.shape[0] == 0 and law.mean.shape == (0, *law.event_shape)


@with_log_prob
@batches
@types
def test_log_prob_shape_type_and_broadcasting(name, batch, dtype):
    law = LAWS[name](dtype, batch)
    value = law.sample((4,))
    log_prob = law.log_prob(value)
    assert log_prob.shape == (4, *law.batch_shape) and log_prob.dtype == dtype
    if batch and name not in DENSITIES:  # a single value against the whole batch
        single = value[(0,) * (1 + len(batch))]
        assert law.log_prob(single).shape == law.batch_shape
    torch.testing.assert_close(law.log_prob(value[1]), log_prob[1])


@every
@types
def test_samples_are_in_the_support(name, dtype):
    law = LAWS[name](dtype, (3,))
    drawn = law.sample((20,))
    inside = law.support.check(drawn)
    assert inside.all() and inside.shape[:2] == (20, 3)
    assert law.support.event_dim == len(law.event_shape)


@every
@types
def test_expand(name, dtype):
    law = LAWS[name](dtype, (3,))
    wide = law.expand(torch.Size((5, 2, 3)))
    assert type(wide) is type(law) or isinstance(wide, gengs.Finite)
    assert wide.batch_shape == (5, 2, 3) and wide.event_shape == law.event_shape
    drawn = wide.sample((4,))
    assert drawn.shape == (4, 5, 2, 3, *law.event_shape)
    if name in WITH_LOG_PROB:
        torch.testing.assert_close(wide.log_prob(drawn), law.log_prob(drawn))
    if name in TABLES:
        torch.testing.assert_close(wide.mean, law.mean.expand(5, 2, 3, *law.event_shape))
        assert wide.enumerate_support().shape[1:4] == (5, 2, 3)
    again = wide.expand(torch.Size((7, 5, 2, 3)))
    assert again.batch_shape == (7, 5, 2, 3)
    with pytest.raises((RuntimeError, ValueError)):
        law.expand(torch.Size((4,)))


@tables
@batches
def test_enumerate_support(name, batch):
    law = LAWS[name](DOUBLE, batch)
    assert law.has_enumerate_support
    short = law.enumerate_support(expand=False)
    long = law.enumerate_support(expand=True)
    n = len(short)
    assert short.shape == (n, *(1,) * len(batch), *law.event_shape)
    assert long.shape == (n, *batch, *law.event_shape)
    torch.testing.assert_close(short.expand_as(long), long)
    total = law.log_prob(long).logsumexp(0)
    torch.testing.assert_close(total, torch.zeros(batch, dtype=DOUBLE), atol=1e-9, rtol=0)


@tables
@types
def test_moments_and_entropy_follow_from_the_probabilities(name, dtype):
    law = LAWS[name](dtype, (2,))
    values = law.enumerate_support()
    probs = law.log_prob(values).exp()
    flat = probs.reshape(probs.shape + (1,) * len(law.event_shape))
    mean = (flat * values).sum(0)
    close = {"rtol": 1e-4, "atol": 1e-5} if dtype == FLOAT else {"rtol": 1e-9, "atol": 1e-9}
    torch.testing.assert_close(law.mean, mean, **close)
    variance = (flat * (values - mean).square()).sum(0)
    torch.testing.assert_close(law.variance, variance, **close)
    torch.testing.assert_close(law.stddev, variance.sqrt(), **close)
    torch.testing.assert_close(law.entropy(), -torch.xlogy(probs, probs).sum(0), **close)
    torch.testing.assert_close(law.perplexity(), law.entropy().exp(), **close)
    assert (law.log_prob(law.mode) >= law.log_prob(values).amax(0) - 1e-6).all()
    torch.testing.assert_close(
        kl_divergence(law, law), torch.zeros(2, dtype=dtype), rtol=0, atol=1e-6
    )


@pytest.mark.parametrize("name", ["skellam"])
def test_moments_of_samples(name):
    # 20,000 draws: within 6 standard errors, 2e-9 per entry
    law = LAWS[name](DOUBLE, ())
    drawn = law.sample((20_000,))
    error = (law.variance / 20_000).sqrt()
    assert ((drawn.mean(0) - law.mean).abs() < 6 * error).all()


@scalars
@types
def test_cdf_is_the_sum_of_the_probabilities(name, dtype):
    law = LAWS[name](dtype, (2,))
    values = law.enumerate_support()
    ordered = values.sort(0).values
    close = {"rtol": 0, "atol": 1e-5 if dtype == FLOAT else 1e-12}
    torch.testing.assert_close(law.cdf(ordered), law.log_prob(ordered).exp().cumsum(0), **close)
    between = (ordered[1:] + ordered[:-1]) / 2
    torch.testing.assert_close(law.cdf(between), law.cdf(ordered[:-1]), **close)
    assert (law.cdf(ordered[0] - 1) == 0).all()


@scalars
@types
def test_the_quantile_of_the_cdf(name, dtype):
    law = LAWS[name](dtype, (2,))
    values = law.enumerate_support()
    possible = law.log_prob(values) > -torch.inf
    back = law.icdf(law.cdf(values))
    assert back.shape == values.shape and back.dtype == dtype
    assert (back == values)[possible].all()


@every
@types
def test_pickling(name, dtype):
    law = LAWS[name](dtype, (2,))
    twin = pickle.loads(pickle.dumps(law))  # noqa: S301 (our own bytes)
    assert type(twin) is type(law) and twin.batch_shape == law.batch_shape
    drawn = law.sample()
    if name in WITH_LOG_PROB:
        torch.testing.assert_close(twin.log_prob(drawn), law.log_prob(drawn))


@every
def test_the_same_seed_gives_the_same_draws(name):
    law = LAWS[name](FLOAT, (3,))
    torch.manual_seed(11)
    first = law.sample((5,))
    torch.manual_seed(11)
    assert torch.equal(first, law.sample((5,)))


@every
def test_the_facts_that_torch_asks_for(name):
    law = LAWS[name](FLOAT, ())
    assert isinstance(law, Distribution)
    assert isinstance(law.arg_constraints, dict)
    assert all(isinstance(c, constraints.Constraint) for c in law.arg_constraints.values())
    assert isinstance(law.support, constraints.Constraint)
    assert law.support.is_discrete == (name not in DENSITIES)
    assert repr(law) and "object at" not in repr(law)


@with_log_prob
def test_values_outside_the_support(name):
    if name in DENSITIES:
        pytest.skip("a density on the simplex")
    law = LAWS[name](FLOAT, (2,))
    outside = torch.full((2, *law.event_shape), 0.123)
    with pytest.raises(ValueError, match=r"value|support|atoms"):
        law.log_prob(outside)


@tables
def test_without_validation_an_outside_value_has_probability_zero(name):
    source = LAWS[name](FLOAT, (2,))
    law = gengs.Finite(
        source.atoms, logits=source.logits, event_dim=source.event_dim, validate_args=False
    )
    outside = torch.full((2, *law.event_shape), 0.123)
    assert (law.log_prob(outside) == -torch.inf).all()


@pytest.mark.parametrize(
    ("build", "word"),
    [
        (
            lambda v: gengs.Finite(torch.arange(3.0), logits=torch.zeros(4), validate_args=v),
            "atoms",
        ),
        (lambda v: gengs.Finite(torch.arange(3.0), validate_args=v), "logits"),
        (
            lambda v: gengs.Finite(
                torch.arange(3.0), torch.zeros(3), torch.ones(3), validate_args=v
            ),
            "logits",
        ),
        (lambda v: gengs.Finite(torch.zeros(0), logits=torch.zeros(0), validate_args=v), "atom"),
    ],
    ids=["sizes", "neither", "both", "no atom"],
)
@pytest.mark.parametrize("validate", [None, True, False])
def test_wrong_shapes_are_refused_with_or_without_validation(build, word, validate):
    with pytest.raises(ValueError, match=word):
        build(validate)


@pytest.mark.parametrize(
    "bad",
    [
        lambda: gengs.Skellam(torch.tensor(-1.0), torch.tensor(1.0)),
        lambda: gengs.Skellam(torch.tensor(1.0), torch.tensor(torch.nan)),
        lambda: gengs.Finite(torch.tensor([0.0, 0.0]), probs=torch.ones(2)),
        lambda: gengs.Finite(torch.tensor([0.0, torch.nan]), probs=torch.ones(2)),
        lambda: gengs.Relaxed(0.0, finite(PAIRS, 1)(FLOAT, ())),
        lambda: gengs.Relaxed(-1.0, finite(PAIRS, 1)(FLOAT, ())),
        lambda: gengs.Relaxed(torch.tensor(torch.nan), finite(PAIRS, 1)(FLOAT, ())),
    ],
)
def test_wrong_numbers_are_refused(bad):
    with pytest.raises(ValueError, match=r".{15}"):
        bad()


@every
@types
def test_independent(name, dtype):
    law = LAWS[name](dtype, (2, 3))
    vector = Independent(law, 1)
    drawn = vector.sample((4,))
    assert drawn.shape == (4, 2, 3, *law.event_shape)
    if name in WITH_LOG_PROB:
        torch.testing.assert_close(vector.log_prob(drawn), law.log_prob(drawn).sum(-1))


@tables
def test_atoms_of_a_batch_of_their_own(name):
    source = LAWS[name](DOUBLE, ())
    where = -1 - source.event_dim
    shift = torch.tensor([0.0, 10.0], dtype=DOUBLE).reshape(2, *(1,) * source.atoms.dim())
    law = gengs.Finite(source.atoms + shift, logits=source.logits, event_dim=source.event_dim)
    assert law.batch_shape == (2,) and law.num_atoms == source.atoms.shape[where]
    torch.testing.assert_close(law.mean[1], source.mean + 10)
    torch.testing.assert_close(law.variance[1], source.variance)
    drawn = law.sample((6,))
    assert torch.isfinite(law.log_prob(drawn)).all()
    assert law.enumerate_support().shape == (law.num_atoms, 2, *law.event_shape)
