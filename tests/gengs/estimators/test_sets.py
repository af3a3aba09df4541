"""Every estimator on subsets and rankings: it serves them, or it says what would.

The mean gradient over a batch of equal rows is compared with enumeration; false-alarm rate about
1e-6 for each (5.5 standard errors, five coordinates), power: a bias of 12 % of one gradient's
standard deviation.
"""

import pytest
import torch

import gengs
from gengs.estimators import ALL

ROWS = 4_000
THETA = torch.tensor([0.8, -0.4, 0.1, 1.2, -0.9])
WEIGHTS = torch.tensor([1.0, -0.5, 0.3, 2.0, 0.7])
PLACES = torch.tensor([[1.0, 0.5, -1.0, 0.2, 0.1], [0.3, -0.8, 0.4, 0.9, -0.2]])

LAWS = {
    "subset": (
        lambda t: gengs.Subset(2, logits=t),
        lambda z: torch.sigmoid(4 * (z @ WEIGHTS) - 3),
    ),
    "ranking": (
        lambda t: gengs.PlackettLuce(logits=t, k=2),
        lambda z: torch.sigmoid(4 * (z * PLACES).sum((-1, -2)) - 1),
    ),
}
laws = pytest.mark.parametrize("law", LAWS)
UNBIASED = [
    gengs.REINFORCE(2),
    gengs.RLOO(4),
    gengs.MuProp(2),
    gengs.UnOrd(4),
    gengs.FiniteDifference(),
    gengs.FiniteDifference(coordinates=3),
    gengs.MidCDF(debias=1),
    gengs.MidCDF(debias=3),
]


def gradients(estimator, law):
    build, cost = LAWS[law]
    theta = THETA.expand(ROWS, 5).clone().requires_grad_()
    estimator.expect(cost, build(theta)).sum().backward()
    return theta.grad


def exact(law):
    build, cost = LAWS[law]
    theta = THETA.clone().requires_grad_()
    gengs.Exact().expect(cost, build(theta)).backward()
    return theta.grad


@laws
@pytest.mark.parametrize("estimator", UNBIASED, ids=repr)
def test_unbiased(estimator, law):
    torch.manual_seed(0)
    found = gradients(estimator, law)
    error = found.std(0) / ROWS**0.5
    assert ((found.mean(0) - exact(law)).abs() < 5.5 * error).all()


@laws
def test_several_swaps_of_one_draw_vary_less(law):
    torch.manual_seed(0)
    few, many = (gradients(gengs.FiniteDifference(coordinates=c), law).var(0).sum() for c in (1, 8))
    assert many < few / 2


@laws
@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__name__)
def test_serves_many_outcomes_or_names_what_does(kind, law):
    torch.manual_seed(0)
    theta = torch.randn(40, requires_grad=True)
    q = gengs.Subset(20, logits=theta) if law == "subset" else gengs.PlackettLuce(logits=theta)
    along = torch.arange(q.event_shape.numel()).sin().reshape(q.event_shape)
    cost = lambda z: (z * along).flatten(1).sum(-1).square()  # noqa: E731
    said = None
    try:
        kind().expect(cost, q).backward()
    except (TypeError, ValueError) as error:
        said = str(error)
    served = theta.grad is not None and theta.grad.isfinite().all() and theta.grad.any()
    assert served if said is None else "MidCDF" in said


@laws
@pytest.mark.parametrize("hard", [False, True])
def test_relaxations_are_soft_or_exact(law, hard):
    torch.manual_seed(0)
    theta = THETA.clone().requires_grad_()
    q = LAWS[law][0](theta)
    z = gengs.rsample(q, (6,), by=gengs.GenGS(0.5, hard=hard))
    assert bool(((z == 0) | (z == 1)).all()) == hard
    assert bool(q.support.check(z.detach()).all()) == hard
    z.square().sum().backward()
    assert theta.grad.isfinite().all() and theta.grad.abs().sum() > 0
