"""A bad input gets one sentence: the argument, what was expected, what came."""

import re

import pytest
import torch
from torch.distributions import Independent, Multinomial, Normal, OneHotCategorical, Poisson

import gengs

POISSON = Poisson(torch.tensor([2.0, 3.0]))
K = torch.arange(3)
FLAT = torch.zeros(3)

CASES = {
    "both logits and probs": (
        lambda: gengs.Finite(K, logits=FLAT, probs=FLAT),
        r"Finite expects exactly one of `logits` and `probs`",
    ),
    "neither logits nor probs": (
        lambda: gengs.Finite(K),
        r"Finite expects exactly one of `logits` and `probs`",
    ),
    "a mean in the cost": (
        lambda: gengs.RLOO().expect(lambda z: z.mean(), POISSON),
        r"returned shape \(\); take the mean after expect",
    ),
    "a sum without Independent": (
        lambda: gengs.RLOO().expect(lambda z: z.sum(-1), POISSON),
        r"returned shape \(2,\); if a draw is a vector, wrap q: Independent\(q, 1\)",
    ),
    "negative probs": (
        lambda: gengs.Finite(K, probs=torch.tensor([0.5, -0.25, 0.75])),
        r"non-negative `probs`, but the smallest is -0\.25 \(shape \(3,\)\)",
    ),
    "zero atoms": (
        lambda: gengs.Finite(torch.ones(0), probs=torch.ones(0)),
        r"at least one atom in the last dimension of `probs`, but got shape \(0,\)",
    ),
    "scalar logits": (
        lambda: gengs.Finite(K, logits=torch.tensor(1.0)),
        r"at least one atom in the last dimension of `logits`, but got shape \(\)",
    ),
    "fewer atoms than logits": (
        lambda: gengs.Finite(torch.arange(2), logits=FLAT),
        r"`atoms` of shape \(\*batch, 3, \*event\) .* but got \(2,\)",
    ),
    "vector atoms without event_dim": (
        lambda: gengs.Finite(torch.ones(3, 2), logits=FLAT),
        r"but got \(3, 2\); for vector atoms pass event_dim=1",
    ),
    "batches that do not broadcast": (
        lambda: gengs.Finite(torch.ones(4, 3), logits=torch.zeros(2, 3)),
        r"batch shapes of `atoms` and of the probabilities to broadcast, but got \(4,\) and \(2,\)",
    ),
    "NaN atoms": (
        lambda: gengs.Finite(torch.tensor([0.0, torch.nan, 1.0]), logits=FLAT),
        r"Finite expects finite values in `atoms` \(shape \(3,\)\), but 1 of them",
    ),
    "value that is no atom": (
        lambda: gengs.Finite(K, logits=FLAT).log_prob(torch.tensor([0.0, 7.0])),
        r"values among the 3 atoms, but 1 of 2 in `value`",
    ),
    "NaN rate": (
        lambda: gengs.truncate(Poisson(torch.tensor(torch.nan), validate_args=False), 5),
        r"Poisson expects finite values in `rate` \(shape \(\)\), .* the first is nan",
    ),
    "infinite rate": (
        lambda: gengs.truncate(Poisson(torch.tensor(torch.inf)), 5),
        r"Poisson expects finite values in `rate` \(shape \(\)\), .* the first is inf",
    ),
    "level 0": (lambda: gengs.truncate(POISSON, 0), r"at least one atom, but got level=0"),
    "negative level": (lambda: gengs.truncate(POISSON, -3), r"at least one atom, but got level=-3"),
    "fractional level": (
        lambda: gengs.truncate(POISSON, 2.5),
        r"an integer `level`, but got 2\.5",
    ),
    "textual level": (lambda: gengs.truncate(POISSON, "12"), r"an integer `level`, but got '12'"),
    "fractional high": (
        lambda: gengs.truncate(POISSON, low=0, high=2.5),
        r"an integer `high`, but got 2\.5",
    ),
    "empty range": (
        lambda: gengs.truncate(POISSON, low=5, high=3),
        r"at least one atom, but got low=5 and high=3",
    ),
    "half a range of an infinite law": (
        lambda: gengs.truncate(POISSON, low=5),
        r"expects both low= and high= for Poisson",
    ),
    "no rule for an infinite law": (
        lambda: gengs.truncate(POISSON),
        r"expects a rule \(level=, low=/high=, mass= or tolerance=\) for Poisson",
    ),
    "mass 0": (lambda: gengs.truncate(POISSON, mass=0.0), r"0 < mass < 1, but got mass=0\.0"),
    "mass 1": (lambda: gengs.truncate(POISSON, mass=1.0), r"0 < mass < 1, but got mass=1\.0"),
    "NaN mass": (
        lambda: gengs.truncate(POISSON, mass=torch.nan),
        r"0 < mass < 1, but got mass=nan",
    ),
    "a latent vector of nothing": (
        lambda: gengs.Exact().expect(
            lambda z: z.sum(-1), Independent(Poisson(torch.ones(2, 0)), 1)
        ),
        r"Exact expects a latent vector of one number or more, but got one of shape \(0,\)",
    ),
    "tolerance 0": (
        lambda: gengs.truncate(POISSON, tolerance=0.0),
        r"0 < tolerance < 1, but got tolerance=0\.0",
    ),
    "tolerance 2": (
        lambda: gengs.truncate(POISSON, tolerance=2.0),
        r"0 < tolerance < 1, but got tolerance=2\.0",
    ),
    "two rules": (
        lambda: gengs.truncate(POISSON, 5, mass=0.9),
        r"expects one rule, but got level and mass",
    ),
    "three rules": (
        lambda: gengs.truncate(POISSON, tolerance=0.1, high=4, mass=0.9),
        r"expects one rule, but got low/high and mass and tolerance",
    ),
    "a rule for a law on vectors": (
        lambda: gengs.truncate(OneHotCategorical(torch.ones(3)), 2),
        r"keeps all values of a OneHotCategorical; it takes no level",
    ),
    "a rule for a law that is finite already": (
        lambda: gengs.truncate(gengs.Finite(K, logits=FLAT), 2),
        r"keeps all values of a Finite; it takes no level",
    ),
    "window too large for memory": (
        lambda: gengs.truncate(Poisson(torch.ones(10_000)), 10**9),
        r"table of 1000000000 atoms for each of 10000 elements .* needs about",
    ),
    "multinomial with too many outcomes": (
        lambda: gengs.truncate(Multinomial(100, torch.ones(20))),
        r"Multinomial\(total_count=100\) on 20 categories has \d+ outcomes, too many",
    ),
    "negative Skellam rate": (
        lambda: gengs.Skellam(torch.tensor(-1.0), torch.tensor(1.0)),
        r"Skellam expects non-negative `rate_up`, but got -1",
    ),
    "temperature 0": (
        lambda: gengs.Relaxed(0.0, gengs.Finite(K, logits=FLAT)),
        r"positive, finite `temperature`, but got 0\.0",
    ),
    "temperature tensor with a bad entry": (
        lambda: gengs.gumbel_relax(Multinomial(2, torch.ones(2, 2)), torch.tensor([1.0, -2.0])),
        r"positive, finite `temperature`, but got \[1\.0, -2\.0\]",
    ),
}

TYPE_CASES = {
    "a list of atoms": (
        lambda: gengs.Finite([0.0, 1.0, 2.0], logits=FLAT),
        r"Finite expects a tensor as `atoms`, but got list",
    ),
    "a list of logits": (
        lambda: gengs.gumbel_relax(logits=[0.0, 1.0]),
        r"gumbel_relax expects a tensor as `logits`, but got list",
    ),
    "a cost that is a number": (
        lambda: gengs.MidCDF().expect(3.0, POISSON),
        r"MidCDF expects a function as `cost`, but got float",
    ),
    "a cost that is complex": (
        lambda: gengs.RLOO().expect(lambda z: z + 1j, POISSON),
        r"`cost` must return real numbers, but returned torch.complex64",
    ),
    "the class of an estimator": (
        lambda: gengs.lab.measure(
            torch.square, Poisson(torch.ones(2, requires_grad=True)), [gengs.MidCDF]
        ),
        r"measure expects estimators, such as MidCDF\(\), but got the class MidCDF",
    ),
    "a list as logits": (
        lambda: gengs.OneHot([0.0, 1.0]),
        r"a tensor as `logits`, but got list",
    ),
    "a number as a sample shape": (
        lambda: gengs.rsample(POISSON, 2),
        r"a shape, such as \(2,\), as `sample_shape`, but got 2",
    ),
    "a continuous law": (
        lambda: gengs.truncate(Normal(0.0, 1.0), 5),
        r"PMF on integers, but Normal has support Real\(\)",
    ),
    "mass of a law without a smallest value": (
        lambda: gengs.truncate(gengs.Skellam(1.0, 1.0), mass=0.9),
        r"counts up from the smallest value, but Skellam has none; use tolerance=",
    ),
    "textual temperature": (
        lambda: gengs.Relaxed("warm", gengs.Finite(K, logits=FLAT)),
        r"`temperature`.*'warm'",
    ),
}


@pytest.mark.parametrize(("call", "sentence"), CASES.values(), ids=CASES.keys())
def test_value_errors(call, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        call()
    assert_one_sentence(caught)


@pytest.mark.parametrize(("call", "sentence"), TYPE_CASES.values(), ids=TYPE_CASES.keys())
def test_type_errors(call, sentence):
    with pytest.raises(TypeError, match=sentence) as caught:
        call()
    assert_one_sentence(caught)


def assert_one_sentence(caught):
    text = str(caught.value)
    assert "\n" not in text
    assert text.endswith(".")
    assert len(re.findall(r"[.] [A-Z]", text)) == 0
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("rule", [{"tolerance": 1e-3}, {"mass": 0.9}])
def test_rules_that_read_values_say_so_under_vmap(rule, torch_validation_off):
    def mean(rate):
        return gengs.truncate(Poisson(rate), **rule).mean

    with pytest.raises(ValueError, match=r"needs to read the parameters .* give a level"):
        torch.func.vmap(mean)(torch.ones(3))


@pytest.mark.parametrize(
    ("estimator", "cost", "rate", "kind"),
    [
        (gengs.RLOO(2), torch.square, 0.0, gengs.BoundaryWarning),
        (gengs.REBAR(8), lambda z: (99 * z).floor() + 0 * z, 2.0, gengs.StepCostWarning),
    ],
    ids=["boundary", "steps"],
)
def test_a_warning_points_to_the_line_that_asked(estimator, cost, rate, kind):
    with pytest.warns(kind) as caught:
        estimator.expect(cost, Poisson(torch.full((50,), rate, requires_grad=True)))
    assert caught[0].filename == __file__
