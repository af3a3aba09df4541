"""Parameters that move the values of a draw: the score refuses them, in a block and by itself."""

import pyro
import pytest
import torch
from torch import distributions
from torch.distributions import (
    Binomial,
    Categorical,
    Exponential,
    Gumbel,
    Independent,
    Kumaraswamy,
    LogNormal,
    MixtureSameFamily,
    NegativeBinomial,
    Normal,
    Pareto,
    Poisson,
    TransformedDistribution,
    Uniform,
    Weibull,
)
from torch.distributions.transforms import (
    AffineTransform,
    ComposeTransform,
    ExpTransform,
    IndependentTransform,
    PowerTransform,
    SigmoidTransform,
    StackTransform,
)

import gengs
from gengs import differentiable
from gengs.laws.score_limits import missing_score

R = 50
zeros, ones = torch.zeros(R), torch.ones(R)


def weights():
    return Categorical(torch.ones(R, 2))


def beside(x):
    return torch.stack([x, 2 * x], -1)


def logistic(t):
    return TransformedDistribution(
        Uniform(zeros, ones), [SigmoidTransform().inv, AffineTransform(t, t)]
    )


MOVING = {
    "uniform": (lambda t: Uniform(zeros, t), "ends of its support"),
    "pareto": (lambda t: Pareto(t, ones), "ends of its support"),
    "generalized pareto": (
        lambda t: distributions.GeneralizedPareto(zeros, t, -ones),
        "ends of its support",
    ),
    "vectors": (lambda t: Independent(Uniform(beside(zeros), beside(t)), 1), "ends"),
    "mixture": (lambda t: MixtureSameFamily(weights(), Uniform(-beside(t), beside(t))), "ends"),
    "log-uniform": (lambda t: TransformedDistribution(Uniform(zeros, t), ExpTransform()), "ends"),
    "scaled": (
        lambda t: TransformedDistribution(Uniform(zeros, ones), AffineTransform(0, t)),
        "ends",
    ),
    "shifted": (
        lambda t: TransformedDistribution(Exponential(ones), AffineTransform(t, 1)),
        "ends",
    ),
    "shifted, positive": (
        lambda t: TransformedDistribution(
            Normal(zeros, ones), [ExpTransform(), AffineTransform(t, 1)]
        ),
        "ends",
    ),
    "shifted, composed": (
        lambda t: TransformedDistribution(
            Exponential(ones), ComposeTransform([ComposeTransform([AffineTransform(t, 1)])])
        ),
        "ends",
    ),
    "shifted, inverse": (
        lambda t: TransformedDistribution(Exponential(ones), AffineTransform(t, 1).inv),
        "ends",
    ),
    "shifted, independent": (
        lambda t: TransformedDistribution(
            Exponential(ones), IndependentTransform(AffineTransform(t, 1), 1)
        ),
        "ends",
    ),
    "shifted, beside": (
        lambda t: TransformedDistribution(
            Exponential(torch.ones(R, 2)),
            StackTransform([AffineTransform(t, 1), ExpTransform()], dim=-1),
        ),
        "ends",
    ),
    "power": (
        lambda t: TransformedDistribution(Uniform(ones, 2 * ones), PowerTransform(t)),
        "ends",
    ),
    "binomial": (lambda t: Binomial(t, 0.5 * ones), "total_count"),
    "mixture of binomials": (
        lambda t: MixtureSameFamily(weights(), Binomial(beside(t), beside(0.4 * ones))),
        "total_count",
    ),
    "beta-binomial": (lambda t: pyro.distributions.BetaBinomial(ones, ones, t), "total_count"),
    "counts with a factor": (
        lambda t: TransformedDistribution(Poisson(ones), AffineTransform(0, t)),
        "transforms",
    ),
    "atoms": (
        lambda t: MixtureSameFamily(
            weights(), gengs.Finite(beside(t).unsqueeze(-1), logits=torch.zeros(R, 2, 1))
        ),
        "atoms",
    ),
}
STILL = {
    "normal": lambda t: Normal(t, t),
    "log-normal": lambda t: LogNormal(t, t),
    "gumbel": lambda t: Gumbel(t, t),
    "logistic": logistic,
    "exponential with a factor": lambda t: TransformedDistribution(
        Exponential(ones), AffineTransform(0, t)
    ),
    "normal, shifted": lambda t: TransformedDistribution(
        Normal(zeros, ones), AffineTransform(t, t)
    ),
    "normal, shifted back": lambda t: TransformedDistribution(
        Normal(zeros, ones), ComposeTransform([AffineTransform(t, t).inv])
    ),
    "exponential divided": lambda t: TransformedDistribution(
        Exponential(ones), AffineTransform(0, t).inv
    ),
    "power of a share": lambda t: TransformedDistribution(Uniform(zeros, ones), PowerTransform(t)),
    "weibull": lambda t: Weibull(t, t),
    "kumaraswamy": lambda t: Kumaraswamy(t, t),
    "generalized pareto": lambda t: distributions.GeneralizedPareto(zeros, t, 0.1 * ones),
    "negative binomial": lambda t: NegativeBinomial(t, 0.5 * ones),
    "pareto": lambda t: Pareto(ones, t),
}


def parameter():
    return torch.full((R,), 3.0, requires_grad=True)


@pytest.mark.parametrize("by", [gengs.RLOO(), gengs.FittedScore()], ids=str)
@pytest.mark.parametrize("name", MOVING)
def test_what_moves_the_values_is_refused(name, by):
    make, what = MOVING[name]
    with differentiable(by=by):
        torch.poisson(zeros)
        with pytest.raises(TypeError, match=rf"test_score_limits.py:\d+: the score .*{what}"):
            make(parameter()).sample()
        make(parameter().detach()).sample()


@pytest.mark.parametrize("name", STILL)
def test_what_moves_probabilities_alone_is_drawn(name):
    t = parameter()
    with differentiable(by=gengs.RLOO()) as program:
        z = STILL[name](t).sample()
    program.loss(z).sum().backward()
    assert t.grad.isfinite().all() and t.grad.any()


def test_it_is_asked_without_a_block():
    why = missing_score(Uniform(zeros, parameter()))
    assert why.startswith("the score of Uniform has no derivative in the ends of its support")
    assert missing_score(Uniform(zeros, parameter().detach())) is None


def test_a_check_does_not_compare_with_a_score_that_lacks_a_part():
    t = parameter()
    with differentiable() as program:
        z = Uniform(zeros, t).sample()
    with pytest.raises(TypeError, match="ends of its support"):
        program.check(z)
    with differentiable() as program:  # the ends come from a draw, whose own score has the part
        z = Uniform(zeros, torch.poisson(100 * t)).sample()
    assert program.check(z).agrees is not False


@pytest.mark.parametrize("by", [None, gengs.RLOO()], ids=str)
def test_the_parameters_of_a_flow_have_their_gradient(by):
    flow = pyro.distributions.transforms.AffineAutoregressive(pyro.nn.AutoRegressiveNN(2, [4]))
    with differentiable(by=by) as program:
        z = TransformedDistribution(Normal(torch.zeros(R, 2), 1.0), [flow]).sample()
    program.loss(z.square().sum(1)).sum().backward()
    assert any(parameter.grad.any() for parameter in flow.parameters())
