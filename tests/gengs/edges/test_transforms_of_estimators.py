"""Estimators under ``vmap(grad(...))`` and ``torch.compile(fullgraph=True)``.

Either the numbers are right, compared with enumeration and with the eager run of the same draws, or
the estimator says by name that it does not work there. The catalogue tells in two columns which.

False-alarm rate 1e-7 per test.
"""

import re

import pytest
import torch
from agreement import REFUSALS, Answer, complaint
from reference import cut, poisson
from settings import SETTINGS
from torch.distributions import Binomial, Independent, NegativeBinomial, Poisson

import gengs
from gengs.estimators import gumbel_rao

pytestmark = [
    pytest.mark.usefixtures("torch_validation_off"),
    # what torch.compile does itself that torch warns of
    pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.script_method:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:There is a performance drop:UserWarning"),
]
estimators = pytest.mark.parametrize("name", SETTINGS)
COSTS = {"linear": lambda z: 1.5 * z + 1, "quadratic": lambda z: (z + 1.2).square()}
RATE, LEVEL = 1.6, 6


def law_of(name, rate):
    """A cut Poisson; whole for the one that counts its arrivals."""
    law = Poisson(rate, validate_args=False)
    return law if name == "ArrivalTimes" else gengs.truncate(law, LEVEL, validate_args=False)


def ours(name, error):
    """Whether an error is a sentence of the estimator's own."""
    said = rf"\b{name}\b[^\n]*\b(torch\.compile|vmap|torch\.func)\b"
    return re.search(said, str(error)) is not None


@estimators
def test_vmap_of_grad(name):
    setting = SETTINGS[name]
    cost, estimator = COSTS[setting.cost], setting.make()
    many = 2 if name == "Exact" else setting.replicates

    def value(rate):
        return estimator.expect(cost, law_of(name, rate))

    rates = torch.full((many,), RATE, dtype=torch.float64)
    # a baseline that is made at the first call is made outside
    estimator.expect(cost, law_of(name, rates[:2].clone().requires_grad_()))
    try:
        found = torch.func.vmap(torch.func.grad(value), randomness="different")(rates)
    except (RuntimeError, *REFUSALS) as error:
        if not ours(name, error):
            raise
        return
    table = poisson(RATE) if name == "ArrivalTimes" else cut(poisson(RATE), 0, LEVEL - 1)
    reference = table.bound_of_two(cost) if name == "VIMCO" else table.expectation(cost)
    answer = Answer(gradients={"rate": found.numpy()})
    assert complaint(answer, reference, setting.bias) is None


def vmap(f):
    return torch.func.vmap(f, randomness="different")


def around(f):
    """Where the gradient is taken around a vmap, or around a gradient in another variable."""
    yield torch.func.grad(lambda x: vmap(f)(x).sum())
    yield vmap(torch.func.grad(lambda x: torch.func.grad(lambda y: y * f(x))(torch.ones(()))))


@pytest.mark.parametrize("estimator", [gengs.MidCDF(), gengs.MidCDF(debias=1)], ids=repr)
@pytest.mark.parametrize("name", ["a table", "whole"])
def test_grad_of_vmap_is_vmap_of_grad(estimator, name):
    def value(rate):
        name_of_law = "ArrivalTimes" if name == "whole" else ""
        return estimator.expect(lambda z: (z - 0.5) ** 3, law_of(name_of_law, rate))

    rates = torch.full((50,), RATE, dtype=torch.float64)
    torch.manual_seed(0)
    inside = vmap(torch.func.grad(value))(rates)
    assert inside.any()
    for gradient in around(value):
        torch.manual_seed(0)
        torch.testing.assert_close(gradient(rates), inside)


@pytest.mark.parametrize("estimator", [gengs.RLOO(), gengs.FiniteDifference()], ids=repr)
def test_what_has_no_gradient_is_refused_around_vmap(estimator):
    def value(total):
        q = Binomial(total, torch.tensor(0.5), validate_args=False)
        return estimator.expect(lambda z: z, q)

    for gradient in around(value):
        with pytest.raises(TypeError, match="total_count"):
            gradient(torch.full((3,), 2.0))


def test_a_number_of_trials_of_a_negative_binomial_moves_inside_of_vmap():
    def value(total):
        q = NegativeBinomial(total, torch.tensor(0.5), validate_args=False)
        return gengs.MidCDF().expect(lambda z: z, q)

    for gradient in around(value):
        torch.manual_seed(0)
        found = gradient(torch.full((2000,), 2.0))
        # the odds, 1; false-alarm rate 1e-7
        assert abs(found.mean() - 1) < 5.4 * found.std() / 2000**0.5


@pytest.mark.slow
@estimators
@pytest.mark.parametrize("factors", [False, True])
def test_compiled_as_one_graph(name, factors, monkeypatch):
    # eager Gumbel-Rao draws its noise on the way back: compare with the form that compiles
    monkeypatch.setattr(gumbel_rao, "is_eager", lambda *tensors: False)
    setting = SETTINGS[name]
    cost = COSTS[setting.cost]
    compared = []
    for compiled in (False, True):
        torch.manual_seed(4)
        estimator = setting.make().double()
        estimator.expect(cost, law_of(name, torch.ones(2, dtype=torch.float64, requires_grad=True)))
        rate = torch.tensor([[0.7, 1.6], [2.2, 0.4]], dtype=torch.float64, requires_grad=True)

        def step(rate, estimator=estimator):
            q = law_of(name, rate)
            if factors:
                return estimator.expect(lambda z: cost(z.sum(-1)), Independent(q, 1)).sum()
            return estimator.expect(cost, q).sum()

        run = torch.compile(step, fullgraph=True, backend="aot_eager") if compiled else step
        try:
            torch.manual_seed(3)
            value = run(rate)
            compared.append((value.detach(), *torch.autograd.grad(value, rate)))
        except Exception as error:  # dynamo has many kinds of its own
            if not (compiled and ours(name, error)):
                raise
            return
        finally:
            torch.compiler.reset()
    for eager, again in zip(*compared, strict=True):
        torch.testing.assert_close(again, eager)
        assert eager.any()


def test_the_catalogue_has_the_two_columns():
    for row in gengs.catalogue():
        assert any("vmap" in key for key in row) and any("compile" in key for key in row)


# forward mode of a logarithm of sums is a decomposition that torch compiles the old way
@pytest.mark.filterwarnings("ignore:.*torch.jit.script.*:DeprecationWarning")
def test_the_draw_of_a_table_has_no_tangent_of_zero_in_forward_mode():
    def value(x):
        return gengs.MidCDF().expect(lambda z: z, gengs.Finite(atoms, logits=x * atoms))

    atoms = torch.arange(4.0)
    with pytest.raises(RuntimeError, match="jvp"):
        torch.func.jvp(value, (torch.tensor(0.3),), (torch.tensor(1.0),))
