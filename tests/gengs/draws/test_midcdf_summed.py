"""The mid-CDF gradient of a table, summed over the atoms instead of averaged over draws.

Given the atom that was drawn, the gradient is a number. So the expected gradient is a sum over
atoms, exact for any cost, and has a formula of its own: with :math:`S_k = -\\partial F_k` and the
cost's derivative interpolated between the atoms that are not bridged,

    expected gradient = sum over gaps k of S_k * gap_k * (interpolated f')(middle of gap k).
"""

import numpy as np
import pytest
import scipy.stats
import torch
from torch.distributions import Poisson

import gengs

# atoms, probabilities up to a factor; an atom below 1 % of the mode times the lesser mass on a
# side is a valley
TABLES = {
    "no valley": ([0, 1, 2, 3, 4], [0.1, 0.3, 0.4, 0.15, 0.05]),
    "uneven gaps": ([-2, 0.5, 1, 4, 4.25, 9], [0.2, 0.1, 0.3, 0.15, 0.15, 0.1]),
    "valley": ([0, 1, 2, 3, 4], [0.3, 0.3, 0.001, 0.25, 0.15]),
    "valley of two": ([0, 1, 2, 3, 4, 5], [0.2, 0.3, 0.0005, 0.0008, 0.25, 0.25]),
    "valley after the first": ([0, 1, 2.5, 3, 7], [0.5, 0.002, 0.2, 0.2, 0.1]),
    "valley before the last": ([0, 1, 2.5, 3, 7], [0.3, 0.2, 0.2, 0.0005, 0.3]),
    "two valleys": ([-1, 0, 2, 3, 5, 6, 8], [0.3, 0.0005, 0.2, 0.2, 0.0006, 0.0005, 0.3]),
    "rare ends": ([0, 1, 2, 3, 4], [0.001, 0.4, 0.3, 0.3, 0.001]),
    "just above the bound": ([0, 1, 2, 3], [0.4, 0.0018, 0.4, 0.2]),
}
# each with its derivative
COSTS = {
    "quadratic": (lambda z: (z - 2.6) ** 2, lambda z: 2 * (z - 2.6)),
    "cubic": (lambda z: z**3 / 9, lambda z: z**2 / 3),
    "exponential": (lambda z: torch.exp(z / 3), lambda z: np.exp(z / 3) / 3),
}
DRAWS = 60_000
"""An atom of probability .001 is missing from so many draws once in 1e26."""


def gradients_by_atom(table, atoms, draw, cost):
    """The gradient of the cost in the logits for each atom drawn: (atoms, logits)."""
    logits = table.log().expand(DRAWS, -1).clone().requires_grad_()
    z, value = draw(gengs.Finite(atoms, logits=logits), cost)
    (gradients,) = torch.autograd.grad(value.sum(), logits)
    rows = []
    for atom in atoms:
        of_atom = gradients[z == atom]
        assert len(of_atom), f"the atom {float(atom)} was not drawn"
        torch.testing.assert_close(of_atom, of_atom[:1].expand_as(of_atom))
        rows.append(of_atom[0])
    return torch.stack(rows)


def by_sample(law, cost):
    z = gengs.rsample(law)
    return z.detach(), cost(z)


def by_estimator(law, cost):
    seen = []

    def watched(z):
        seen.append(z.detach())
        return cost(z)

    value = gengs.MidCDF().expect(watched, law)
    return seen[0][0], value


def expected_gradient(probs, atoms, slope):
    """The formula above in numpy, from its definition."""
    n = len(probs)
    left = np.array([probs[:k].sum() for k in range(n)])
    right = np.array([probs[k + 1 :].sum() for k in range(n)])
    kept = probs >= 0.01 * probs.max() * np.minimum(left, right)
    middle, gap = (atoms[1:] + atoms[:-1]) / 2, np.diff(atoms)
    slopes = np.interp(middle, atoms[kept], slope(atoms[kept]))
    cdf = probs.cumsum()
    # dF_k / dlogit_j = probs_j (1[j <= k] - F_k)
    change = probs * (np.tri(n)[:-1] - cdf[:-1, None])  # (gaps, logits)
    return -(change * (slopes * gap)[:, None]).sum(0)


@pytest.mark.parametrize("draw", [by_sample, by_estimator])
@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("name", TABLES)
def test_the_sum_over_atoms_is_the_interpolated_sum_over_gaps(name, cost, draw):
    atoms, table = (torch.tensor(x, dtype=torch.float64) for x in TABLES[name])
    probs = table / table.sum()
    f, slope = COSTS[cost]
    found = (probs.unsqueeze(-1) * gradients_by_atom(table, atoms, draw, f)).sum(0)
    wanted = expected_gradient(probs.numpy(), atoms.numpy(), slope)
    np.testing.assert_allclose(found.numpy(), wanted, rtol=1e-10, atol=1e-12)
    if cost == "quadratic":  # then the interpolation is no approximation
        exact = probs * (f(atoms) - (probs * f(atoms)).sum())
        torch.testing.assert_close(found, exact)


def test_a_bridged_atom_moves_nothing():
    atoms, table = (torch.tensor(x, dtype=torch.float64) for x in TABLES["valley of two"])
    rows = gradients_by_atom(table, atoms, by_sample, lambda z: z)
    assert (rows[2:4] == 0).all() and (rows[[0, 1, 4, 5]] != 0).any(-1).all()


def test_atoms_in_any_order():
    atoms, table = (torch.tensor(x, dtype=torch.float64) for x in TABLES["two valleys"])
    order = torch.tensor([4, 0, 6, 2, 5, 1, 3])
    rows = gradients_by_atom(table, atoms, by_sample, lambda z: z**2)
    shuffled = gradients_by_atom(table[order], atoms[order], by_sample, lambda z: z**2)
    torch.testing.assert_close(shuffled, rows[order][:, order])


@pytest.mark.parametrize("level", [3, 5, 9])
def test_a_cut_poisson_summed_over_its_atoms(level):
    """The same sum in the rate: half the gaps on either side, the tail lumped on the last atom."""
    rate = torch.full((DRAWS,), 1.7, dtype=torch.float64, requires_grad=True)
    z = gengs.rsample(gengs.truncate(Poisson(rate), level))
    (slopes,) = torch.autograd.grad(z.sum(), rate)
    pmf = scipy.stats.poisson(1.7).pmf(np.arange(60))  # dF(k) / drate = -pmf(k)
    for k in range(level):
        last = k == level - 1
        mass = pmf[k:].sum() if last else pmf[k]
        moved = (pmf[k - 1] if k else 0) + (0 if last else pmf[k])
        of_atom = slopes[z.detach() == k]
        assert len(of_atom) or mass < 1e-3
        np.testing.assert_allclose(of_atom.numpy(), moved / 2 / mass, rtol=1e-10)


@pytest.mark.parametrize("flip", [False, True], ids=["upper tail", "lower tail"])
@pytest.mark.parametrize("atoms", [3, 80])
def test_a_rare_atom_in_a_tail_moves_as_in_double_precision(flip, atoms):
    """Rounding errors of the bulk, 1e-7, divided by its probability, 2e-5, would be half a percent.

    Stratified draws: each of 130,000 strata has two, so the rare atom has about five.
    """
    bulk = torch.linspace(-1.0, 0.0, atoms - 1, dtype=torch.double).log_softmax(0)
    table = torch.cat([bulk, torch.tensor([2e-5], dtype=torch.double).log()])
    table = table.flip(0) if flip else table
    rare, found = 0.0 if flip else float(atoms - 1), {}
    for dtype in (torch.float, torch.double):
        torch.manual_seed(3)
        logits = table.to(dtype).requires_grad_()
        law = gengs.Finite(torch.arange(float(atoms)), logits=logits)
        z = gengs.rsample(law, torch.Size([1 << 18]))
        drawn = z.detach() == rare
        assert 0 < drawn.sum() < 100
        (found[dtype],) = torch.autograd.grad((z * drawn).sum() / drawn.sum(), logits)
    torch.testing.assert_close(
        found[torch.float].double(), found[torch.double], rtol=1e-4, atol=1e-6
    )
