"""Laws whose table is made when asked for: the same law, asked or not."""

import copy
import gc
import pickle
import weakref

import pytest
import scipy.stats
import torch
from torch.distributions import Geometric, Independent, Poisson, kl_divergence
from torch.utils.checkpoint import checkpoint

import gengs
from gengs import Finite, GenGS, MidCDF, Relaxed, midcdf_sample, truncate
from gengs.distributions.families import family_of
from gengs.distributions.scored import Scored, with_scores
from gengs.models import VAE
from gengs.models.latents import CountLatents

double = torch.float64
PRIOR = truncate(Poisson(torch.tensor(2.0)), 12)


def asked(law):
    law.make_table()
    return law


# ------------------------------------------------------------------------------ when it is made


def test_nobody_asked_so_there_is_no_table():
    rate = torch.rand(4, 3).add(0.5).requires_grad_()
    q = truncate(Poisson(rate), 12)
    loss = MidCDF().expect(lambda z: z.square().sum(-1), Independent(q, 1))
    (loss + kl_divergence(q, PRIOR).sum(-1)).mean().backward()
    assert not q.has_table and torch.isfinite(rate.grad).all()
    GenGS(0.5).expect(lambda z: z.square().sum(-1), Independent(q, 1))
    assert q.has_table  # made by the estimator, for the caller as well


def test_the_gradient_is_decided_where_the_law_is_made():
    rate = torch.tensor([1.0, 3.0], requires_grad=True)
    with torch.no_grad():
        fixed = truncate(Poisson(rate), 6)
    assert not fixed.logits.requires_grad
    learned, other = truncate(Poisson(rate), 6), truncate(Poisson(rate), 6)
    with torch.no_grad():
        assert learned.logits.requires_grad
    with torch.inference_mode():
        assert not other.logits.is_inference()
    torch.autograd.grad(other.mean.sum(), rate)


def test_whoever_asks_first():
    """A table and atoms that were first asked for elsewhere serve a training step."""
    rate, scores = torch.tensor([1.0, 3.0], requires_grad=True), torch.zeros(2, 6)
    q = truncate(Poisson(rate), 6)
    with torch.inference_mode():
        _ = q.atoms, q.mean
    torch.autograd.grad(Relaxed(0.5, q).rsample_value().sum() + q.mean.sum(), rate)
    prior = truncate(Poisson(torch.tensor(2.0)), 6)
    law = with_scores(prior, scores)
    slope = torch.func.grad(lambda w: (w * law.mean).sum())(torch.ones(2))
    torch.testing.assert_close(slope, torch.full((2,), 2.5))
    wide = torch.func.vmap(lambda w: w * with_scores(prior, scores).mean)(torch.ones(3))
    torch.testing.assert_close(wide, torch.full((3, 2), 2.5))
    both = truncate(Poisson(torch.tensor([1.0, 3.0])), 6), truncate(Poisson(torch.tensor(2.0)), 6)
    found = torch.func.vmap(lambda w: w * kl_divergence(*both))(torch.ones(3))
    torch.testing.assert_close(found[0], kl_divergence(*both))


@pytest.mark.parametrize("change", [lambda r: r.fill_(9.0), lambda r: r.data.fill_(9.0)])
def test_a_rate_that_is_changed_before_anybody_asks(change):
    rate = torch.tensor([0.1, 0.2])
    q, other = truncate(Poisson(rate), 12), truncate(Poisson(rate), 12)
    change(rate)  # behind torch's back, too
    expected = truncate(Poisson(torch.tensor([9.0, 9.0])), 12)
    torch.testing.assert_close(kl_divergence(other, PRIOR), kl_divergence(expected, PRIOR))
    assert not other.has_table
    torch.testing.assert_close(q.probs, expected.probs)


@pytest.mark.parametrize("law", [Poisson(torch.tensor([2.0, 3.0])), Geometric(torch.tensor(0.4))])
def test_copies_and_pickles(law):
    q = truncate(law, 9)
    for twin in (copy.copy(q), copy.deepcopy(q), pickle.loads(pickle.dumps(q))):  # noqa: S301
        torch.testing.assert_close(twin.probs, truncate(law, 9).probs)
        assert twin.expand((4, *q.batch_shape)).probs.shape == (4, *q.batch_shape, 9)


def test_a_model_moves_with_its_prior():
    encoder, decoder = torch.nn.Linear(6, 4), torch.nn.Linear(4, 6)
    model = VAE(encoder, decoder, Poisson(2.0), MidCDF(), level=12, latents=4).double()
    prior = model.latents.prior
    assert prior.logits.dtype == prior.atoms.dtype == prior.source.rate.dtype == double
    torch.testing.assert_close(prior.logits, PRIOR.logits.double(), rtol=1e-5, atol=1e-5)
    model(torch.rand(5, 6, dtype=double)).mean().backward()
    assert torch.isfinite(encoder.weight.grad).all()
    pickle.loads(pickle.dumps(model))  # noqa: S301


def test_a_half_precision_rate_is_drawn_in_full_precision():
    rate = torch.tensor([2.0, 3.0], dtype=torch.bfloat16, requires_grad=True)
    q = Independent(truncate(Poisson(rate), 12), 1)
    loss = MidCDF().expect(lambda z: (z * z).sum(-1), q)
    loss.backward()
    assert loss.dtype == torch.float32 and rate.grad.dtype == torch.bfloat16


def test_a_gradient_that_is_not_finite_is_refused():
    rate = torch.tensor([2.0, 3.0], requires_grad=True)
    q = Independent(truncate(Poisson(rate), 12), 1)
    loss = MidCDF().expect(lambda z: (z - z.detach()).abs().sqrt().sum(-1), q)
    with pytest.raises(FloatingPointError, match="MidCDF"):
        loss.backward()


# ----------------------------------------------------------------------- the divergence, closed


def by_operations(rate, size):
    """The law of a cut Poisson from the family's formulas, none of them the fast ones."""
    k = torch.arange(size)
    return Finite(k.to(rate.dtype), logits=family_of(Poisson(rate)).clipped_log_pmf(k, True))


@pytest.mark.filterwarnings("ignore::gengs.TruncationWarning")
@pytest.mark.parametrize("other", [0.3, 2.0, 9.0, 20.0])
@pytest.mark.parametrize("size", [2, 12, 40])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 3e-5), (double, 1e-11)])
def test_the_closed_divergence_is_that_of_the_tables(other, size, dtype, tolerance):
    rate = torch.logspace(-8, 2.5, 300, dtype=dtype, requires_grad=True)
    p = truncate(Poisson(torch.tensor(other, dtype=dtype)), size)
    q = truncate(Poisson(rate), size)
    closed = kl_divergence(q, p)
    assert not q.has_table
    wide = rate.detach().double().requires_grad_()
    table = kl_divergence(by_operations(wide, size), by_operations(p.source.rate.double(), size))
    torch.testing.assert_close(closed.double(), table, rtol=tolerance, atol=tolerance)
    (found,), (expected,) = (
        torch.autograd.grad(x.sum(), r) for x, r in ((closed, rate), (table, wide))
    )
    torch.testing.assert_close(found.double(), expected, rtol=tolerance, atol=tolerance)


@pytest.mark.filterwarnings("ignore::gengs.TruncationWarning")
def test_the_closed_divergence_has_second_derivatives():
    rate = torch.tensor([0.01, 0.5, 3.0, 10.0, 14.0], dtype=double, requires_grad=True)
    p = truncate(Poisson(torch.tensor([1.0, 2.0, 2.0, 8.0, 3.0], dtype=double)), 12)

    def divergence(rate):
        q = truncate(Poisson(rate), 12)
        value = kl_divergence(q, p)
        assert not q.has_table
        return value

    assert torch.autograd.gradgradcheck(divergence, rate)


def test_a_learned_prior_has_its_gradient():
    rate = torch.tensor([1.0, 2.0], dtype=double)
    other = torch.tensor(1.5, dtype=double, requires_grad=True)
    assert torch.autograd.gradcheck(
        lambda other: kl_divergence(truncate(Poisson(rate), 7), truncate(Poisson(other), 7)), other
    )


@pytest.mark.parametrize("rates", [[0.0, 2.0], [2.0, 11.5], [1e-30, 5.9]])
def test_the_divergence_of_rates_at_the_edge(rates):
    rate = torch.tensor(rates)
    pmf = torch.tensor(scipy.stats.poisson.pmf(range(11), rate.double()[:, None].numpy()))
    q = torch.cat([pmf, 1 - pmf.sum(-1, keepdim=True)], -1).clamp_min(0)
    expected = torch.special.xlogy(q, q / PRIOR.probs.double()).sum(-1)
    found = kl_divergence(truncate(Poisson(rate), 12), PRIOR)
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-5)


# --------------------------------------------------------------------------- draws by clipping


def test_clipped_draws_have_the_law_and_the_gradient_of_the_table():
    """False-alarm rate below 1e-6: five standard errors, and a chi-square quantile."""
    torch.manual_seed(0)
    n, rates = 200_000, torch.tensor([0.7, 3.0, 6.0], dtype=double)
    rate = rates.expand(n, 3).clone().requires_grad_()
    q = truncate(Poisson(rate), 8)
    z = midcdf_sample(q)
    assert not q.has_table
    for k, law in enumerate(truncate(Poisson(rates), 8).probs):
        counts = torch.bincount(z[:, k].long(), minlength=8)
        assert scipy.stats.chisquare(counts.numpy(), n * law.numpy()).pvalue > 1e-6
    ((z - 1.3).square()).sum().backward()  # a quadratic cost: the mid-CDF gradient is exact
    leaf = rates.clone().requires_grad_()
    exact_law = truncate(Poisson(leaf), 8)
    cost = (exact_law.probs * (exact_law.atoms - 1.3).square()).sum()
    (exact,) = torch.autograd.grad(cost, leaf)
    error = rate.grad.std(0) / n**0.5
    assert ((rate.grad.mean(0) - exact).abs() < 5 * error).all()
    assert (error < 0.03 * exact.abs()).all()


def test_clipped_draws_have_no_second_derivative():
    rate = torch.tensor([2.0], requires_grad=True)
    z = midcdf_sample(truncate(Poisson(rate), 8))
    (first,) = torch.autograd.grad(z.square().sum(), rate, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivative"):
        first.backward()


# ----------------------------------------------------------------------------- unnormalised scores


def scores_like(*shape, spread=2.0, dtype=double):
    torch.manual_seed(1)
    return (torch.randn(*shape, dtype=dtype) * spread).requires_grad_()


def both(scores):
    """The law of scores, and the same with its logits normalised at once."""
    lazy = with_scores(PRIOR, scores)
    assert isinstance(lazy, Scored)
    return lazy, Finite(PRIOR.atoms.to(scores.dtype), logits=scores)


@pytest.mark.parametrize("temperature", [0.2, 0.5, 1.0])
def test_relaxed_values_need_no_normaliser(temperature):
    scores = scores_like(4, 3, 12, dtype=torch.float32)
    found, expected = [], []
    for law, results in zip(both(scores), (found, expected), strict=True):
        torch.manual_seed(0)
        value = Relaxed(temperature, law).rsample_value((5,))
        results += [value, *torch.autograd.grad(value.square().sum(), scores)]
    torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("spread", [2.0, 30.0])  # the second makes scores that are not moderate
def test_the_divergence_of_scores(spread):
    scores = scores_like(4, 3, 12, spread=spread)
    p = truncate(Poisson(torch.tensor(2.0, dtype=double)), 12)

    def divergence(x):
        return kl_divergence(with_scores(p, x), p)

    expected = kl_divergence(Finite(p.atoms, logits=scores), p)
    torch.testing.assert_close(divergence(scores), expected)
    assert torch.autograd.gradcheck(divergence, scores)
    assert torch.autograd.gradgradcheck(divergence, scores)


def test_the_divergence_of_scores_from_an_impossible_atom_is_infinite():
    scores = torch.zeros(3, requires_grad=True)
    p = Finite(torch.arange(3.0), probs=torch.tensor([0.5, 0.5, 0.0]))
    assert kl_divergence(with_scores(p, scores), p) == torch.inf


@pytest.mark.parametrize("samples", [(), (3,)])
def test_midcdf_draws_need_no_normaliser(samples):
    scores = scores_like(40, 3, 12, spread=4.0)  # wide enough for valleys
    found, expected = [], []
    for law, results in zip(both(scores), (found, expected), strict=True):
        torch.manual_seed(0)
        z = midcdf_sample(law, samples).to(double)
        results += [z, *torch.autograd.grad(z.square().sum(), scores)]
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("estimator", [gengs.RLOO(2), gengs.ReinMax(), GenGS(), MidCDF()], ids=str)
def test_estimators_take_scores(estimator):
    scores = scores_like(4, 3, 12, dtype=torch.float32)
    law = with_scores(PRIOR, scores)
    estimator.expect(lambda z: z.square().sum(-1), Independent(law, 1)).sum().backward()
    assert torch.isfinite(scores.grad).all()
    # a constant that is added to all scores of a row does not change the law
    torch.testing.assert_close(scores.grad.sum(-1), torch.zeros(4, 3), rtol=0.0, atol=2e-4)


# ------------------------------------------------------------------------------ odd places to ask


@pytest.mark.parametrize("estimator", [gengs.RLOO(2), GenGS(), MidCDF(), gengs.Exact()], ids=str)
def test_an_evaluation_in_inference_mode(estimator):
    rate = torch.tensor([1.0, 3.0], requires_grad=True)
    q = truncate(Poisson(rate), 10)
    with torch.inference_mode():
        assert estimator.expect(lambda z: z, q).shape == (2,)
    estimator.expect(lambda z: z.square(), q).sum().backward()  # and a training step after it
    assert torch.isfinite(rate.grad).all()


def test_what_a_transform_made_ends_with_it():
    latents = CountLatents(Poisson(torch.tensor(2.0)), "explicit", level=8)
    torch.func.grad(lambda raw: kl_divergence(*latents(raw)).sum())(torch.zeros(3, 2))
    implicit = CountLatents(Poisson(torch.tensor(2.0)), "implicit", level=8)
    torch.func.grad(lambda raw: kl_divergence(*implicit(raw)).sum())(torch.zeros(3, 16))
    for twin in (copy.deepcopy(latents), copy.deepcopy(implicit)):
        torch.testing.assert_close(twin.prior.mean, truncate(Poisson(torch.tensor(2.0)), 8).mean)


def test_what_a_checkpoint_made_is_made_again():
    rate, x = torch.tensor([1.0, 2.0], requires_grad=True), torch.ones((), requires_grad=True)
    q = truncate(Poisson(rate), 10)
    value = checkpoint(lambda x: GenGS().expect(lambda z: z * x, q).sum(), x, use_reentrant=False)
    value.backward()
    assert torch.isfinite(rate.grad).all() and x.grad > 0


def test_a_law_made_without_gradient_has_none_anywhere():
    rate, scores = torch.tensor([1.0, 3.0], requires_grad=True), torch.zeros(2, 12)
    with torch.no_grad():
        q = truncate(Poisson(rate), 12)
        law = with_scores(PRIOR, scores.requires_grad_())
    for value in (kl_divergence(q, PRIOR), midcdf_sample(q), q.mean):
        assert not value.requires_grad
    for value in (kl_divergence(law, PRIOR), midcdf_sample(law), law.mean):
        assert not value.requires_grad


def test_a_huge_rate_is_at_the_end():
    rate = torch.tensor([1e5, 1e19, 1e38], requires_grad=True)
    with pytest.warns(gengs.TruncationWarning):
        q = truncate(Poisson(rate), 10)
    z = midcdf_sample(q)
    z.sum().backward()
    assert torch.equal(z, torch.full((3,), 9.0)) and torch.equal(rate.grad, torch.zeros(3))


def test_windows_of_their_own_move_with_the_model():
    law = truncate(Poisson(torch.tensor([2.0, 300.0])), tolerance=1e-4)
    latents = CountLatents(law, "implicit").to("meta")
    assert latents.prior.atoms.shape == (2, law.num_atoms)


def test_a_draw_may_be_changed_in_place():
    rate = torch.tensor([1.0, 2.0], requires_grad=True)
    z = midcdf_sample(truncate(Poisson(rate), 8))
    z.sub_(1.0).mul_(2.0)
    z.sum().backward()
    assert (rate.grad > 0).all()


def test_small_things():
    one, nothing = truncate(Poisson(torch.ones(2)), 6), truncate(Poisson(torch.ones(0, 2)), 6)
    assert kl_divergence(one, nothing).shape == (0, 2)
    half = truncate(Poisson(torch.tensor([1.0, 3.0], dtype=torch.bfloat16)), 10)
    assert midcdf_sample(half).dtype == midcdf_sample(half, (2,)).dtype == torch.float32
    jacobian = torch.func.jacrev(lambda p: midcdf_sample(truncate(Geometric(p), 7), valley=0.0))
    assert jacobian(torch.tensor([0.3, 0.2])).shape == (2, 2)
    torch.manual_seed(0)
    x = (torch.randn(4, 5, 100) * 6).requires_grad_()  # many atoms, valleys
    z = midcdf_sample(Finite(torch.arange(100.0), logits=x), (3,))
    (z.permute(2, 1, 0) * torch.randn(5, 4, 3)).sum().backward()
    assert torch.isfinite(x.grad).all()


def test_a_step_leaves_nothing_that_only_the_collector_can_find():
    def step():
        law = with_scores(PRIOR, torch.zeros(3, 12, requires_grad=True))
        gone = weakref.ref(law)
        loss = gengs.RLOO(2).expect(lambda z: z, law).sum() + kl_divergence(law, PRIOR).sum()
        loss.backward()
        return gone

    step()
    gc.collect()
    gc.disable()
    try:
        assert step()() is None
    finally:
        gc.enable()
