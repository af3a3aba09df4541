"""SVI with our laws finds posteriors that are known, and refuses what it cannot differentiate.

Latent counts z ~ Poisson(4), observed with noise, x ~ Normal(z, 1). The posterior of each count is
a table, known by enumeration, and the guide (16 logits) can express it. The cost is quadratic in z,
so the mid-CDF gradient is exact, and SVI must arrive; straight-through is biased, and must come
near. Distances are in total variation; seeds are fixed, so nothing here is left to chance.
"""

import pyro
import pytest
import torch
from pyro import poutine
from pyro.distributions import Normal, Poisson
from pyro.infer import SVI, Trace_ELBO, TraceEnum_ELBO, TraceMeanField_ELBO
from torch.distributions import kl_divergence

import gengs

X = torch.tensor([0.4, 3.3, 6.3])
ATOMS = torch.arange(16.0)
JOINT = Poisson(4.0).log_prob(ATOMS) + Normal(ATOMS, 1.0).log_prob(X.unsqueeze(-1))  # (3, 16)
POSTERIOR = JOINT.softmax(-1)


@pytest.fixture(autouse=True)
def _fresh_parameters():
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    yield
    pyro.clear_param_store()


def model(x):
    with pyro.plate("data", len(x), dim=-1):
        z = pyro.sample("z", Poisson(torch.tensor(4.0)))
        pyro.sample("x", Normal(z, 1.0), obs=x)


def table_guide(wrap):
    def guide(x):
        logits = pyro.param("logits", torch.zeros(len(x), len(ATOMS)))
        with pyro.plate("data", len(x), dim=-1):
            pyro.sample("z", wrap(gengs.pyro.Finite(ATOMS, logits=logits)))

    return guide


def fit(model, guide, elbo=TraceMeanField_ELBO, steps=400, rate=0.3, particles=32):
    schedule = pyro.optim.ExponentialLR(
        {
            "optimizer": torch.optim.Adam,
            "optim_args": {"lr": rate},
            "gamma": 0.01 ** (1 / steps),
        }
    )
    loss = elbo(num_particles=particles, vectorize_particles=True, max_plate_nesting=1)
    svi = SVI(model, guide, schedule, loss)
    for _ in range(steps):
        svi.step(X)
        schedule.step()


def distance_from_posterior():
    found = pyro.param("logits").detach().softmax(-1)
    return float((found - POSTERIOR).abs().sum(-1).max() / 2)


def test_midcdf_guide_reaches_the_exact_posterior():
    fit(model, table_guide(gengs.pyro.MidCDFLaw))
    assert distance_from_posterior() < 0.02  # 0.012 when written


def test_straight_through_guide_comes_near():
    fit(model, table_guide(lambda law: gengs.pyro.MidCDFLaw(law, by=gengs.GenGS(0.3, hard=True))))
    assert 0.02 < distance_from_posterior() < 0.15  # 0.12 when written: it is biased


@pytest.mark.parametrize("elbo", [TraceMeanField_ELBO, Trace_ELBO])
def test_poisson_guide_reaches_the_best_poisson(elbo):
    """ELBO(λ) = -((x - λ)² + λ)/2 - KL(λ, 4) has its maximum where x - λ - 1/2 = log(λ/4)."""

    def guide(x):
        rate = pyro.param("log_rate", torch.ones(len(x))).exp()
        with pyro.plate("data", len(x), dim=-1):
            pyro.sample("z", gengs.pyro.MidCDFLaw(Poisson(rate)))

    fit(model, guide, elbo, steps=150, rate=0.2, particles=128)
    best = torch.full_like(X, 1.0)
    for _ in range(200):  # Newton on a decreasing function
        best = best + (X - best - 0.5 - (best / 4).log()) / (1 + 1 / best)
    error = (pyro.param("log_rate").detach() - best.log()).abs().max()
    # Trace_ELBO differentiates log z! along z: right up to the trapezoid rule's error
    assert error < (0.02 if elbo is TraceMeanField_ELBO else 0.1)


def test_trace_elbo_refuses_to_drop_a_gradient():
    for wrap in (
        gengs.pyro.MidCDFLaw,
        lambda law: gengs.pyro.MidCDFLaw(law, by=gengs.GenGS(0.5, hard=True)),
    ):
        pyro.clear_param_store()
        with pytest.raises(RuntimeError, match="use TraceMeanField_ELBO"):
            fit(model, table_guide(wrap), Trace_ELBO, steps=1)


def test_a_table_as_prior_in_the_model():
    def truncated(x):
        with pyro.plate("data", len(x), dim=-1):
            z = pyro.sample("z", gengs.pyro.truncate(Poisson(torch.tensor(4.0)), 16))
            pyro.sample("x", Normal(z, 1.0), obs=x)

    fit(truncated, table_guide(gengs.pyro.MidCDFLaw))
    assert distance_from_posterior() < 0.02


def test_a_finite_law_is_enumerated_exactly():
    def enumerated(x):
        with pyro.plate("data", len(x), dim=-1):
            law = gengs.pyro.truncate(Poisson(torch.tensor(4.0)), 16)
            z = pyro.sample("z", law, infer={"enumerate": "parallel"})
            pyro.sample("x", Normal(z, 1.0), obs=x)

    law = gengs.truncate(Poisson(torch.tensor(4.0)), 16)
    joint = law.log_prob(ATOMS) + Normal(ATOMS, 1.0).log_prob(X.unsqueeze(-1))
    loss = TraceEnum_ELBO(max_plate_nesting=1).loss(enumerated, lambda x: None, X)
    assert loss == pytest.approx(-float(joint.logsumexp(-1).sum()), rel=1e-5)


def test_subsampling_and_masks_scale_the_divergence():
    """The ELBO of a masked, subsampled plate is the scaled ELBO of what is left."""
    keep = torch.tensor([True, False])
    law = gengs.pyro.MidCDFLaw(gengs.pyro.truncate(Poisson(torch.tensor(3.0)), 16))

    def site(law):
        def sample(x):
            plate = pyro.plate("data", 3, subsample=torch.tensor([0, 2]), dim=-1)
            with plate, poutine.mask(mask=keep):
                pyro.sample("z", law)

        return sample

    prior = gengs.pyro.truncate(Poisson(torch.tensor(4.0)), 16)
    loss = TraceMeanField_ELBO().loss(site(prior), site(law), X)
    divergence = kl_divergence(gengs.truncate(Poisson(torch.tensor(3.0)), 16), prior)
    assert loss == pytest.approx(3 / 2 * float(divergence), rel=1e-5)


def test_the_laws_are_pyro_laws():
    rate = torch.tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], requires_grad=True)
    table = gengs.pyro.truncate(Poisson(rate), 12)
    for law in (table, gengs.pyro.MidCDFLaw(table)):
        vector = law.to_event(1)
        assert vector.event_shape == (3,) and vector.batch_shape == (2,)
        assert vector.expand_by([5]).sample().shape == (5, 2, 3)
        assert vector.log_prob(vector.sample()).shape == (2,)
        torch.testing.assert_close(law.expand_by([5]).mean, table.mean.expand(5, 2, 3))
    assert gengs.pyro.truncate(Poisson(rate), 12).certificate.lost_mass.shape == (2, 3)


@pytest.mark.parametrize(
    ("ours", "torchs"),
    [
        (pyro.distributions.Poisson, torch.distributions.Poisson),
        (pyro.distributions.Geometric, torch.distributions.Geometric),
        (
            lambda p: pyro.distributions.Binomial(9, p),
            lambda p: torch.distributions.Binomial(9, p),
        ),
        (
            lambda x: pyro.distributions.Geometric(logits=x),
            lambda x: torch.distributions.Geometric(logits=x),
        ),
    ],
)
def test_pyros_own_families_keep_their_closed_forms(ours, torchs):
    parameter = torch.tensor([0.2, 0.7], requires_grad=True)
    law = gengs.pyro.MidCDFLaw(ours(parameter)).law
    assert type(gengs.law_of(law)) is type(gengs.law_of(torchs(parameter)))
    z = law.sample((100,))
    torch.testing.assert_close(law.log_prob(z), ours(parameter).log_prob(z))
    drawn = gengs.pyro.MidCDFLaw(ours(parameter)).rsample()
    (gradient,) = torch.autograd.grad(drawn.sum(), parameter)
    assert gradient.abs().min() > 0
    cut = gengs.pyro.truncate(ours(parameter), 8).probs
    torch.testing.assert_close(cut, gengs.truncate(torchs(parameter), 8).probs)


def test_wrong_laws_get_a_word():
    with pytest.raises(TypeError, match=r"a distribution.* float"):
        gengs.pyro.MidCDFLaw(3.0)
    with pytest.raises(TypeError, match="of one draw"):
        gengs.pyro.MidCDFLaw(Poisson(torch.ones(3)).to_event(1))


def sir(theta, replicates, law):
    """A chain-binomial epidemic in a plate; ``law`` is what each step draws from."""
    people = 1000.0
    infected = torch.full((replicates,), 50.0, dtype=torch.float64)
    susceptible = people - infected
    with pyro.plate("replicates", replicates):
        for t in range(12):
            risk = 1 - torch.exp(-theta[0] * infected / people)
            recovery = (1 - torch.exp(-theta[1])).expand(replicates)
            new = pyro.sample(f"new_{t}", law(pyro.distributions.Binomial(susceptible, risk)))
            gone = pyro.sample(f"gone_{t}", law(pyro.distributions.Binomial(infected, recovery)))
            susceptible, infected = susceptible - new, infected + new - gone
    return infected / people


def test_a_chain_binomial_epidemic_with_plates():
    """Within 2 % of finite differences, by MidCDFLaw and by a block around the plain model.

    The path varies by 0.2 % here and the reference by 0.5 %.
    """
    theta = torch.tensor([0.6, 0.2], dtype=torch.float64, requires_grad=True)
    exact = []
    with torch.no_grad():
        for i in range(2):
            sides = []
            for far in (1, -1):
                moved = theta.clone()
                moved[i] += far * 0.02
                sides.append(sir(moved, 200_000, lambda law: law).mean())
            exact.append((sides[0] - sides[1]) / 0.04)
    exact = torch.stack(exact)
    by_law = torch.autograd.grad(sir(theta, 4000, gengs.pyro.MidCDFLaw).mean(), theta)[0]
    with gengs.differentiable() as program:
        share = sir(theta, 4000, lambda law: law)
    by_block = torch.autograd.grad(program.loss(share).mean(), theta)[0]
    for found in (by_law, by_block):
        assert (found - exact).norm() < 0.02 * exact.norm()
    assert len(program.sites) == 24


def test_vectors_and_compounds_are_laws_too():
    from pyro.distributions import BetaBinomial, DirichletMultinomial, Multinomial

    a = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    for law, event in (
        (Multinomial(4, probs=a / a.sum()), (3,)),
        (DirichletMultinomial(a, torch.tensor(4.0)), (3,)),
        (BetaBinomial(a, a + 1, torch.tensor(4.0)), ()),
    ):
        moving = gengs.pyro.MidCDFLaw(law)
        z = moving.expand((2, *law.batch_shape)).rsample()
        assert moving.event_shape == event and z.shape == (2, *law.batch_shape, *event)
        assert torch.autograd.grad(z.square().sum(), a)[0].abs().sum() > 0
    hard = gengs.pyro.MidCDFLaw(pyro.distributions.Poisson(a), by=gengs.StraightThroughMean())
    assert (torch.autograd.grad(hard.expand((5, 3)).rsample().sum(), a)[0] == 5).all()


def test_shapes_are_inferred_from_shapes():
    for atoms, logits, event_dim in [((4,), (3, 4), 0), ((3, 4), (4,), 0), ((4, 2), (3, 4), 1)]:
        q = gengs.pyro.Finite(
            torch.arange(float(torch.Size(atoms).numel())).reshape(atoms),
            logits=torch.zeros(logits),
            event_dim=event_dim,
        )
        found = gengs.pyro.Finite.infer_shapes(atoms=atoms, logits=logits, event_dim=event_dim)
        assert found == (q.batch_shape, q.event_shape)
    with pytest.raises(ValueError, match="`logits` or `probs`"):
        gengs.pyro.Finite.infer_shapes(atoms=(4,))
    with pytest.raises(NotImplementedError, match="made of a distribution"):
        gengs.pyro.MidCDFLaw.infer_shapes(law=())
