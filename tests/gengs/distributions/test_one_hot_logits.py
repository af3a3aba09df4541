"""``OneHot``: one-hot vectors on logits, for any number of categories."""

import pytest
import torch
import torch.nn.functional as F
from torch.distributions import Independent, OneHotCategorical, kl_divergence

import gengs
from gengs.estimators import ALL, Exact

LOGITS = torch.tensor([[0.3, -1.2, 0.8, 0.1], [2.0, 0.0, -3.0, 0.5]])
K, LARGE = 1024, 32_768


def pair(**given):
    return gengs.OneHot(**given), OneHotCategorical(**given)


# --------------------------------------------------------------------- it is torch's distribution


@pytest.mark.parametrize("given", [{"logits": LOGITS}, {"probs": LOGITS.softmax(-1)}])
def test_agrees_with_torch(given):
    ours, theirs = pair(**given)
    assert ours.batch_shape == (2,) and ours.event_shape == (4,)
    for name in ("logits", "probs", "mean", "mode", "variance"):
        torch.testing.assert_close(getattr(ours, name), getattr(theirs, name))
    torch.testing.assert_close(ours.entropy(), theirs.entropy())
    values = torch.eye(4).unsqueeze(1).expand(4, 2, 4)
    torch.testing.assert_close(ours.log_prob(values), theirs.log_prob(values))
    torch.testing.assert_close(ours.expand((3, 2)).probs, theirs.expand((3, 2)).probs)
    torch.testing.assert_close(ours.enumerate_support(), theirs.enumerate_support())
    assert ours.sample((5,)).shape == (5, 2, 4)


def test_the_first_argument_is_the_logits():
    torch.testing.assert_close(gengs.OneHot(LOGITS).logits, LOGITS.log_softmax(-1))


def test_divergences():
    ours, theirs = pair(logits=LOGITS)
    other, torchs = pair(logits=LOGITS.flip(-1))
    wanted = kl_divergence(theirs, torchs)
    torch.testing.assert_close(kl_divergence(ours, other), wanted)
    torch.testing.assert_close(kl_divergence(ours, torchs), wanted)
    torch.testing.assert_close(kl_divergence(theirs, other), wanted)


def test_frequencies():
    """6 standard errors of eight frequencies: 2e-8 false alarms."""
    torch.manual_seed(0)
    q = gengs.OneHot(LOGITS)
    z = q.sample((20_000,))
    assert ((z == 0) | (z == 1)).all() and (z.sum(-1) == 1).all()
    error = (q.probs * (1 - q.probs) / 20_000).sqrt()
    assert ((z.mean(0) - q.probs).abs() < 6 * error).all()


def test_impossible_categories_are_never_drawn():
    logits = torch.tensor([0.0, -torch.inf, 1.0]).requires_grad_()
    q = gengs.OneHot(logits)
    z = gengs.rsample(q, (1000,))
    assert (z[:, 1] == 0).all()
    (found,) = torch.autograd.grad(z.square().sum(), logits)
    assert found.isfinite().all()


# --------------------------------------------------------------------------------- many categories


@pytest.mark.parametrize("k", [K, LARGE])
@pytest.mark.parametrize("seed", range(5))
def test_many_categories_never_raise(k, seed):
    """torch's own check of the simplex fails here, by rounding."""
    torch.manual_seed(seed)
    logits = (5 * torch.randn(4, k)).requires_grad_()
    q = gengs.OneHot(logits=logits)
    for z in (
        gengs.rsample(q),
        gengs.gumbel_relax(q, 0.5),
        gengs.gumbel_relax(q, 0.5, hard=True),
        gengs.gumbel_relax(logits=logits, tau=0.5),
        gengs.Relaxed(0.5, q).rsample(),
    ):
        (found,) = torch.autograd.grad(
            (z * torch.linspace(-1, 1, k)).sum(), logits, retain_graph=True
        )
        assert z.shape == (4, k) and found.isfinite().all() and found.count_nonzero()
    assert q.log_prob(q.sample()).isfinite().all() and q.entropy().isfinite().all()


def test_training_with_many_categories():
    """Thirty steps, with probabilities from flat to sure."""
    torch.manual_seed(0)
    logits = torch.randn(16, K, requires_grad=True)
    target = torch.randn(K)
    optimiser = torch.optim.Adam([logits], lr=1.0)
    for _ in range(30):
        optimiser.zero_grad()
        q = gengs.OneHot(logits=logits)
        loss = gengs.ReinMax().expect(lambda z: z @ target, q).sum()
        loss = loss + 0.01 * kl_divergence(q, gengs.OneHot(torch.zeros(16, K))).sum()
        loss.backward()
        optimiser.step()
    assert (gengs.OneHot(logits).probs @ target).mean() < target.mean() - 1


def test_the_atoms_of_many_categories_are_not_made():
    """A table of 32,768 vectors would be 4 GiB."""
    q = gengs.OneHot(torch.zeros(2, LARGE, requires_grad=True))
    for z in (gengs.rsample(q), gengs.GenGS().draw(q), gengs.StraightThroughMean().draw(q)):
        assert z.shape == (2, LARGE)
    assert gengs.RLOO().expect(lambda z: z[..., 0], q).shape == (2,)


# ------------------------------------------------------------------------------------- estimators

WEIGHTS = torch.tensor([0.5, -1.0, 2.0, 1.0], dtype=torch.float64)


def cost(z):
    return ((z * WEIGHTS).sum(-1).sum(-1) - 0.3).square()


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_every_estimator_is_that_of_the_torch_distribution(kind):
    """Exact where it is unbiased, or exact for quadratics; else as on torch's own. 5.5 errors."""
    many = 4_000

    def gradients(estimator, law, number):
        logits = LOGITS.double().expand(number, 2, 4).clone().requires_grad_()
        value = estimator.expect(cost, Independent(law(logits=logits), 1))
        return torch.autograd.grad(value.sum(), logits)[0]

    if kind is gengs.ArrivalTimes:
        with pytest.raises(TypeError, match="OneHot"):
            gradients(kind(), gengs.OneHot, 2)
        return
    torch.manual_seed(0)
    found = gradients(kind(), gengs.OneHot, many)
    exact = kind is not gengs.VIMCO and (kind.unbiased or kind in (gengs.MidCDF, gengs.ReinMax))
    if exact:
        wanted = gradients(Exact(), OneHotCategorical, 1)[0]
        error = found.std(0) / many**0.5
    else:
        theirs = gradients(kind(), OneHotCategorical, many)
        wanted, error = theirs.mean(0), ((found.var(0) + theirs.var(0)) / many).sqrt()
    assert ((found.mean(0) - wanted).abs() < 5.5 * error + 1e-9).all()


# ------------------------------------------------------------------------------------------ logits


def test_gumbel_relax_of_logits_is_torchs():
    """The same law: means of relaxed weights agree. 6 standard errors, 8 means: 2e-8."""
    torch.manual_seed(0)
    wide = LOGITS.expand(20_000, 2, 4)
    ours, theirs = gengs.gumbel_relax(logits=wide, tau=0.7), F.gumbel_softmax(wide, tau=0.7)
    error = (ours.var(0) / 20_000 + theirs.var(0) / 20_000).sqrt()
    assert ((ours.mean(0) - theirs.mean(0)).abs() < 6 * error).all()
    hard = gengs.gumbel_relax(logits=wide, tau=0.7, hard=True)
    assert (hard.sum(-1) == 1).all() and (hard.max(-1).values == 1).all()
    assert gengs.gumbel_relax(logits=LOGITS, tau=0.7, dim=0).sum(0).allclose(torch.ones(4))


def test_gumbel_relax_takes_one_of_both():
    with pytest.raises(TypeError, match="distribution or `logits`"):
        gengs.gumbel_relax(tau=0.5)
    with pytest.raises(TypeError, match="distribution or `logits`"):
        gengs.gumbel_relax(gengs.OneHot(LOGITS), logits=LOGITS)
    with pytest.raises(TypeError, match="pass logits="):
        gengs.gumbel_relax(LOGITS, 0.5)


# ------------------------------------------------------------------------------------------ errors


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, "exactly one of"),
        ({"logits": LOGITS, "probs": LOGITS}, "exactly one of"),
        ({"logits": torch.tensor(0.0)}, "at least one category"),
        ({"logits": torch.tensor([0.0, torch.nan])}, "`logits` without NaN"),
        ({"logits": torch.full((3,), -torch.inf)}, "at least one possible category"),
        ({"logits": torch.tensor([0, 1])}, "floating-point `logits`, but got torch.int64"),
        ({"probs": torch.tensor([0.5, -0.5])}, "`probs`"),
        ({"probs": torch.zeros(3)}, "at least one possible category"),
    ],
)
def test_errors(given, sentence):
    with pytest.raises(ValueError, match=sentence):
        gengs.OneHot(**given)


@pytest.mark.usefixtures("torch_validation_off")
@pytest.mark.parametrize("build", [gengs.OneHot, OneHotCategorical])
def test_nan_logits_that_nobody_checks_draw_nan(build):
    """Never a vector of zeros, which a model would take for a code."""
    logits = torch.tensor([[torch.nan, 0.0, 1.0], [0.0, 50.0, 0.0]])
    q = build(logits=logits, validate_args=False)
    drawn = [gengs.rsample(q), gengs.rsample(q, (2,)), gengs.rsample(q, antithetic=True)]
    if build is gengs.OneHot:  # torch's own refuses to draw
        drawn.append(q.sample())
    for z in drawn:
        assert z[..., 0, :].isnan().any(-1).all()
        assert torch.equal(z[..., 1, :], torch.tensor([0.0, 1.0, 0.0]).expand_as(z[..., 1, :]))
