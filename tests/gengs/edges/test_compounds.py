"""Mixtures of anything, shifted laws and batches with a total in common can be cut."""

import numpy as np
import pytest
import torch
from reference import binomial, mixture, negative_binomial, poisson, weighed
from scipy import stats
from settings import SETTINGS, draw
from torch.distributions import (
    AffineTransform,
    Binomial,
    Categorical,
    Geometric,
    MixtureSameFamily,
    NegativeBinomial,
    Poisson,
    TransformedDistribution,
    Uniform,
)

import gengs

WEIGHTS = torch.tensor([0.4, 0.6], dtype=torch.float64)
ATOMS = torch.arange(4.0, dtype=torch.float64)
ROWS = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]], dtype=torch.float64)


def mixed(parts):
    return MixtureSameFamily(Categorical(WEIGHTS.to(torch.float64)), parts)


def pair(first, second):
    return torch.tensor([first, second], dtype=torch.float64)


def rows(tables):
    size = max(len(table.probs) for table in tables)
    padded = [np.pad(table.probs, (0, size - len(table.probs))) for table in tables]
    return WEIGHTS.numpy() @ np.stack(padded)


def lumped(probs, n):
    """A PMF on 0, 1, … cut to n atoms."""
    return np.append(probs[: n - 1], probs[n - 1 :].sum())


MIXTURES = {
    "binomials": (
        lambda: mixed(Binomial(5, pair(0.2, 0.7))),
        lambda: rows([binomial(0.2, 5), binomial(0.7, 5)]),
    ),
    "poissons": (
        lambda: mixed(Poisson(pair(1.0, 5.0))),
        lambda: rows([poisson(1.0), poisson(5.0)]),
    ),
    "categoricals": (lambda: mixed(Categorical(ROWS)), lambda: WEIGHTS.numpy() @ ROWS.numpy()),
    "finite laws": (
        lambda: mixed(gengs.Finite(ATOMS, probs=ROWS)),
        lambda: rows([weighed(ATOMS.numpy(), row) for row in ROWS.numpy()]),
    ),
    "cut poissons": (
        lambda: mixed(gengs.truncate(Poisson(pair(1.0, 5.0)), 6)),
        lambda: rows([poisson(1.0), poisson(5.0)]),
    ),
    "cut geometrics": (
        lambda: mixed(gengs.truncate(Geometric(pair(0.3, 0.7)), 6)),
        lambda: (
            WEIGHTS.numpy() @ np.stack([stats.geom.pmf(np.arange(1, 200), p) for p in (0.3, 0.7)])
        ),
    ),
}


@pytest.mark.parametrize(("build", "probs"), MIXTURES.values(), ids=list(MIXTURES))
def test_a_mixture_is_cut(build, probs):
    law = gengs.truncate(build(), 4)
    np.testing.assert_allclose(law.probs.numpy(), lumped(probs(), 4), atol=1e-9)


@pytest.mark.parametrize("kind", ["finite laws", "categoricals", "cut poissons", "binomials"])
def test_a_mixture_of_finite_laws_needs_no_rule(kind):
    build, probs = MIXTURES[kind]
    found = gengs.truncate(build())
    wanted = lumped(probs(), found.num_atoms)
    np.testing.assert_allclose(found.probs.numpy(), wanted, atol=1e-9)


@pytest.mark.parametrize("kind", list(MIXTURES))
def test_a_mixture_moves(kind):
    build, _ = MIXTURES[kind]
    z = draw(build(), (50,))
    assert z.shape == (50,) and (z == z.round()).all()


def test_the_gradient_of_a_mixture_of_finite_laws():
    weights = WEIGHTS.clone().requires_grad_()
    probs = ROWS.clone().requires_grad_()
    law = MixtureSameFamily(Categorical(weights), gengs.Finite(ATOMS, probs=probs))
    value = gengs.Exact().expect(lambda z: z.square(), law)
    found = torch.autograd.grad(value, (weights, probs))
    tables = [weighed(ATOMS.numpy(), row) for row in ROWS.numpy()]
    single = [table.expectation(lambda z: z.square()) for table in tables]
    means = np.array([value for value, _ in single])
    np.testing.assert_allclose(found[0].numpy(), means - WEIGHTS.numpy() @ means, atol=1e-9)
    wanted = [w * slope["probs"] for w, (_, slope) in zip(WEIGHTS.numpy(), single, strict=True)]
    np.testing.assert_allclose(found[1].numpy(), np.stack(wanted), atol=1e-9)


def test_the_gradient_of_a_mixture_of_binomials():
    weights, p = WEIGHTS.clone().requires_grad_(), pair(0.2, 0.7).requires_grad_()
    law = gengs.truncate(MixtureSameFamily(Categorical(weights), Binomial(5, p)))
    found = torch.autograd.grad(gengs.Exact().expect(lambda z: z.square(), law), (weights, p))
    table = mixture(WEIGHTS.numpy(), [binomial(0.2, 5), binomial(0.7, 5)], "probs")
    _, wanted = table.expectation(lambda z: z.square())
    np.testing.assert_allclose(found[0].numpy(), wanted["weights"], atol=1e-9)
    np.testing.assert_allclose(found[1].numpy(), wanted["probs"], atol=1e-9)


@pytest.mark.parametrize(
    ("weights", "rates"),
    [((0.4, 0.6), (0.0, 3.0)), ((0.0, 1.0), (2.0, 3.0)), ((0.0, 1.0), (2.0, 0.0))],
    ids=["a rate of 0", "a weight of 0", "both"],
)
def test_the_gradient_of_a_mixture_at_a_boundary(weights, rates):
    def cost(z):
        return (z - 1.3).square()

    table = mixture(np.array(weights), [poisson(rate) for rate in rates], "rate")
    _, wanted = table.expectation(cost)
    ways = [lambda law: gengs.Exact().expect(cost, law)]
    if rates[1]:  # some component can draw all values: then the score is right, too
        k = torch.arange(40, dtype=torch.float64)

        def by_score(law):
            log_prob = gengs.law_of(law).log_prob(k)
            return (log_prob.detach().exp() * cost(k) * log_prob).sum()

        ways.append(by_score)
    for way in ways:
        parameters = pair(*weights).requires_grad_(), pair(*rates).requires_grad_()
        law = MixtureSameFamily(Categorical(parameters[0]), Poisson(parameters[1]))
        for found, name in zip(torch.autograd.grad(way(law), parameters), wanted, strict=True):
            np.testing.assert_allclose(found.numpy(), wanted[name], atol=1e-6)


def test_the_score_of_a_mixture_of_categoricals_with_a_probability_of_zero():
    def value(law):
        log_prob = gengs.law_of(law).log_prob(ATOMS[:3])
        return (log_prob.detach().exp() * ATOMS[:3].square() * log_prob).sum()

    probs = torch.tensor([[0.0, 0.4, 0.6], [0.5, 0.5, 0.0]], dtype=torch.float64).requires_grad_()
    law = MixtureSameFamily(Categorical(WEIGHTS), Categorical(probs))
    (found,) = torch.autograd.grad(value(law), probs)
    squares = ATOMS[:3].square()
    means = (probs.detach() * squares).sum(-1, keepdim=True)
    torch.testing.assert_close(found, WEIGHTS.unsqueeze(-1) * (squares - means))


def test_the_score_of_a_mixture_of_unequal_totals():
    p = pair(0.3, 0.6)
    law = MixtureSameFamily(Categorical(WEIGHTS), Binomial(pair(2, 5), p))
    k = torch.arange(6, dtype=torch.float64)
    wanted = rows([binomial(0.3, 2), binomial(0.6, 5)])
    np.testing.assert_allclose(gengs.law_of(law).log_prob(k).exp().numpy(), wanted, atol=1e-9)


# ------------------------------------------------------------------------------------ shifted laws


def shifted(rate, by=2.0, scale=1.0):
    return TransformedDistribution(
        Poisson(rate), [AffineTransform(torch.tensor(by).to(rate), scale)], validate_args=False
    )


def test_a_shifted_poisson_is_cut():
    rate = torch.tensor(1.5, dtype=torch.float64)
    law = gengs.truncate(shifted(rate), low=2, high=7)
    assert law.atoms.tolist() == [2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(law.probs.numpy(), lumped(poisson(1.5).probs, 6), atol=1e-9)


def test_a_shifted_poisson_is_differentiated():
    rate = torch.full((3000,), 1.5, dtype=torch.float64, requires_grad=True)
    for estimator in (gengs.Exact(), gengs.MidCDF()):
        value = estimator.expect(lambda z: z.square(), shifted(rate))
        (found,) = torch.autograd.grad(value.mean(), rate)
        # E (X + 2)^2 = λ + (λ + 2)^2; the spread of one gradient is about 14
        assert abs(found.sum().item() - (1 + 2 * 3.5)) < (1e-4 if estimator.evaluations == 0 else 2)


@pytest.mark.parametrize("level", [1, 2, 5])
def test_a_batch_with_one_total(level):
    p = torch.tensor([[0.1, 0.3, 0.5], [0.2, 0.4, 0.6]], dtype=torch.float64)
    law = gengs.truncate(NegativeBinomial(3, p), level)
    assert law.batch_shape == (2, 3) and law.num_atoms == level
    wanted = [[lumped(negative_binomial(x, 3.0).probs, level) for x in row] for row in p.numpy()]
    np.testing.assert_allclose(law.probs.numpy(), np.array(wanted), atol=1e-9)


@pytest.mark.parametrize("level", [1, 2, 5])
@pytest.mark.parametrize(
    "build",
    [
        lambda p: Poisson(5 * p),
        Geometric,
        lambda p: Binomial(3, p),
        lambda p: NegativeBinomial(torch.tensor(3.0).to(p), p),
    ],
    ids=["poisson", "geometric", "binomial", "negative binomial"],
)
def test_every_family_is_cut_to_any_level(build, level):
    p = torch.tensor([[0.1, 0.3, 0.5], [0.2, 0.4, 0.6]], dtype=torch.float64)
    law = gengs.truncate(build(p), level)
    assert law.probs.shape == (2, 3, level)
    np.testing.assert_allclose(law.probs.sum(-1).numpy(), 1.0, atol=1e-9)


@pytest.mark.parametrize("scale", [1.0, 2.0])
@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "ArrivalTimes"])
def test_a_learned_shift_has_its_gradient_or_an_error(name, scale):
    """Only a draw moves with the transforms: a log-probability does not tell how values move."""
    many, rate = 20_000, torch.tensor(2.0, dtype=torch.float64)
    shift = torch.ones(many, dtype=torch.float64, requires_grad=True)
    q = TransformedDistribution(Poisson(rate.expand(many)), [AffineTransform(shift, scale)])
    estimator = SETTINGS[name].make()
    if name != "MidCDF":
        # a table of even numbers is refused whatever moves: there is none on integers
        sentence = "transforms" if scale == 1 else r"transforms|has support Real"
        with pytest.raises(TypeError, match=sentence):
            estimator.expect(lambda z: (z - 1.3).square(), q)
        return
    torch.manual_seed(0)
    estimator.expect(lambda z: (z - 1.3).square(), q).sum().backward()
    error = shift.grad.std() / many**0.5  # false-alarm rate 1e-7
    assert (shift.grad.mean() - 2 * (scale * 2 - 0.3)).abs() < 5.4 * error


def learned_shift():
    shift = torch.ones(3, dtype=torch.float64, requires_grad=True)
    return TransformedDistribution(
        Poisson(torch.full_like(shift, 2.0)), [AffineTransform(shift, 1)]
    )


def learned_total():
    total = torch.full((3,), 5.0, dtype=torch.float64, requires_grad=True)
    return Binomial(total, torch.full_like(total, 0.4))


@pytest.mark.parametrize("build", [learned_shift, learned_total])
def test_learned_values_are_no_matter_without_gradients(build):
    q = build()
    with torch.no_grad():
        table = gengs.truncate(q, tolerance=1e-6)
        value = gengs.Exact().expect(lambda z: z, q)
    torch.testing.assert_close(table.mean, value, rtol=1e-4, atol=0.0)
    with pytest.raises(TypeError, match="no gradient"):  # nothing was kept
        gengs.truncate(q, tolerance=1e-6)


@pytest.mark.parametrize("estimator", [gengs.RLOO(), gengs.NVIL(), gengs.VIMCO(2)], ids=repr)
def test_a_score_has_no_derivative_in_a_moving_end(estimator):
    end = torch.tensor(2.0, requires_grad=True)
    with pytest.raises(TypeError, match="ends of its support"):
        estimator.expect(lambda z: z.square(), Uniform(torch.tensor(0.0), end))
