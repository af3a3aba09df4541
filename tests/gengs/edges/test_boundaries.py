"""What a gradient means on the boundary of the parameters: the one-sided derivative.

At ``p = 0`` a Bernoulli is surely 0, yet ``E f`` grows by ``f(1) - f(0)`` per unit of ``p``: the
slope belongs to an atom that has probability zero and is never drawn. The rule, for all laws:

1. **A gradient** from those who can have it. ``Exact`` and ``FiniteDifference`` are exact for every
   cost: they show the neighbouring atom to the cost although its probability is zero. MidCDF and
   the draw that moves take the one-sided slope in full (``dz/dp = n`` at 0 and 1, ``dz/dλ = 1`` at
   0), exact for linear costs and off by half a second derivative otherwise. So are those that
   differentiate the mean: StraightThroughMean, MuProp.
2. **A sentence** from those who cannot: an estimator that weighs what was drawn by its probability
   never meets that atom. Its gradient in the *other* parameters is right, so it does not stop: it
   gives a finite number and warns, once, naming itself, the boundary, and who has the slope. (An
   error would be worse: a sigmoid that rounds to 1 stops no training today, since the chain rule
   multiplies the missing slope by zero.) Refusing with a ``ValueError`` passes here as well.
3. ``logits=-inf`` is no boundary in this sense: the derivative in a logit is 0 there, for everyone.
4. Without validation nobody looks at the numbers: rule 1 holds, rule 2 is silent.
"""

import warnings
from contextlib import suppress

import pytest
import torch
from agreement import ask, complaint
from beside import FACTORS, beside
from cases import BOUNDARY
from settings import SCORES, SETTINGS, TABLES, draw
from torch.distributions import Bernoulli, Binomial, Geometric, NegativeBinomial, Poisson

import gengs

GRADIENT = {
    "Exact": ("linear", "smooth"),
    "FiniteDifference": ("linear", "smooth"),
    "MidCDF": ("linear",),
    "StraightThroughMean": ("linear",),
    "MuProp": ("linear",),
}
"""Rule 1: who has the one-sided derivative, and for which costs."""
SENTENCE = ({*TABLES, *SCORES} - {"MuProp"}) | {"ArrivalTimes"}
"""Rule 2: who says that it has not."""

cases = pytest.mark.parametrize("case", BOUNDARY, ids=lambda case: case.name)


def test_the_rule_names_every_estimator():
    assert not SENTENCE & set(GRADIENT)
    assert SENTENCE | set(GRADIENT) == {kind.__name__ for kind in gengs.estimators.ALL}


def heard(expectation, parameters):
    """The answer, and whether a sentence was said about it."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        answer = ask(expectation, parameters)
    return answer, answer.refusal is not None or any(len(str(w.message)) > 30 for w in said)


@cases
@pytest.mark.parametrize(
    ("name", "kind"), [(name, kind) for name, kinds in GRADIENT.items() for kind in kinds]
)
def test_the_one_sided_derivative(name, kind, case):
    kind = "linear" if "total" in case.tags else kind  # one step in n is no derivative otherwise
    cost, setting = case.cost(kind), SETTINGS[name]
    many = 300 if "skellam" in case.name else 1000  # a table made by sums
    parameters = case.tensors(1 if name == "Exact" else many)
    answer, sentence = heard(
        lambda: setting.make().expect(cost, case.build(**parameters)), parameters
    )
    if name == "FiniteDifference" and "total_count=0.0" in case.name and sentence:
        return  # it may leave for any value, and only the next one is a neighbour
    if answer.refusal is not None:  # not at the boundary: the law, or its total, anywhere
        vectors = case.event_dim and name in ("MidCDF", "FiniteDifference")
        totals = "total" in case.tags and name in ("Exact", "FiniteDifference", "MuProp")
        no_trial = "total_count=0.0" in case.name  # a gamma variable of shape 0
        assert vectors or totals or no_trial, answer.refusal
    assert complaint(answer, case.reference().expectation(cost)) is None


@cases
@pytest.mark.parametrize("name", sorted(SENTENCE))
def test_a_sentence_where_there_is_no_derivative(name, case):
    setting = SETTINGS[name]
    cost = case.cost(setting.cost)
    # no boundary (rule 3): there the numbers must be right, which takes more of them to see
    parameters = case.tensors(3000 if "-inf" in case.name else 300)
    answer, sentence = heard(
        lambda: setting.make().expect(cost, case.build(**parameters)), parameters
    )
    if sentence:
        assert answer.refusal is not None or all(
            gradient is not None and abs(gradient).max() < 1e6
            for gradient in answer.gradients.values()
        )
        return
    table = case.reference()
    reference = table.bound_of_two(cost) if name == "VIMCO" else table.expectation(cost)
    assert complaint(answer, reference, setting.bias) is None


@cases
def test_the_draw_moves_by_the_whole_slope(case):
    cost = case.cost("linear")
    parameters = case.tensors(1000)
    answer, _ = heard(lambda: cost(draw(case.build(**parameters))), parameters)
    if answer.refusal is not None:
        assert case.event_dim or "total_count=0.0" in case.name, answer.refusal
    assert complaint(answer, case.reference().expectation(cost)) is None


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:.*boundary")
@cases
@pytest.mark.parametrize("name", ["Exact", "GenGS", "MidCDF", "RLOO"])
def test_anomaly_detection_finds_no_nan_on_the_way(name, case):
    """Not even where it is masked later: it would stop whoever looks for a NaN of their own."""
    setting = SETTINGS[name]
    # some refuse to differentiate in a total_count
    with torch.autograd.detect_anomaly(), suppress(TypeError):
        value = setting.make().expect(case.cost(setting.cost), case.build(**case.tensors(4)))
        value.sum().backward()


ZERO, ONE = 0.0, 1.0
SLOPES = {
    "Bernoulli(0)": (lambda p: Bernoulli(p), ZERO, 1.0),
    "Bernoulli(1)": (lambda p: Bernoulli(p), ONE, 1.0),
    "Binomial(7, 0)": (lambda p: Binomial(7, p), ZERO, 7.0),
    "Binomial(7, 1)": (lambda p: Binomial(7, p), ONE, 7.0),
    "Poisson(0)": (lambda rate: Poisson(rate), ZERO, 1.0),
    "Geometric(1)": (lambda p: Geometric(p), ONE, -1.0),
    "NegativeBinomial(3, 0)": (lambda p: NegativeBinomial(3.0, p), ZERO, 3.0),
    "Binomial(n = 0, .3)": (lambda n: Binomial(n, torch.tensor(0.3)), ZERO, 0.3),
    "Skellam(0, 0) up": (lambda rate: gengs.Skellam(rate, torch.tensor(0.0)), ZERO, 1.0),
    "Skellam(0, 0) down": (lambda rate: gengs.Skellam(torch.tensor(0.0), rate), ZERO, -1.0),
}


@pytest.mark.parametrize(("build", "at", "slope"), SLOPES.values(), ids=list(SLOPES))
def test_dz_of_a_sure_draw(build, at, slope):
    parameter = torch.tensor(at, requires_grad=True)
    z = draw(build(parameter))
    (found,) = torch.autograd.grad(z, parameter, allow_unused=True)
    assert found is not None
    assert abs(found.item() - slope) < 1e-6


@pytest.mark.parametrize("name", sorted(set(SLOPES) - {"Binomial(n = 0, .3)"}))
def test_the_mean_of_a_sure_table(name):
    """With room on both sides of the neighbour that gets the probability."""
    build, at, slope = SLOPES[name]
    parameter = torch.tensor(at, requires_grad=True)
    mean = gengs.truncate(build(parameter), low=-4, high=11).mean
    (found,) = torch.autograd.grad(mean, parameter)
    assert abs(found.item() - slope) < 1e-5


def test_one_side_for_a_quadratic_cost_is_off_by_half_a_curvature():
    rate = torch.zeros(1, dtype=torch.float64, requires_grad=True)
    value = gengs.MidCDF().expect(lambda z: (z - 2.6).square(), Poisson(rate))
    (found,) = torch.autograd.grad(value.sum(), rate)
    exact = (1 - 2.6) ** 2 - 2.6**2
    assert abs(found.item() - (exact - 1)) < 1e-9  # f'' / 2 = 1


@pytest.mark.parametrize("which", FACTORS[2:], ids=lambda which: which[0])
@pytest.mark.parametrize("name", GRADIENT)
def test_beside_another_latent(name, which):
    kind = GRADIENT[name][-1]

    def cost(z):
        total = (z * torch.tensor([1.0, -0.8, 0.5], dtype=z.dtype)[: z.shape[-1]]).sum(-1)
        return total if kind == "linear" else torch.sin(total + 0.5)

    parameter, q, value, wanted = beside(which, cost, 1 if name == "Exact" else 2000)
    answer, _ = heard(lambda: SETTINGS[name].make().expect(cost, q), {"it": parameter})
    assert complaint(answer, (value, {"it": wanted})) is None


@pytest.mark.parametrize(
    ("law", "cost", "slope"),
    [
        (lambda p: Binomial(20, p), lambda z: (z - 2.6).square(), 20 * (17.4**2 - 16.4**2)),
        (lambda p: Bernoulli(p), lambda z: z, 1.0),
    ],
    ids=["binomial", "bernoulli"],
)
def test_a_sure_success_by_enumeration(law, cost, slope):
    p = torch.ones(1, dtype=torch.float64, requires_grad=True)
    (found,) = torch.autograd.grad(gengs.Exact().expect(cost, law(p)).sum(), p)
    assert abs(found.item() - slope) < 1e-9
