"""The laboratory: known answers, where the exact gradient comes from, what it prints."""

import json
import math

import pytest
import torch
from torch.distributions import Independent, Poisson

import gengs
from gengs.lab import Measurement, Row, measure


def quadratic(z):
    return (z - 2.6).square()


@pytest.fixture(scope="module")
def result():
    rate = torch.tensor(3.0, requires_grad=True)
    estimators = [gengs.REINFORCE(), gengs.RLOO(4), gengs.GenGS(0.5), gengs.MidCDF()]
    return measure(quadratic, Poisson(rate), estimators, gradients=20_000)


def test_the_documented_facts_about_poisson_3(result):
    # closed form: 1 + 2 (rate - t) = 1.8; GenGS is off by about -0.4, MidCDF by nothing
    assert float(result.exact) == pytest.approx(1.8, abs=1e-4)
    assert result.source == "by enumeration"
    assert -0.55 < result["GenGS"].bias < -0.25
    for name in ("REINFORCE", "RLOO", "MidCDF"):
        assert abs(result[name].bias) < 5 * result[name].bias_error
    assert 15 < result["MidCDF"].variance < 26
    assert result["RLOO(samples=4)"].evaluations == 4


def test_the_standard_error_is_that_of_a_mean(result):
    for row in result:
        assert row.bias_error == pytest.approx((row.variance / 20_000) ** 0.5, rel=1e-12)


def test_variance_and_standard_error_where_they_are_known():
    """REINFORCE on two Bernoullis, in their logits: everything about a gradient is enumerated.

    The variance of 50,000 gradients is within 2 % (over five of its standard errors).
    """
    logits = torch.tensor([0.3, -0.8], dtype=torch.float64, requires_grad=True)
    p = logits.detach().sigmoid()
    weights = torch.tensor([1.0, 2.5], dtype=torch.float64)

    def cost(z):
        return (z * weights).sum(-1) + 1

    q = Independent(torch.distributions.Bernoulli(logits=logits), 1)
    row = measure(cost, q, gengs.REINFORCE(), gradients=50_000)["REINFORCE"]
    outcomes = torch.cartesian_prod(torch.arange(2.0), torch.arange(2.0)).double()
    mass = torch.where(outcomes == 1, p, 1 - p).prod(-1)
    gradients = cost(outcomes).unsqueeze(-1) * (outcomes - p)
    mean = mass @ gradients
    variance = float((mass @ (gradients - mean).square()).sum())
    assert row.variance == pytest.approx(variance, rel=0.02)
    assert row.bias_error == pytest.approx((variance / 50_000) ** 0.5, rel=0.01)
    error = float(mass @ (gradients - mean).norm(dim=-1))
    assert row.error == pytest.approx(error, rel=0.02)


def test_the_bias_spreads_as_its_standard_error_says():
    """Over 200 seeds bias / error has unit spread; outside of [.75, 1.28] once in a million."""
    rate = torch.tensor(3.0, requires_grad=True)
    rows = [
        measure(
            quadratic,
            Poisson(rate),
            gengs.MidCDF(),
            gradients=100,
            exact=torch.tensor(1.8),
            seed=seed,
        )["MidCDF"]
        for seed in range(200)
    ]
    scores = torch.tensor([row.bias / row.bias_error for row in rows])
    assert 0.75 < scores.std() < 1.28


def test_it_prints_and_exports(result):
    text = str(result)
    assert "exact gradient 1.8" in text and text.count("\n") == 5
    assert json.loads(json.dumps(result.to_dict()))["rows"][0]["estimator"] == "REINFORCE"
    assert list(result.to_dataframe()["evaluations"]) == [1, 4, 1, 1]
    with pytest.raises(KeyError, match="expected one of"):
        result["nothing"]


def test_what_aims_elsewhere_has_a_dash_and_a_reason():
    q = gengs.truncate(Poisson(torch.tensor(3.0, requires_grad=True)), 12)
    text = str(measure(lambda z: z, q, [gengs.VIMCO(3), gengs.RLOO(4)], gradients=10))
    assert "nan" not in text and text.splitlines()[2].split()[1:3] == ["—", "—"]
    assert text.endswith("VIMCO(samples=3): of another objective, so no bias is measured")


def test_the_figure_has_a_title_and_tells_all_estimators_apart():
    def row(name, bias=0.1, variance=1.0):
        return Row(name, bias, 0.01, variance, 1.0, 0.5, 1, 1.0)

    names = [f"GenGS({i})" for i in range(8)] + ["RLOO", "REINFORCE", "NVIL", "MidCDF", "IGR"]
    others = [row("VIMCO", bias=math.nan), row("Exact", variance=1e-16)]
    rows = (*(row(name, bias=0.0) for name in names), *others)
    figure = Measurement(rows, torch.ones(1), "given", 100).plot("poisson(3)")
    assert figure.get_suptitle() == "poisson(3)" and "100 gradients" in figure.axes[0].get_title(
        "left"
    )
    (legend,) = figure.legends
    drawn = {
        text.get_text(): (handle.get_color(), handle.get_marker())
        for text, handle in zip(legend.get_texts(), legend.get_lines(), strict=True)
    }
    assert len({drawn[name] for name in names}) == len(names)
    assert drawn["VIMCO"][1] == drawn["Exact"][1] == "None"
    assert not figure.axes[0].texts  # names stand in the legend, where they cannot overlap


def test_gradients_of_a_leaf_behind_a_truncation_and_a_network():
    weight = torch.tensor([0.4, 0.2], requires_grad=True)
    features = torch.tensor([[1.0, 2.0], [0.5, -1.0], [2.0, 0.3]])
    q = Independent(gengs.truncate(Poisson((features @ weight).exp()), 12), 1)

    def cost(z):
        return z.square().sum(-1)

    result = measure(cost, q, [gengs.RLOO(8)], gradients=4000)
    value = gengs.Exact().expect(cost, q)
    (exact,) = torch.autograd.grad(value, weight)
    torch.testing.assert_close(result.exact, exact.double())
    assert result["RLOO"].bias < 5 * result["RLOO"].bias_error


def test_vectorised_and_single_replicates_agree():
    rate = torch.tensor([1.0, 3.0], requires_grad=True)
    q = gengs.truncate(Poisson(rate), 12)
    both = [
        measure(quadratic, q, [gengs.RLOO(4)], gradients=1500, vectorise=v)["RLOO"]
        for v in (True, False)
    ]
    # two standard deviations of a variance estimated from 1500 heavy-tailed gradients
    assert both[0].variance == pytest.approx(both[1].variance, rel=0.35)


def test_a_given_gradient_and_a_reference_sample():
    rate = torch.full((8,), 2.0, requires_grad=True)
    q = Independent(Poisson(rate), 1)

    def cost(z):
        return (z.sum(-1) - 10).square()

    # E (s - 10)^2 with s ~ Poisson(16): derivative 1 + 2 (16 - 10) in each rate
    truth = torch.full((8,), 13.0)
    given = measure(cost, q, [gengs.MidCDF()], gradients=4000, exact=truth)
    assert given.source == "given" and given["MidCDF"].bias < 3 * given["MidCDF"].bias_error
    found = measure(cost, q, [gengs.MidCDF()], gradients=100)
    assert "1000000 draws" in found.source
    assert (found.exact - truth).abs().max() < 0.6


def test_own_parts_can_warm_up_first():
    rate = torch.tensor([1.0, 3.0], requires_grad=True)
    q = gengs.truncate(Poisson(rate), 12)
    estimator = gengs.NVIL()
    cold = measure(quadratic, q, [gengs.NVIL()], gradients=3000)["NVIL"]
    warm = measure(quadratic, q, [estimator], gradients=3000, warm_up=200)["NVIL"]
    assert warm.variance < 1.2 * cold.variance
    assert rate.grad is None


def test_the_generator_is_left_as_it_was():
    rate = torch.tensor(3.0, requires_grad=True)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    measure(quadratic, Poisson(rate), [gengs.MidCDF()], gradients=10)
    assert torch.equal(before, torch.get_rng_state())


def test_the_seed_decides_the_weights_of_an_estimator_too():
    def variances():
        rate = torch.tensor([1.0, 3.0], requires_grad=True)
        q = gengs.truncate(Poisson(rate), 12)
        found = measure(quadratic, q, [gengs.NVIL(), gengs.RELAX()], gradients=20, warm_up=3)
        return [row.variance for row in found.rows]

    first = variances()
    torch.manual_seed(1)  # for what is drawn outside of `measure`
    assert variances() == first


def test_another_objective_has_no_bias():
    rate = torch.tensor(3.0, requires_grad=True)
    row = measure(quadratic, gengs.truncate(Poisson(rate), 12), [gengs.VIMCO(4)], gradients=50)
    assert row["VIMCO"].bias != row["VIMCO"].bias  # NaN


def test_no_estimator_leaves_the_exact_gradient():
    rate = torch.tensor(3.0, requires_grad=True)
    assert str(measure(quadratic, Poisson(rate), [])).startswith("exact gradient")
    assert "\n" not in str(measure(quadratic, Poisson(rate), []))


def test_bad_input():
    rate = torch.tensor(3.0, requires_grad=True)
    with pytest.raises(ValueError, match="require a gradient"):
        measure(quadratic, Poisson(torch.tensor(3.0)), [gengs.MidCDF()])
    for few in (1, 1e3):
        with pytest.raises(ValueError, match="an integer of at least 2 as `gradients`"):
            measure(quadratic, Poisson(rate), [gengs.MidCDF()], gradients=few)
    with pytest.raises(ValueError, match="1 entries"):
        measure(quadratic, Poisson(rate), [gengs.MidCDF()], exact=torch.ones(3))


@pytest.mark.parametrize(
    ("cost", "sentence"),
    [
        (lambda z: quadratic(z).mean(), "^measure: `cost` must return one number per draw"),
        (lambda z: 3.0, "^measure: `cost` must return a tensor"),
        (lambda z: z / 0, "^measure: `cost` returned NaN or infinity"),
    ],
)
def test_a_wrong_cost_is_no_fault_of_an_estimator_that_was_not_passed(cost, sentence):
    rate = torch.tensor([3.0, 4.0], requires_grad=True)
    with pytest.raises((ValueError, TypeError, FloatingPointError), match=sentence):
        measure(cost, Poisson(rate), [gengs.MidCDF()], gradients=100)


def test_arguments_in_another_order_are_named():
    with pytest.raises(TypeError, match="in this order, but got Poisson and function first"):
        gengs.lab.measure(Poisson(torch.ones(2, requires_grad=True)), lambda z: z, [gengs.RLOO()])
