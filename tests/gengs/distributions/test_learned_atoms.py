"""Atoms that require a gradient: right, or refused."""

import pytest
import torch
from torch.distributions import Poisson

import gengs
from gengs import Finite

LOGITS = torch.tensor([0.1, 0.2, -0.3], dtype=torch.float64)
REFUSE = (gengs.MuProp, gengs.ReinMax, gengs.StraightThroughMean, gengs.ArrivalTimes)
BIASED = (gengs.GenGS, gengs.IGR)  # they differentiate a relaxed expectation


def atoms_gradient(estimator, replicates):
    atoms = torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    q = Finite(atoms, logits=LOGITS.expand(replicates, 3))
    torch.manual_seed(0)
    value = estimator.expect(lambda z: (z - 2).square(), q).mean()
    return torch.autograd.grad(value, atoms)[0]


@pytest.mark.parametrize("kind", gengs.estimators.ALL, ids=lambda kind: kind.__name__)
def test_gradient_of_learned_atoms(kind):
    """40,000 draws know each entry, π_k f'(c_k), to 0.01; five of those, 1e-6 false alarms."""
    if kind in REFUSE:
        with pytest.raises(TypeError, match=r"atoms|Poisson"):
            atoms_gradient(kind(), 2)
        return
    found = atoms_gradient(kind(), 40_000)
    if kind is gengs.VIMCO or kind in BIASED:
        assert torch.isfinite(found).all() and (found != 0).all()
    else:
        torch.testing.assert_close(found, atoms_gradient(gengs.Exact(), 2), atol=0.05, rtol=0)


def test_a_straight_through_draw_moves_with_its_atom_once():
    atoms = torch.tensor([0.0, 1.0, 3.0], dtype=torch.float64, requires_grad=True)
    z = gengs.gumbel_relax(Finite(atoms, logits=LOGITS), 0.5, hard=True)
    (gradient,) = torch.autograd.grad(z, atoms)
    assert gradient.sum() == 1


def test_equal_atoms_are_refused():
    with pytest.raises(ValueError, match="2 of the 3"):
        Finite(torch.tensor([1.0, 1.0, 2.0]), probs=torch.ones(3))


def test_a_decoder_does_not_hide_a_missing_gradient():
    rate = torch.tensor(3.0, requires_grad=True)
    table = torch.nn.Embedding(64, 1)

    def cost(z):
        return table(z.long().clamp(0, 63)).squeeze(-1)

    for kind in gengs.estimators.ALL:
        if kind.needs_cost_gradient:
            with pytest.raises(TypeError, match="differentiable"):
                kind().expect(cost, Poisson(rate))
