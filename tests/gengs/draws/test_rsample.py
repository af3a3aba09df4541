"""Draws that carry a gradient in every parameter: against sums over all outcomes, in float64.

Given the outcome, the gradient is a number, so its expectation is a sum over outcomes: no draws, no
statistics. What has a continuous stage is averaged over many draws instead.
"""

import itertools
import math

import pyro.distributions as pyro
import pytest
import torch
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Independent,
    MixtureSameFamily,
    Multinomial,
    NegativeBinomial,
    OneHotCategorical,
    Poisson,
)
from torch.utils._python_dispatch import TorchDispatchMode

import gengs
from gengs import Finite, law_of, rsample
from gengs.laws.binomial import BinomialLaw


@pytest.fixture(autouse=True)
def double_precision(torch_validation_off):
    torch.set_default_dtype(torch.float64)


def number(x):
    return torch.tensor(x, dtype=torch.float64, requires_grad=True)


def quadratic(z):
    return (z - 2.6).square()


# ------------------------------------------------------------------------- families, all parameters

# the law of its parameters, where, and the largest outcome of any weight
FAMILIES = {
    "Poisson": (lambda rate: Poisson(rate), (3.0,), 60),
    "Binomial": (lambda n, p: Binomial(n, p), (7.0, 0.3), 7),
    "Binomial, logits": (lambda n, x: Binomial(n, logits=x), (7.0, -0.5), 7),
    "Bernoulli": (lambda p: Bernoulli(p), (0.3,), 1),
    "Bernoulli, logits": (lambda x: Bernoulli(logits=x), (0.4,), 1),
    "Geometric": (lambda p: Geometric(p), (0.4,), 120),
    "Geometric, logits": (lambda x: Geometric(logits=x), (-0.3,), 120),
    "NegativeBinomial": (lambda p: NegativeBinomial(3.5, p), (0.4,), 150),
    "NegativeBinomial, logits": (lambda x: NegativeBinomial(3.5, logits=x), (-0.4,), 150),
    "Pyro's Poisson": (lambda rate: pyro.Poisson(rate), (3.0,), 60),
    "Pyro's Binomial": (lambda n, p: pyro.Binomial(n, p), (7.0, 0.3), 7),
    "Pyro's Geometric": (lambda p: pyro.Geometric(p), (0.4,), 120),
}


def quadratic_mean(law):
    """E (z - 2.6)² from mean and variance, which are smooth in every parameter."""
    return law.variance + (law.mean - 2.6).square()


@pytest.mark.parametrize("name", FAMILIES)
def test_families_are_exact_for_quadratics_in_every_parameter(name):
    make, at, most = FAMILIES[name]
    parameters = [number(x) for x in at]
    law = make(*parameters)
    outcomes = torch.arange(most + 1.0)
    weights = law.log_prob(outcomes).exp().detach()
    z = law_of(law).attach(outcomes)
    assert torch.equal(z.detach(), outcomes)
    found = torch.autograd.grad((weights * quadratic(z)).sum(), parameters)
    exact = torch.autograd.grad(quadratic_mean(law), parameters)
    torch.testing.assert_close(found, exact, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("name", FAMILIES)
def test_draws_have_every_gradient(name):
    """5.5 standard errors of 50,000 draws: 1e-6 false alarms over all laws."""
    make, at, _ = FAMILIES[name]
    parameters = [torch.full((50_000,), x).requires_grad_() for x in at]
    z = rsample(make(*parameters))
    assert torch.equal(z, z.round()) and z.shape == (50_000,)
    gradients = torch.autograd.grad(quadratic(z).sum(), parameters)
    single = [number(x) for x in at]
    exact = torch.autograd.grad(quadratic_mean(make(*single)), single)
    for gradient, wanted in zip(gradients, exact, strict=True):
        assert (gradient.mean() - wanted).abs() < 5.5 * gradient.std() / 50_000**0.5 + 1e-9


def test_a_count_of_trials_that_is_itself_a_draw():
    """Bin(Poisson(λ), p) is Poisson(λp): E z² = λp + (λp)²; 5 standard errors."""
    rate = torch.full((200_000,), 4.0, requires_grad=True)
    p = torch.full((200_000,), 0.3, requires_grad=True)
    z = rsample(Binomial(rsample(Poisson(rate)), p))
    for found, exact in zip(
        torch.autograd.grad(z.square().sum(), (rate, p)),
        (0.3 + 2 * 4 * 0.09, 4 + 2 * 16 * 0.3),
        strict=True,
    ):
        assert (found.mean() - exact).abs() < 5 * found.std() / 200_000**0.5


@pytest.mark.parametrize(
    ("make", "at", "slopes"),
    [
        (lambda rate: Poisson(rate), (0.0,), (1.0,)),
        (lambda n, p: Binomial(n, p), (5.0, 0.0), (0.0, 5.0)),
        (lambda n, p: Binomial(n, p), (5.0, 1.0), (1.0, 5.0)),
        (lambda n, p: Binomial(n, p), (0.0, 0.3), (0.3, 0.0)),
        (lambda n, x: Binomial(n, logits=x), (0.0, 0.0), (0.5, 0.0)),
        (lambda p: Bernoulli(p), (0.0,), (1.0,)),
        (lambda p: Bernoulli(p), (1.0,), (1.0,)),
        (lambda p: Geometric(p), (1.0,), (-1.0,)),
        (lambda p: NegativeBinomial(3.0, p), (0.0,), (3.0,)),
        (lambda r, p: NegativeBinomial(r, p), (0.0, 0.4), (0.4 / 0.6, 0.0)),
        (lambda up, down: gengs.Skellam(up, down), (0.0, 0.0), (1.0, -1.0)),
    ],
)
def test_at_a_boundary_a_draw_moves_by_the_whole_one_sided_slope(make, at, slopes):
    parameters = [number(x) for x in at]
    found = torch.autograd.grad(rsample(make(*parameters)), parameters)
    torch.testing.assert_close(torch.stack(found), torch.tensor(slopes))


def test_boundaries_of_a_multinomial():
    """In the direction of the empty box: dz/dp_0 - dz/dp_1 is n for a box, -n for the other."""
    p = number([0.0, 0.7, 0.3])
    z = rsample(Multinomial(5, p), (4000,))
    assert (z[:, 0] == 0).all()
    (gradient,) = torch.autograd.grad(z[:, 0].mean(), p)
    torch.testing.assert_close(gradient, torch.tensor([5.0, 0.0, 0.0]))


# ----------------------------------------------------------------------------------------- vectors


def counts(n, boxes):
    found = [c for c in itertools.product(range(n + 1), repeat=boxes) if sum(c) == n]
    return torch.tensor(found, dtype=torch.float64)


MATRIX = torch.tensor([[1.0, 0.4, -0.2], [0.4, 0.5, 0.9], [-0.2, 0.9, -1.1]], dtype=torch.float64)


def vector_cost(z):
    """Any quadratic of a vector."""
    return torch.einsum("...i,ij,...j->...", z, MATRIX, z) + z @ MATRIX[0]


def over_outcomes(law, outcomes, monkeypatch, cost=vector_cost):
    """The mean cost of the library's draws, which are made to be all outcomes, one each."""
    weights = law.log_prob(outcomes).exp().detach()
    monkeypatch.setattr(law, "sample", lambda shape: outcomes)
    z = rsample(law, (len(outcomes),))
    assert torch.equal(z.detach(), outcomes)
    return (weights * cost(z)).sum()


@pytest.mark.parametrize("given", ["probs", "logits"])
@pytest.mark.parametrize("n", [1, 4])
def test_multinomial_is_exact_for_quadratics(n, given, monkeypatch):
    parameter = number([0.2, 0.5, 0.3] if given == "probs" else [0.3, -0.4, 1.0])
    law = Multinomial(n, **{given: parameter})
    outcomes = counts(n, 3)
    exact = (law.log_prob(outcomes).exp() * vector_cost(outcomes)).sum()
    found = over_outcomes(law, outcomes, monkeypatch)
    torch.testing.assert_close(
        torch.autograd.grad(found, parameter, retain_graph=True),
        torch.autograd.grad(exact, parameter),
        rtol=1e-12,
        atol=1e-12,
    )


@pytest.mark.parametrize("given", ["probs", "logits"])
def test_second_derivatives_of_a_multinomial_are_exact_for_quadratics(given, monkeypatch):
    """Through all outcomes: the derivative of E[f'(z) dz/dθ], taken by the same rule."""
    parameter = number([0.2, 0.5, 0.3] if given == "probs" else [0.3, -0.4, 1.0])
    law, outcomes = Multinomial(4, **{given: parameter}), counts(4, 3)

    def second(value):
        (first,) = torch.autograd.grad(value, parameter, create_graph=True)
        return torch.autograd.grad(first[0] + 2 * first[1], parameter, retain_graph=True)[0]

    exact = (law.log_prob(outcomes).exp() * vector_cost(outcomes)).sum()
    found = over_outcomes(law, outcomes, monkeypatch)
    torch.testing.assert_close(second(found), second(exact), rtol=1e-10, atol=1e-10)


def test_one_hot_draws_are_reinmax():
    logits = number([[0.3, -0.4, 1.0], [2.0, 0.1, 0.0]])
    torch.manual_seed(0)
    z = rsample(OneHotCategorical(logits=logits), (1000,))
    probs = logits.detach().softmax(-1)
    g = torch.cos(torch.arange(6.0)).reshape(2, 3)
    (found,) = torch.autograd.grad((g * z).sum(), logits)
    # Liu et al., algorithm 2: 2 π₁ - π/2 with π₁ the average of the draw and π, through softmax
    wanted = torch.zeros(2, 3)
    for draw in z.detach():
        middle = (draw + probs) / 2
        for weight, pi in ((2, middle), (-0.5, probs)):
            wanted += weight * pi * (g - (pi * g).sum(-1, keepdim=True))
    torch.testing.assert_close(found, wanted)


def test_two_boxes_are_the_binomial():
    p = number(0.3)
    z = torch.arange(6.0)
    (scalar,) = torch.autograd.grad(law_of(Binomial(5, p)).attach(z).square().sum(), p)
    law = Multinomial(5, torch.stack([p, 1 - p]))
    law.sample = lambda shape: torch.stack([z, 5 - z], -1)
    (vector,) = torch.autograd.grad(rsample(law)[:, 0].square().sum(), p)
    torch.testing.assert_close(vector, scalar)


@pytest.mark.parametrize("own_atoms", [False, True])
def test_tables_of_vectors_are_exact_for_quadratics(own_atoms, monkeypatch):
    atoms = torch.tensor([[0.0, 1, 2], [2, -1, 0.5], [0.5, 0.5, 3], [1, 3, 0]])
    logits = number([[0.3, -1.2, 0.8, 0.1], [0.0, 0.5, 0.2, -3.0]])
    if own_atoms:
        atoms = torch.stack([atoms, atoms + 1])
    law = Finite(atoms, logits=logits, event_dim=1)
    monkeypatch.setattr(law, "sample_index", lambda shape: torch.arange(4).expand(2, 4).T)
    z = rsample(law, (4,))
    value = (law.probs.detach().T * vector_cost(z)).sum()
    exact = (law.probs.T * vector_cost(z.detach())).sum()
    torch.testing.assert_close(
        torch.autograd.grad(value, logits, retain_graph=True),
        torch.autograd.grad(exact, logits),
    )


def test_matrices_learned_atoms_and_second_derivatives_of_a_table():
    atoms, logits = number(torch.randn(5, 2, 2).tolist()), number([0.1, 0.2, 0.3, 0.4, 0.0])
    z = rsample(Finite(atoms, logits=logits, event_dim=2), (3,))
    assert z.shape == (3, 2, 2)
    of_atoms, of_logits = torch.autograd.grad(z.square().sum(), (atoms, logits), create_graph=True)
    assert of_atoms.abs().sum() > 0 and of_logits.abs().sum() > 0
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(of_logits.sum(), logits)


def test_a_categorical_is_an_index():
    """Ordered: it moves to its neighbours, as the table of 0 … K-1 does; exact for quadratics."""
    logits = number([0.3, -0.4, 1.0]).expand(200_000, 3)
    z = rsample(Categorical(logits=logits))
    (gradients,) = torch.autograd.grad(quadratic(z).sum(), logits)
    probs = logits[0].detach().softmax(-1)
    cost = quadratic(torch.arange(3.0))
    exact = probs * (cost - (probs * cost).sum())
    assert ((gradients.mean(0) - exact).abs() < 5 * gradients.std(0) / 200_000**0.5).all()


# --------------------------------------------------------------------------------------- compounds


def _mixture(weights, rates):
    batch = rates.shape[:-1]
    return MixtureSameFamily(Categorical(logits=weights.expand(*batch, 2)), Poisson(rates))


def _mixture_mean(weights, rates):
    return (weights.softmax(-1) * (rates + (rates - 2.6).square())).sum(-1)


def _plain(law):
    return quadratic_mean(law)


def _beta_binomial_mean(a, b):
    """Pyro's own variance lacks a divisor, so from the moments of p."""
    mean = a / (a + b)
    square = a * (a + 1) / ((a + b) * (a + b + 1))
    second = 6 * mean + 30 * square  # E z² = n E p + n (n - 1) E p²
    return second - 2 * 2.6 * 6 * mean + 2.6**2


# the law, where, and the exact expectation of the quadratic cost
COMPOUNDS = {
    "NegativeBinomial": (
        lambda r, p: NegativeBinomial(r, p),
        ([3.0], [0.4]),
        lambda r, p: r * p / (1 - p) ** 2 + (r * p / (1 - p) - 2.6) ** 2,
    ),
    "NegativeBinomial, logits": (
        lambda r, x: NegativeBinomial(r, logits=x),
        ([3.0], [-0.5]),
        lambda r, x: _plain(NegativeBinomial(r, logits=x)),
    ),
    "BetaBinomial": (
        lambda a, b: pyro.BetaBinomial(a, b, torch.tensor(6.0)),
        ([2.0], [3.0]),
        _beta_binomial_mean,
    ),
    "GammaPoisson": (
        lambda a, b: pyro.GammaPoisson(a, b),
        ([2.0], [0.7]),
        lambda a, b: a / b + a / b**2 + (a / b - 2.6) ** 2,
    ),
    "ZeroInflatedPoisson": (
        lambda rate, gate: pyro.ZeroInflatedPoisson(rate, gate=gate),
        ([3.0], [0.3]),
        lambda rate, gate: (1 - gate) * (rate + (rate - 2.6) ** 2) + gate * 2.6**2,
    ),
    "ZeroInflatedNegativeBinomial": (
        lambda p, x: pyro.ZeroInflatedNegativeBinomial(torch.tensor(3.0), probs=p, gate_logits=x),
        ([0.4], [0.3]),
        lambda p, x: (
            torch.sigmoid(-x) * (3 * p / (1 - p) ** 2 + (3 * p / (1 - p) - 2.6) ** 2)
            + torch.sigmoid(x) * 2.6**2
        ),
    ),
    "mixture": (_mixture, ([0.3, -0.4], [2.0, 5.0]), _mixture_mean),
}


@pytest.mark.parametrize("name", COMPOUNDS)
def test_compounds_have_every_gradient(name):
    """5.5 standard errors of 200,000 draws: 1e-6 false alarms over all laws."""
    make, at, expected = COMPOUNDS[name]
    draws = 200_000
    single = [number(x if len(x) > 1 else x[0]) for x in at]
    parameters = [p.detach().expand(draws, *p.shape).clone().requires_grad_() for p in single]
    z = rsample(make(*parameters))
    assert torch.equal(z.detach(), z.detach().round()) and z.shape == (draws,)
    gradients = torch.autograd.grad(quadratic(z).sum(), parameters)
    exact = torch.autograd.grad(expected(*single), single)
    for gradient, wanted in zip(gradients, exact, strict=True):
        error = gradient.std(0) / draws**0.5
        assert ((gradient.mean(0) - wanted).abs() < 5.5 * error).all()
    law = make(*single)
    assert (z.mean() - law.mean).abs() < 5.5 * z.std() / draws**0.5


def test_dirichlet_multinomial_with_a_total_for_each_element():
    """E z = n a/A; its gradient in a and n, 5 standard errors of 100,000 draws."""
    draws = 100_000
    a = torch.tensor([1.0, 2.0, 0.5]).expand(draws, 3).clone().requires_grad_()
    n = torch.tensor([4.0, 9.0]).repeat(draws // 2).requires_grad_()
    z = rsample(pyro.DirichletMultinomial(a, n))
    assert torch.equal(z.sum(-1), n) and torch.equal(z, z.round())
    of_a, of_n = torch.autograd.grad(z[:, 1].sum(), (a, n))
    share = torch.tensor([1.0, 2.0, 0.5]) / 3.5
    exact = -share[1] / 3.5 * torch.ones(3)
    exact[1] += 1 / 3.5
    assert ((of_a.mean(0) - 6.5 * exact).abs() < 5 * of_a.std(0) / draws**0.5).all()
    assert (of_n.mean() - share[1]).abs() < 5 * of_n.std() / draws**0.5


def test_stages_are_exact_over_all_outcomes_of_a_mixture(monkeypatch):
    """Two components of two values each: the eight joint outcomes, one each."""
    logit, p = number([0.2, -0.5]), number([0.3, 0.8])
    component, first, second = (
        torch.tensor(x)
        for x in zip(*itertools.product((0, 1), (0.0, 1.0), (0.0, 1.0)), strict=True)
    )
    law = MixtureSameFamily(Categorical(logits=logit), Binomial(1, p))
    weights = (
        logit.softmax(-1)[component]
        * (Bernoulli(p[0]).log_prob(first) + Bernoulli(p[1]).log_prob(second)).exp()
    )
    cost = quadratic(torch.where(component == 0, first, second) * 3)
    exact = torch.autograd.grad((weights * cost).sum(), (logit, p))
    expanded = law.mixture_distribution
    monkeypatch.setattr(expanded, "expand", lambda batch: expanded)
    monkeypatch.setattr(expanded, "sample", lambda shape: component)
    joint = torch.stack([first, second], -1)
    monkeypatch.setattr(BinomialLaw, "draw", lambda self, shape: joint)
    z = rsample(law, (8,))
    value = (weights.detach() * quadratic(3 * z)).sum()
    torch.testing.assert_close(torch.autograd.grad(value, (logit, p)), exact)


# ------------------------------------------------------------------------------- by whose gradient


class Halves:
    """An estimator of somebody's own."""

    def draw(self, law, sample_shape):
        return law.sample(sample_shape) / 2


def test_by_chooses_the_rule():
    law = Independent(Poisson(torch.full((3,), 9.0)), 1)
    torch.manual_seed(0)
    z = rsample(law, (2,), by=Halves())
    torch.manual_seed(0)
    assert torch.equal(z, law.sample((2,)) / 2)
    torch.manual_seed(0)
    mid = rsample(law, (2,), by=gengs.MidCDF())
    torch.manual_seed(0)
    assert torch.equal(mid, rsample(law, (2,)))


def test_words_about_by_and_law():
    law = Poisson(torch.tensor(3.0))
    with pytest.raises(TypeError, match=r"RLOO.*\.expect"):
        rsample(law, by=gengs.RLOO(4))
    with pytest.raises(TypeError, match=r"by=MidCDF\(\)"):
        rsample(law, by=gengs.MidCDF)
    with pytest.raises(TypeError, match="distribution"):
        rsample(3.0)


@pytest.mark.parametrize("shape", [(-1,), (2.5,), (2, -3), ("2",), (None,)], ids=str)
@pytest.mark.parametrize("by", [None, gengs.MidCDF()])
def test_a_shape_is_made_of_integers(shape, by):
    for law in (Poisson(torch.tensor(3.0)), gengs.Subset(1, logits=torch.zeros(2))):
        with pytest.raises(ValueError, match="rsample expects integers of at least 0"):
            rsample(law, shape, by)


@pytest.mark.parametrize("setting", [{"samples": 4}, {"debias": 1}], ids=str)
def test_settings_that_only_expect_can_obey_are_refused(setting):
    """Left out in silence, ``debias`` gave sin(2πz) a slope of 6.28; the truth is 0."""
    name = next(iter(setting))
    with pytest.raises(TypeError, match=rf"rsample .*`{name}=\d` of MidCDF.*expect"):
        rsample(Poisson(torch.tensor(3.0)), by=gengs.MidCDF(**setting))


def test_debias_has_nothing_for_the_number_of_trials():
    n = number(5.0)
    with pytest.raises(TypeError, match="total_count"):
        gengs.MidCDF(debias=1).expect(quadratic, Binomial(n, torch.tensor(0.3)))
    gengs.MidCDF().expect(quadratic, Binomial(n, torch.tensor(0.3))).backward()
    assert n.grad is not None


def test_a_law_with_its_own_rsample_uses_it():
    mean = number(1.0)
    rsample(torch.distributions.Normal(mean, 1.0), (4,)).sum().backward()
    assert mean.grad == 4


def test_expect_serves_multinomials():
    """Beside enumeration, on a quadratic; 5 standard errors."""
    logits = number([0.3, -0.4, 1.0])
    table = logits.detach().expand(100_000, 3).clone().requires_grad_()
    value = gengs.MidCDF().expect(vector_cost, Multinomial(4, logits=table))
    (gradients,) = torch.autograd.grad(value.sum(), table)
    law, outcomes = Multinomial(4, logits=logits), counts(4, 3)
    exact = torch.autograd.grad(
        (law.log_prob(outcomes).exp() * vector_cost(outcomes)).sum(), logits
    )
    error = gradients.std(0) / math.sqrt(100_000)
    assert ((gradients.mean(0) - exact[0]).abs() < 5 * error).all()


class Looks(TorchDispatchMode):
    """Counts the operations for which Python waits to see a number."""

    SYNCHRONISE = ("_local_scalar_dense", "nonzero", "equal", "is_nonzero", "masked_select", "item")

    def __init__(self):
        super().__init__()
        self.found = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        name = func.__name__.partition(".")[0]
        if name in self.SYNCHRONISE:
            self.found.append(name)
        return func(*args, **(kwargs or {}))


@pytest.mark.parametrize(
    "make",
    [
        *(make for make, _, _ in FAMILIES.values()),
        lambda x: NegativeBinomial(x.exp(), torch.full_like(x, 0.4)),
        lambda x: Multinomial(4, logits=torch.stack([x, -x], -1)),
        lambda x: OneHotCategorical(logits=torch.stack([x, -x], -1)),
        lambda x: gengs.Skellam(x.exp(), x.exp(), validate_args=False),
        lambda x: _mixture(torch.stack([x, -x], -1), torch.stack([x, x], -1).exp()),
        lambda x: pyro.BetaBinomial(x.exp(), x.exp(), torch.full_like(x, 4)),
        lambda x: pyro.DirichletMultinomial(torch.stack([x, x], -1).exp(), torch.full_like(x, 4)),
        lambda x: pyro.ZeroInflatedPoisson(x.exp(), gate=torch.sigmoid(x)),
    ],
)
def test_python_never_waits_for_a_number(make):
    """So that a step on a GPU is queued without a stop, forward and backward."""
    at = next((at for other, at, _ in FAMILIES.values() if other is make), (0.3,))
    parameters = [torch.full((3,), x).requires_grad_() for x in at]
    law = make(*parameters)
    with Looks() as looks:
        z = rsample(law)
        torch.autograd.grad(z.square().sum(), parameters)
    assert looks.found == []


@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # dynamo
@pytest.mark.parametrize(
    "make",
    [
        lambda x: OneHotCategorical(logits=x, validate_args=False),
        lambda x: Finite(MATRIX, logits=x, event_dim=1, validate_args=False),
        lambda x: Binomial(x.exp().round(), torch.sigmoid(x), validate_args=False),
        lambda x: NegativeBinomial(x.exp(), torch.full_like(x, 0.4), validate_args=False),
        lambda x: MixtureSameFamily(
            Categorical(logits=x, validate_args=False),
            Poisson(x.exp(), validate_args=False),
            validate_args=False,
        ),
    ],
)
def test_no_look_at_the_data_so_that_a_step_compiles(make):
    x = torch.tensor([0.3, 1.2, 0.8])

    def step(parameter):
        return rsample(make(parameter), (5,)).square().sum()

    torch._dynamo.reset()
    found = []
    for run in (step, torch.compile(step, backend="aot_eager", fullgraph=True)):
        torch.manual_seed(3)
        leaf = x.clone().requires_grad_()
        value = run(leaf)
        found.append((value.detach(), *torch.autograd.grad(value, leaf)))
    for eager, compiled in zip(*found, strict=True):
        torch.testing.assert_close(compiled, eager)


@pytest.mark.parametrize(
    "q",
    [
        gengs.truncate(Poisson(torch.tensor(3.0)), 12),
        gengs.Skellam(torch.tensor(3.0), torch.tensor(1.0)),
        gengs.OneHot(torch.zeros(3)),
        gengs.Subset(2, torch.zeros(4)),
        gengs.PlackettLuce(torch.zeros(3)),
    ],
    ids=lambda q: type(q).__name__,
)
def test_the_method_of_the_same_name_says_what_to_call(q):
    with pytest.raises(NotImplementedError, match=rf"{type(q).__name__} .* gengs.rsample\(q\)"):
        q.rsample()
