"""Mid-CDF draws: exact for quadratic costs, third-order otherwise, unbiased when debiased."""

import pytest
import torch
from torch.distributions import (
    Bernoulli,
    Binomial,
    Categorical,
    Geometric,
    Independent,
    MixtureSameFamily,
    NegativeBinomial,
    Poisson,
)

import gengs
from gengs import Finite, MidCDF, Skellam, rsample, truncate
from gengs.lab.testing import check_estimator
from gengs.laws.ordered_table import attach_in_table, draw_from_table


def unchecked(kind, *arguments):
    """torch's own checks read values, which vmap and compile do not allow."""
    return lambda parameter: kind(*arguments, parameter, validate_args=False)


# name: the law of one parameter, and where
LAWS = {
    "Poisson": (unchecked(Poisson), 3.0),
    "Poisson, small": (unchecked(Poisson), 0.05),
    "Poisson, table": (lambda p: truncate(Poisson(p, validate_args=False), 30), 3.0),
    "Binomial": (unchecked(Binomial, 20), 0.3),
    "Binomial, logits": (lambda p: Binomial(20, logits=p, validate_args=False), -0.5),
    "Bernoulli": (unchecked(Bernoulli), 0.4),
    "Bernoulli, logits": (lambda p: Bernoulli(logits=p, validate_args=False), -0.5),
    "NegativeBinomial": (unchecked(NegativeBinomial, 3.0), 0.4),
    "NegativeBinomial, logits": (
        lambda p: NegativeBinomial(3.0, logits=p, validate_args=False),
        -0.5,
    ),
    "NegativeBinomial, count": (lambda r: NegativeBinomial(r, torch.full_like(r, 0.4)), 3.0),
    "Geometric": (unchecked(Geometric), 0.4),
    "Geometric, logits": (lambda p: Geometric(logits=p, validate_args=False), -0.5),
    "Skellam, up": (lambda p: Skellam(p, torch.ones_like(p)), 3.0),
    "Skellam, down": (lambda p: Skellam(torch.ones_like(p), p), 3.0),
    "mixture": (
        lambda p: MixtureSameFamily(
            Categorical(torch.ones(*p.shape, 2)), Poisson(torch.stack([p, p + 2], -1))
        ),
        2.0,
    ),
}


@pytest.fixture(autouse=True)
def double_precision():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def exact_gradient(make, at, cost):
    parameter = torch.tensor(at, requires_grad=True)
    value = gengs.Exact(tolerance=1e-12).expect(cost, make(parameter))
    return torch.autograd.grad(value, parameter)[0]


def sampled_gradients(make, at, cost, replicates, **settings):
    torch.manual_seed(0)
    parameter = torch.full((replicates,), at, requires_grad=True)
    value = MidCDF(**settings).expect(cost, make(parameter))
    return torch.autograd.grad(value.sum(), parameter)[0]


@pytest.mark.parametrize("name", LAWS)
def test_exact_for_quadratic_costs(name):
    """False-alarm rate 1e-6 for all laws together: 5.5 standard errors of 100,000 gradients."""
    make, at = LAWS[name]

    def cost(z):
        return (z - 2.6).square()

    replicates = 20_000 if name == "mixture" else 100_000
    gradients = sampled_gradients(make, at, cost, replicates)
    error = gradients.std() / replicates**0.5
    assert (gradients.mean() - exact_gradient(make, at, cost)).abs() < 5.5 * error + 1e-6


def test_the_bias_is_the_error_of_the_trapezoid_rule():
    """For f = exp(z/2) under Poisson(2): E[f'(z) J] in closed form, 1e-6 false alarms.

    The trapezoid rule on a step of exp(z/2) is (1 + e^.5)/4 in place of e^.5 - 1, 2.1 % too much,
    close to f'''/12 = 1/96 of the derivative 1/2.
    """

    def cost(z):
        return torch.exp(z / 2)

    root = torch.tensor(0.5).exp()
    rate = torch.tensor(2.0)
    mean = torch.exp(rate * (root - 1))  # E exp(z/2)
    truth, expected = mean * (root - 1), mean * (1 + root) / 4
    assert exact_gradient(Poisson, 2.0, cost) == pytest.approx(truth.item(), rel=1e-6)
    gradients = sampled_gradients(Poisson, 2.0, cost, 400_000)
    error = gradients.std() / 400_000**0.5
    assert (gradients.mean() - expected).abs() < 5 * error
    assert 5 * error < (expected - truth).abs()  # it would notice if the bias were not there
    debiased = sampled_gradients(Poisson, 2.0, cost, 400_000, debias=1)
    assert (debiased.mean() - truth).abs() < 5 * debiased.std() / 400_000**0.5


def test_debiased_is_unbiased_on_everything():
    check_estimator(MidCDF(debias=1), gradients=8_000)
    check_estimator(MidCDF(samples=2, debias=3), gradients=4_000)


@pytest.mark.parametrize("name", ["Poisson", "Binomial", "NegativeBinomial, logits", "Geometric"])
def test_debiased_closed_forms(name):
    """A cost that is rough between the integers, where the plain form must fail.

    sin(2πz) is 0 at every integer but rises there. 5.2 standard errors of 100,000 gradients, 1e-6
    in all.
    """
    make, at = LAWS[name]

    def cost(z):
        return torch.sin(2 * torch.pi * z) + torch.sigmoid(4 * (z - 2.5))

    exact = exact_gradient(make, at, cost)
    gradients = sampled_gradients(make, at, cost, 100_000, debias=1)
    error = gradients.std() / 100_000**0.5
    assert (gradients.mean() - exact).abs() < 5.2 * error
    plain = sampled_gradients(make, at, cost, 100_000)
    assert (plain.mean() - exact).abs() > 20 * error


def test_uneven_gaps_unordered_atoms_and_valleys():
    """A deep valley: exact for quadratics, weights bounded; false-alarm rate 1e-6."""
    atoms = torch.tensor([7.0, 0.0, 2.5, 1.0, 3.0])
    logits = torch.tensor([-1.0, 1.0, 0.5, -7.0, 0.2])  # the atom 1 is in a valley

    def cost(z):
        return (z - 2.6).square()

    probs = logits.softmax(-1)
    truth = probs * (cost(atoms) - (probs * cost(atoms)).sum())
    variance = {}
    for valley in (0.0, 0.01):
        torch.manual_seed(0)
        table = logits.expand(200_000, 5).clone().requires_grad_()
        z = draw_from_table(Finite(atoms, logits=table), torch.Size(), bridge=bool(valley))
        (gradients,) = torch.autograd.grad(cost(z).sum(), table)
        error = gradients.std(0) / 200_000**0.5
        assert ((gradients.mean(0) - truth).abs() < 5.4 * error).all()
        variance[valley] = gradients.var(0).sum()
        slopes = gradients / (2 * (z.detach() - 2.6)).unsqueeze(-1)
        if valley:
            assert slopes.abs().max() < 100 * len(atoms) * 7  # 100 n times the widest gap
    assert variance[0.01] < variance[0.0] / 100


def test_unimodal_laws_have_no_valleys():
    table = torch.randn(3, 9).sort(-1).values
    logits = torch.cat([table, table.flip(-1)], -1).requires_grad_()
    gradients = []
    for valley in (0.0, 0.01):
        torch.manual_seed(0)
        z = draw_from_table(
            Finite(torch.arange(18), logits=logits), torch.Size([5]), bridge=bool(valley)
        )
        gradients += torch.autograd.grad(z.square().sum(), logits)
    torch.testing.assert_close(*gradients)


def test_draws_are_exact():
    """Frequencies of stratified draws from a table, and of the sampler: 5.5 errors, 1e-6 in all."""
    torch.manual_seed(0)
    law = truncate(Poisson(torch.tensor(3.0)), 12)
    for draws in (rsample(law.expand((100_000,))), rsample(law, (2,))[:1]):
        assert (draws == draws.round()).all()
    z = rsample(law.expand((50_000,)), (2,))
    frequencies = torch.stack([(z == k).double().mean() for k in range(12)])
    error = (law.probs * (1 - law.probs) / 50_000).sqrt()
    assert ((frequencies - law.probs).abs() < 5.5 * error).all()


@pytest.mark.parametrize("samples", [2, 3, 8])
def test_stratified_draws_vary_less_than_independent_ones(samples):
    torch.manual_seed(0)
    q = truncate(Poisson(torch.full((20_000,), 3.0, requires_grad=True)), 14)
    gradients = []
    for several in (True, False):
        rate = torch.full((20_000,), 3.0, requires_grad=True)
        q = truncate(Poisson(rate), 14)
        if several:
            value = MidCDF(samples, antithetic=True).expect(lambda z: (z - 2.6).square(), q).sum()
        else:
            calls = [MidCDF().expect(lambda z: (z - 2.6).square(), q) for _ in range(samples)]
            value = torch.stack(calls).mean(0).sum()
        gradients.append(torch.autograd.grad(value, rate)[0])
    assert gradients[0].var() < 0.9 * gradients[1].var()


def test_second_derivatives_are_exact_for_a_poisson_and_a_quadratic_cost():
    """d²/drate² of E z² = rate² + rate is 2; false-alarm rate 1e-6, five standard errors."""
    torch.manual_seed(0)
    rate = torch.full((200_000,), 3.0, requires_grad=True)
    z = rsample(Poisson(rate))
    (first,) = torch.autograd.grad(z.square().sum(), rate, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), rate)
    assert (second.mean() - 2).abs() < 5 * second.std() / 200_000**0.5
    assert 5 * second.std() / 200_000**0.5 < 0.05


def test_a_second_derivative_of_the_table_form_raises():
    logits = torch.randn(5, requires_grad=True)
    z = rsample(Finite(torch.arange(5), logits=logits))
    (first,) = torch.autograd.grad(z.square(), logits, create_graph=True)
    with pytest.raises(RuntimeError, match="no second derivative"):
        torch.autograd.grad(first.sum(), logits)


@pytest.mark.filterwarnings("ignore:An output with one or more")  # torch.binomial under vmap
@pytest.mark.filterwarnings("ignore:There is a performance drop")  # torch's Gamma under vmap
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")  # dynamo
@pytest.mark.parametrize(
    "name",  # not those truncated by tolerance, which has to read the parameters
    [name for name in LAWS if name not in ("mixture", "NegativeBinomial, count")],
)
def test_vmap_and_compile(name):
    make, at = LAWS[name]
    parameters = torch.full((4,), at)

    def gradient(parameter):
        return torch.func.grad(lambda p: rsample(make(p)).square().sum())(parameter)

    mapped = torch.func.vmap(gradient, randomness="different")(parameters)
    assert mapped.shape == (4,) and torch.isfinite(mapped).all()

    def step(parameter):
        return rsample(make(parameter)).square().sum()

    torch._dynamo.reset()  # each law is a new graph, and torch gives up after eight
    found = []
    for run in (step, torch.compile(step, backend="aot_eager", fullgraph=True)):
        torch.manual_seed(3)  # the same draws
        leaf = parameters.clone().requires_grad_()
        value = run(leaf)
        found.append((value.detach(), *torch.autograd.grad(value, leaf)))
    for eager, compiled in zip(*found, strict=True):
        torch.testing.assert_close(compiled, eager)


def test_extreme_parameters_have_finite_gradients():
    rate = torch.tensor([0.0, 1e-30, 1e-6, 1e6, 1e12], requires_grad=True)
    rsample(Poisson(rate)).sum().backward()
    assert torch.isfinite(rate.grad).all() and rate.grad[0] == 1
    for law in (lambda p: Binomial(5, p), Bernoulli):
        p = torch.tensor([0.0, 1.0, 1e-12, 1 - 1e-12], requires_grad=True)
        rsample(law(p)).sum().backward()
        assert torch.isfinite(p.grad).all()
    logit = torch.tensor([-200.0, 200.0, 0.0], requires_grad=True)
    for law in (lambda x: Binomial(5, logits=x), lambda x: Bernoulli(logits=x)):
        rsample(law(logit)).sum().backward()
        assert torch.isfinite(logit.grad).all()


def test_it_drops_into_a_model_in_one_line():
    layer = torch.nn.Linear(3, 2)
    for law in (
        lambda x: Independent(Poisson(x.exp()), 1),
        lambda x: Finite(torch.arange(4), logits=x.unsqueeze(-1) * torch.arange(4)),
    ):
        layer.zero_grad()
        z = rsample(law(layer(torch.randn(5, 3))), (7,))
        assert z.shape == (7, 5, 2)
        z.square().mean().backward()
        assert layer.weight.grad.abs().sum() > 0


@pytest.mark.parametrize("debias", [-1, 0.5, True])
def test_bad_settings(debias):
    with pytest.raises(ValueError, match="debias"):
        MidCDF(debias=debias)


def test_a_draw_beyond_the_atoms_moves_as_the_nearest_one():
    logits = torch.randn(5, dtype=torch.float64, requires_grad=True)

    def slope(z):
        moved = attach_in_table(Finite(torch.arange(5), logits=logits), torch.tensor([z]))
        assert moved.item() == z
        return torch.autograd.grad(moved.sum(), logits)[0]

    assert slope(4.0).abs().sum() > 0 and slope(0.0).abs().sum() > 0
    assert torch.equal(slope(20.0), slope(4.0))
    assert torch.equal(slope(-3.0), slope(0.0))
