"""Every distribution of torch in a block: drawn as ever, or refused in a sentence."""

import warnings

import pytest
import torch
from torch import distributions as d
from torch.distributions import constraints, transforms

import gengs
from gengs import differentiable

R = 20
RULES = pytest.mark.parametrize("by", [None, gengs.RLOO(), gengs.FittedScore()], ids=str)
# a number or a vector for each parameter that its constraint alone does not give
GIVEN = {
    "Binomial": lambda p: {"total_count": 5, "probs": p(0.3)},
    "FisherSnedecor": lambda p: {"df1": p(3.0), "df2": p(4.0)},
    "GeneralizedPareto": lambda p: {
        "loc": torch.zeros(R),
        "scale": p(1.0),
        "concentration": torch.full((R,), 0.1),
    },
    "Independent": lambda p: {
        "base_distribution": d.Gumbel(p(0.0, 1.0), 1.0),
        "reinterpreted_batch_ndims": 1,
    },
    "LKJCholesky": lambda p: {"dim": 2, "concentration": p(1.0)},
    "LowRankMultivariateNormal": lambda p: {
        "loc": p(0.0, 1.0),
        "cov_factor": torch.ones(R, 2, 1),
        "cov_diag": torch.ones(R, 2),
    },
    "MixtureSameFamily": lambda p: {
        "mixture_distribution": d.Categorical(p(0.2, 0.8)),
        "component_distribution": d.Poisson(p(1.0, 2.0)),
    },
    "Multinomial": lambda p: {"total_count": 4, "probs": p(0.2, 0.8)},
    "MultivariateNormal": lambda p: {
        "loc": p(0.0, 1.0),
        "covariance_matrix": torch.eye(2).expand(R, 2, 2),
    },
    "Pareto": lambda p: {"scale": torch.ones(R), "alpha": p(3.0)},
    "RelaxedBernoulli": lambda p: {"temperature": torch.tensor(0.5), "probs": p(0.3)},
    "RelaxedOneHotCategorical": lambda p: {"temperature": torch.tensor(0.5), "probs": p(0.2, 0.8)},
    "TransformedDistribution": lambda p: {
        "base_distribution": d.Uniform(torch.zeros(R), torch.ones(R)),
        "transforms": [
            transforms.SigmoidTransform().inv,
            transforms.AffineTransform(p(0.0), p(1.0)),
        ],
    },
    "Uniform": lambda p: {"low": torch.zeros(R), "high": torch.ones(R)},
    "Wishart": lambda p: {"df": p(3.0), "covariance_matrix": torch.eye(2).expand(R, 2, 2)},
}
WITHOUT_PATH = {"LKJCholesky", "VonMises"}
"""Continuous, with no ``rsample``."""
KINDS = sorted(
    name
    for name in d.__all__
    if isinstance(kind := getattr(d, name), type)
    and issubclass(kind, d.Distribution)
    and kind not in (d.Distribution, d.ExponentialFamily)
)


def make(name, learned):
    def parameter(*numbers):
        values = torch.tensor(numbers).repeat(R, 1)
        return (values if len(numbers) > 1 else values[:, 0]).requires_grad_(learned)

    kind = getattr(d, name)
    if name in GIVEN:
        return kind(**GIVEN[name](parameter))
    given = {}
    for key, constraint in kind.arg_constraints.items():
        if key == "logits":
            continue
        while hasattr(constraint, "base_constraint"):
            constraint = constraint.base_constraint
        if name in ("Dirichlet", "LogisticNormal", "Categorical") or name.startswith("OneHot"):
            given[key] = parameter(0.2, 0.8)
        elif constraint is constraints.real:
            given[key] = parameter(0.5)
        else:
            given[key] = parameter(0.3 if key == "probs" else 1.5)
    return kind(**given)


@RULES
@pytest.mark.parametrize("learned", [False, True], ids=["fixed", "learned"])
@pytest.mark.parametrize("name", KINDS)
@pytest.mark.filterwarnings("ignore:Singular sample:UserWarning")
def test_it_is_drawn_in_a_block(name, learned, by):
    torch.manual_seed(0)
    plain = make(name, learned).sample()
    torch.manual_seed(0)
    with differentiable(by=by) as program:
        q = make(name, learned)
        if learned and by is None and name in WITHOUT_PATH:
            with pytest.raises(TypeError, match="is continuous"):
                q.sample()
            return
        z = q.sample()
    torch.testing.assert_close(z.detach(), plain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gengs.ProgramWarning)  # where nothing is learned
        program.loss(z.reshape(R, -1).double().square().sum(1))
