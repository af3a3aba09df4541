"""``torch.multinomial`` without replacement, against sums over all orders.

Each comparison is at 5 standard errors of its own mean: some 150 of them, so that a right program
fails one time in ten thousand. With 4,000 rows an error of 10 to 20 % of a gradient is seen.
"""

import itertools

import pytest
import torch
from torch.nn.functional import embedding, one_hot

import gengs
from gengs import CutGradientWarning, differentiable
from gengs.programs.known_laws import move_one_hot
from gengs.programs.picks import Picks

R = 4000
WEIGHTS = torch.tensor([1.0, 2.0, 4.0, 0.5], dtype=torch.float64)
VALUES = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
BY_PLACE = torch.tensor([1.0, 3.0], dtype=torch.float64)


def rows(i):
    return torch.arange(len(i)).unsqueeze(1)


def zeros(i, dtype=torch.float64):
    return torch.zeros(len(i), 4, dtype=dtype)


def written(i, dtype):
    mask = zeros(i, dtype)
    mask[rows(i), i] = 1
    return mask.double() @ VALUES


IN_ORDER = {
    "values[i]": lambda i: VALUES[i] @ BY_PLACE,
    "one_hot": lambda i: one_hot(i, 4).double() @ VALUES @ BY_PLACE,
    "gather": lambda i: VALUES.expand(len(i), 4).gather(1, i) @ BY_PLACE,
    "gather by name": lambda i: VALUES.expand(len(i), 4).gather(dim=-1, index=i) @ BY_PLACE,
    "take": lambda i: VALUES.take(i) @ BY_PLACE,
    "take_along_dim": lambda i: VALUES.expand(len(i), 4).take_along_dim(i, 1) @ BY_PLACE,
    "index_select": lambda i: VALUES.index_select(0, i[:, 1]),
    "embedding": lambda i: embedding(i, VALUES.outer(BY_PLACE)).sum(-1) @ BY_PLACE,
    "x[rows, i]": lambda i: VALUES.expand(len(i), 4)[rows(i), i] @ BY_PLACE,
    "x[..., i]": lambda i: (VALUES.expand(3, 4)[..., i] @ BY_PLACE).mean(0),
    "scatter": lambda i: zeros(i).scatter(-1, i, BY_PLACE.expand(len(i), 2)) @ VALUES,
    "scatter_add": lambda i: zeros(i).scatter_add(-1, i, BY_PLACE.expand(len(i), 2)) @ VALUES,
    "a number": lambda i: i.double() @ BY_PLACE,
    "first and second": lambda i: VALUES[i[:, 0]] - 2 * VALUES[i[:, 1]],
}
AS_A_SET = {
    "scatter": lambda i: zeros(i).scatter(-1, i, 1.0) @ VALUES,
    "scatter_": lambda i: zeros(i).scatter_(-1, i, 1.0) @ VALUES,
    "x[rows, i] = 1": lambda i: written(i, torch.float64),
    "a mask": lambda i: written(i, torch.bool),
}
FACES = {**IN_ORDER, **{f"set: {name}": face for name, face in AS_A_SET.items()}}


def expectation(weights, cost, k=2):
    """Over all orders of the first k."""
    total = 0.0
    for order in itertools.permutations(range(len(weights)), k):
        p, left = 1.0, weights.sum()
        for item in order:
            p, left = p * weights[item] / left, left - weights[item]
        if p != 0 or weights.requires_grad:
            total = total + p * cost(torch.tensor([order]))[0]
    return total


def gradients(cost, weights, by=None):
    """Of each row, and the exact one."""
    torch.manual_seed(0)
    wide = weights.expand(R, 4).clone().requires_grad_()
    with differentiable(by=by) as program:
        index = torch.multinomial(wide, 2)
        values = cost(index)
    torch.manual_seed(0)
    assert torch.equal(torch.multinomial(weights.expand(R, 4), 2), index)  # what it always draws
    torch.testing.assert_close(values.detach(), cost(index.clone()))
    (found,) = torch.autograd.grad(program.loss(values).sum(), wide)
    alone = weights.clone().requires_grad_()
    return found, torch.autograd.grad(expectation(alone, cost), alone)[0]


def agree(found, exact):
    z = (found.mean(0) - exact) / (found.std(0) / R**0.5).clamp_min(1e-9)
    return bool((z.abs() < 5).all())


@pytest.mark.parametrize("name", FACES)
def test_the_path_is_exact_for_squares_of_what_the_indices_point_to(name):
    def cost(i):
        return FACES[name](i) ** 2

    found, exact = gradients(cost, WEIGHTS)
    assert agree(found, exact)
    assert not agree(0.5 * found, exact)  # half a gradient would be seen


@pytest.mark.parametrize("name", ["values[i]", "set: scatter"])
def test_weights_of_zero_have_their_one_sided_slope(name):
    """Exact for costs that are linear in what the indices point to."""
    weights = torch.tensor([1.0, 2.0, 4.0, 0.0], dtype=torch.float64)
    found, exact = gradients(FACES[name], weights)
    assert exact[-1].abs() > 0.5 and agree(found, exact)


def test_a_set_is_quieter_than_its_order():
    def by_places(i):
        return one_hot(i, 4).double().sum(-2) @ VALUES

    found = [gradients(face, WEIGHTS)[0].var(0).sum() for face in (by_places, AS_A_SET["scatter"])]
    assert found[1] < 0.85 * found[0]  # more so of many items


@pytest.mark.parametrize(
    "by", [gengs.RLOO(), gengs.FittedScore(memory=0.0)], ids=["RLOO", "fitted"]
)
def test_the_score_is_that_of_the_order(by):
    """A step of the first item, which the path would not see."""

    def cost(i):
        return (i[:, 0] > 1).double() + i[:, 1] ** 2

    assert agree(*gradients(cost, WEIGHTS, by))


def test_one_pick_is_a_category():
    weights = WEIGHTS.expand(50, 4).clone().requires_grad_()
    index = torch.multinomial(weights.detach(), 1)
    pull = torch.randn(50, 1, 4, dtype=torch.float64)
    law = Picks(weights, index)
    still = one_hot(index, 4)
    expected = torch.autograd.grad(move_one_hot(law, still), weights, pull, retain_graph=True)
    torch.testing.assert_close(torch.autograd.grad(law.matrix(), weights, pull), expected)


def test_path_and_score_are_checked():
    weights = WEIGHTS.clone().requires_grad_()
    with differentiable() as program:
        cost = VALUES[torch.multinomial(weights.expand(R, 4), 2)] @ BY_PLACE
    assert program.check(cost).agrees is not False


def test_relaxed_orders_draw_different_items():
    weights = WEIGHTS.expand(R, 4).clone().requires_grad_()
    with differentiable(by=gengs.GenGS(0.5, hard=True)) as program:
        index = torch.multinomial(weights, 2)
        cost = VALUES[index] @ BY_PLACE
    assert (index[:, 0] != index[:, 1]).all()
    assert torch.autograd.grad(program.loss(cost).sum(), weights)[0].abs().sum() > 0


def test_too_few_weights_are_named():
    weights = torch.tensor([1.0, 0.0, 0.0], requires_grad=True)
    with (
        differentiable(),
        pytest.raises(ValueError, match=r"test_picks.py:\d+.*at least 2 weights"),
    ):
        torch.multinomial(weights, 2)


def test_what_is_not_carried_is_said():
    """Sorted indices are other categories; which, a slope does not tell."""
    weights = WEIGHTS.expand(5, 4).clone().requires_grad_()
    with differentiable() as program:
        index = torch.multinomial(weights, 2).sort(-1).values
        cost = VALUES[index].sum(-1) + 0 * weights.sum(-1)
    with pytest.warns(CutGradientWarning, match=r"test_picks.py:\d+: torch.multinomial"):
        program.loss(cost).mean().backward()
