"""Every estimator of the catalogue, by the public conformance kit and by what its facts say."""

import inspect
from contextlib import nullcontext

import pytest
import torch
from torch.distributions import Categorical, Independent, Multinomial, Normal, Poisson

import gengs
from gengs import Finite, truncate
from gengs.lab.testing import check_estimator, check_law

NAMES = [kind.__name__ for kind in gengs.estimators.ALL]


@pytest.mark.parametrize("kind", gengs.estimators.ALL, ids=NAMES)
def test_conformance(kind):
    # False-alarm rate 1e-6 per estimator; 8000 gradients find a bias of 8 % of their deviation.
    check_estimator(kind(), gradients=8_000)


@pytest.mark.parametrize("kind", gengs.estimators.ALL, ids=NAMES)
def test_the_facts_are_complete(kind):
    facts = next(row for row in gengs.catalogue() if row["estimator"] == kind.__name__)
    assert isinstance(facts["unbiased"], bool)
    assert isinstance(facts["needs cost gradient"], bool)
    assert facts["reference"] and facts["needs"] and 1600 < facts["year"] < 2100
    assert kind().learns == any(True for _ in _trained(kind()).parameters())
    assert kind.__doc__ and kind.__module__ in NAMES_OF_MODULES


@pytest.mark.parametrize("kind", [kind for kind in gengs.estimators.ALL if kind is not gengs.Exact])
@pytest.mark.parametrize("settings", [{}, {"samples": 3}], ids=["as it is", "three draws"])
def test_the_evaluations_are_counted(kind, settings):
    if set(settings) - set(inspect.signature(kind).parameters):
        pytest.skip("its draws are called k")
    estimator, seen = kind(**settings), []

    def cost(z):
        seen.append(len(z))
        return z.square()

    estimator.expect(cost, Poisson(torch.tensor(2.0, requires_grad=True)))
    assert sum(seen) == estimator.evaluations


NAMES_OF_MODULES = {kind.__module__ for kind in gengs.estimators.ALL}


def _trained(estimator):
    """After one call the lazy parts exist."""
    q = Poisson(torch.tensor([1.0, 2.0], requires_grad=True))
    estimator.expect(lambda z: z.square(), q)
    return estimator


@pytest.mark.parametrize("kind", gengs.estimators.ALL, ids=NAMES)
def test_raw_laws_scalars_vectors_and_batches(kind):
    rate = torch.full((4, 2, 3), 1.5, requires_grad=True)
    for q, batch in (
        (Poisson(rate), (4, 2, 3)),
        (Independent(Poisson(rate), 1), (4, 2)),
        (Independent(Poisson(rate), 2), (4,)),
    ):
        extra = len(rate.shape) - len(batch)

        def cost(z, extra=extra):
            squares = z.square()
            return squares.sum(tuple(range(-extra, 0))) if extra else squares

        if kind is gengs.Exact and extra == 2:
            continue  # six factors of a dozen atoms: too many outcomes, and it says so
        value = kind().expect(cost, q)
        assert value.shape == batch
        (gradient,) = torch.autograd.grad(value.sum(), rate)
        assert gradient.shape == rate.shape and torch.isfinite(gradient).all()


@pytest.mark.parametrize("kind", gengs.estimators.ALL, ids=NAMES)
def test_a_cost_may_change_its_values_in_place(kind):
    def gradient(cost):
        torch.manual_seed(0)
        rate = torch.tensor([[1.0, 2.0]], requires_grad=True)
        kind().expect(cost, Independent(Poisson(rate), 1)).sum().backward()
        return rate.grad

    def in_place(z):
        z[..., 0] += 1
        return z.mul_(2).square().sum(-1)

    one = torch.tensor([1.0, 0.0])
    assert torch.equal(gradient(in_place), gradient(lambda z: (2 * (z + one)).square().sum(-1)))


@pytest.mark.parametrize("kind", gengs.estimators.ALL, ids=NAMES)
def test_no_grad_and_eval_give_the_discrete_value(kind):
    torch.manual_seed(0)
    q = truncate(Poisson(torch.full((3,), 2.0, requires_grad=True)), 9)
    seen = []

    def cost(z):
        seen.append(z)
        return z.square()

    with torch.no_grad():
        value = kind().expect(cost, q)
    assert not value.requires_grad
    kind().eval().expect(cost, q)
    for z in seen:
        assert (z == z.round()).all()


@pytest.mark.parametrize(
    "kind", [kind for kind in gengs.estimators.ALL if kind.learns], ids=lambda kind: kind.__name__
)
def test_a_maximised_expectation_trains_the_estimator_all_the_same(kind):
    """Own parts go down their loss whatever sign the caller gives the value."""
    torch.manual_seed(0)
    estimator = _trained(kind())
    q = Poisson(torch.full((6,), 2.0, requires_grad=True))
    gradients = []
    for sign in (1, -1):
        torch.manual_seed(1)
        state = {name: tensor.clone() for name, tensor in estimator.state_dict().items()}
        estimator.zero_grad()
        (sign * estimator.expect(lambda z: z.square(), q)).sum().backward()
        gradients.append([p.grad.clone() for p in estimator.parameters() if p.grad is not None])
        estimator.load_state_dict(state)
    assert any(g.abs().sum() > 0 for g in gradients[0])
    for up, down in zip(*gradients, strict=True):
        torch.testing.assert_close(up, down)


@pytest.mark.parametrize(
    "kind",  # all but VIMCO, which has another objective, and ArrivalTimes, for raw Poissons only
    [kind for kind in gengs.estimators.ALL if kind not in (gengs.VIMCO, gengs.ArrivalTimes)],
    ids=lambda kind: kind.__name__,
)
def test_two_layers_nest(kind):
    """z1 ~ q1, z2 ~ q2(z1): the mean gradient of the outer parameter against enumeration.

    False-alarm rate 1e-6; the deviation allowed for estimators with a bias is wide, as it only has
    to tell a working gradient from a missing one.
    """
    theta = torch.tensor([0.3, -0.2, 0.4], dtype=torch.float64, requires_grad=True)
    atoms = torch.arange(3, dtype=torch.float64)
    replicates = 2 if kind is gengs.Exact else 20_000

    def inner_law(z):
        slope = torch.tensor([0.5, 0.1, -0.6], dtype=torch.float64)
        return Finite(atoms, logits=(z.unsqueeze(-1) - 0.7) * slope)

    def expectation(outer, inner, q):
        return outer.expect(
            lambda z1: inner.expect(lambda z2: (z2 - 0.4 * z1).square() + z1, inner_law(z1)), q
        )

    exact = expectation(gengs.Exact(), gengs.Exact(), Finite(atoms, logits=theta))
    (truth,) = torch.autograd.grad(exact, theta)
    table = theta.detach().expand(replicates, 3).clone().requires_grad_()
    torch.manual_seed(0)
    value = expectation(kind(), kind(), Finite(atoms, logits=table))
    (gradients,) = torch.autograd.grad(value.sum(), table)
    error = gradients.std(0) / replicates**0.5 + 1e-9
    off = (gradients.mean(0) - truth).abs()
    if kind.unbiased:
        assert (off < 5.2 * error).all(), (gradients.mean(0), truth)
    elif kind is gengs.StraightThroughMean:  # right for linear costs only, and this one is curved
        assert (torch.isfinite(gradients) & (gradients != 0)).any(0).all()
    else:
        assert (off < 5.2 * error + 0.5 * truth.abs().max()).all(), (gradients.mean(0), truth)


def test_vector_atoms_are_served_or_declined_with_advice():
    q = Multinomial(3, torch.tensor([0.2, 0.3, 0.5], requires_grad=True))
    for kind in gengs.estimators.ALL:
        declined = kind is gengs.ArrivalTimes
        advice = pytest.raises(TypeError, match=r"use |do without") if declined else nullcontext()
        with advice:
            value = kind().expect(lambda z: (z * torch.tensor([1.0, 2.0, 3.0])).sum(-1), q)
            assert value.shape == ()


def test_a_continuous_law_is_declined():
    q = Normal(torch.tensor(0.0, requires_grad=True), 1.0)
    for kind in (gengs.GenGS, gengs.UnOrd, gengs.REBAR, gengs.MidCDF):
        with pytest.raises(TypeError, match="PMF"):
            kind().expect(lambda z: z.square(), q)


def test_a_gradient_that_is_not_finite_raises():
    rate = torch.tensor([1.0, 2.0], requires_grad=True)
    value = gengs.GenGS(0.5).expect(lambda z: z.square(), truncate(Poisson(rate), 9))
    with pytest.raises(FloatingPointError, match="GenGS"):
        (value * torch.tensor([1.0, float("nan")])).sum().backward()


def test_the_kit_finds_a_biased_estimator_that_claims_to_be_unbiased():
    class Liar(gengs.GenGS):
        unbiased = True

    with pytest.raises(AssertionError, match="standard errors off"):
        check_estimator(Liar(1.0), gradients=5_000)


def test_the_kit_finds_a_law_whose_draws_do_not_follow_its_pmf():
    class Wrong(Categorical):
        def sample(self, sample_shape=torch.Size()):
            return super().sample(sample_shape).clamp_min(1)

    with pytest.raises(AssertionError):
        check_law(Wrong(torch.tensor([0.2, 0.3, 0.5])))


@pytest.mark.parametrize("samples", [0, -1, 1.5, True])
def test_samples_must_be_a_positive_integer(samples):
    with pytest.raises(ValueError, match=r"GenGS .* `samples`"):
        gengs.GenGS(0.5, samples=samples)
