"""Masks and indices in code that was written for integers: it runs, and keeps what has a slope."""

import pytest
import torch
from torch.nn.functional import cross_entropy, nll_loss, one_hot

from gengs import CutGradientWarning, differentiable

N = 20_000
VALUES = torch.tensor([1.0, -2.0, 0.5])
TABLE = torch.arange(6.0).reshape(2, 3)


def drawn(p):
    """Indices ``(N, 2)``, two a replicate."""
    return torch.multinomial(p.expand(N, 3), 2, replacement=True)


INDEXED = {
    "[]": lambda i: VALUES[i][:, 0],
    "gather": lambda i: VALUES.expand(N, 3).gather(1, i)[:, 0],
    "gather by name": lambda i: VALUES.expand(N, 3).gather(dim=1, index=i)[:, 0],
    "index_select": lambda i: VALUES.index_select(0, i[:, 0]),
    "take": lambda i: VALUES.take(i)[:, 0],
    "take_along_dim": lambda i: VALUES.expand(N, 3).take_along_dim(i, 1)[:, 0],
    "scatter_add": lambda i: zeros().scatter_add(1, i[:, :1], torch.ones(N, 2)) @ VALUES,
    "scatter_add_": lambda i: zeros().scatter_add_(1, i[:, :1], torch.ones(N, 2)) @ VALUES,
    "scatter": lambda i: zeros().scatter(1, i[:, :1], 1.0) @ VALUES,
    "two of them": lambda i: VALUES.outer(torch.ones(3))[i[:, 0], i[:, 1]],
}


def zeros():
    return torch.zeros(N, 3)


def run(face, p):
    """What comes out in a block, which is what comes out elsewhere."""
    torch.manual_seed(0)
    with differentiable() as program:
        found = face(drawn(p)) + 0 * p.sum()
    torch.manual_seed(0)
    assert torch.equal(found.detach(), face(drawn(p.detach())))
    return program, found


TABLES = {
    "integers": torch.tensor([3, 1, -2]),
    "a mask": torch.tensor([True, False, True]),
    "-inf where nothing is drawn": torch.tensor([3.0, 1.0, -torch.inf]),
}


@pytest.mark.parametrize("name", TABLES)
def test_what_a_table_may_hold(name):
    """d/d logits of E v[i] is p (v - E v), at 5 standard errors."""
    table = TABLES[name]
    logits = torch.tensor([0.3, -0.2, 0.9 if table.isfinite().all() else -torch.inf])
    p = logits.requires_grad_().softmax(-1)
    program, found = run(lambda i: table[i[:, 0]] * 1.0, p)
    (found,) = torch.autograd.grad(program.loss(found).mean(), logits)
    p, values = p.detach(), table.double().nan_to_num(neginf=0.0).float()
    assert ((found - p * (values - p @ values)).abs() < 5 * 5 / N**0.5).all()


INFINITE = {
    "scatter": lambda i: torch.ones(N, 3).scatter(1, i[:, :1], -torch.inf).exp()[:, 0],
    "over infinite ones": lambda i: zeros().log().scatter(1, i[:, :1], 0.0).exp()[:, 0],
}


@pytest.mark.parametrize("name", INFINITE)
def test_an_infinite_step_has_no_slope_and_says_so(name):
    program, found = run(INFINITE[name], torch.tensor([0.2, 0.3, 0.5], requires_grad=True))
    with pytest.warns(CutGradientWarning, match="infinite values"):
        program.loss(found).mean().backward()


@pytest.mark.parametrize("name", INDEXED)
def test_what_a_drawn_index_points_to_moves(name):
    """d/d logits of E v[i] is p (v - E v), at 5 standard errors."""
    logits = torch.tensor([0.3, -0.2, 0.9], requires_grad=True)
    p = logits.softmax(-1)
    program, found = run(INDEXED[name], p)
    (found,) = torch.autograd.grad(program.loss(found).mean(), logits)
    p = p.detach()
    assert ((found - p * (VALUES - p @ VALUES)).abs() < 5 * 3 / N**0.5).all()


SCORES = torch.tensor([0.4, -1.0, 1.3])
WEIGHT = torch.tensor([0.5, 2.0, 1.0])
LOSSES = {
    "cross_entropy": (cross_entropy, {}),
    "nll_loss": (nll_loss, {}),
    "weighted": (cross_entropy, {"weight": WEIGHT}),
    "a class is ignored": (nll_loss, {"ignore_index": 1, "weight": WEIGHT}),
    "smoothed": (cross_entropy, {"label_smoothing": 0.2, "ignore_index": 0}),
}


@pytest.mark.parametrize("reduction", ["none", "sum"])
@pytest.mark.parametrize("name", LOSSES)
def test_a_drawn_class_is_a_target(name, reduction):
    """Against the sum over all classes, at 5 standard errors."""
    loss, more = LOSSES[name]
    logits = torch.tensor([0.3, -0.2, 0.9], requires_grad=True)
    p = logits.softmax(-1)
    each = loss(SCORES.expand(3, 3), torch.arange(3), reduction="none", **more)
    (expected,) = torch.autograd.grad(p @ each, logits, retain_graph=True)

    def face(i):  # two dimensions of targets
        return loss(SCORES.view(1, 3, 1).expand(N, 3, 2), i, reduction=reduction, **more)

    program, found = run(face, p)
    value = program.loss(found.mean(1)).mean() if reduction == "none" else program.loss(found)
    (found,) = torch.autograd.grad(value / (1 if reduction == "none" else 2 * N), logits)
    assert ((found - expected).abs() < 5 * 3 / N**0.5).all()


@pytest.mark.parametrize("name", LOSSES)
def test_a_mean_over_drawn_classes_divides_by_their_weights(name):
    """The same gradient, up to rounding, as the quotient of two sums."""
    loss, more = LOSSES[name]
    p = torch.tensor([0.2, 0.3, 0.5]).expand(50, 3).clone().requires_grad_()
    scores = torch.randn(50, 3, generator=torch.Generator().manual_seed(1))
    share = more.get("weight", torch.ones(3)).clone()
    share[more.get("ignore_index", slice(0))] = 0.0

    def quotient(k):
        return loss(scores, k, reduction="sum", **more) / share[k].sum()

    grads = []
    for face in (lambda k: loss(scores, k, **more), quotient):
        torch.manual_seed(0)
        with differentiable() as program:
            found = face(torch.multinomial(p, 1)[:, 0])
        grads += torch.autograd.grad(program.loss(found), p)
    assert grads[0].abs().sum() > 0.1
    torch.testing.assert_close(grads[0], grads[1])


def test_scores_of_one_drawn_class():
    p = torch.tensor([0.2, 0.3, 0.5], requires_grad=True)
    scores = SCORES.clone().requires_grad_()
    with differentiable() as program:
        k = torch.multinomial(p, 1)[0]
        found = cross_entropy(scores, k)
    program.loss(found).backward()
    assert found.shape == () and p.grad.abs().sum() > 0
    torch.testing.assert_close(scores.grad, scores.softmax(-1).detach() - one_hot(k, 3))


NOT_LINEAR = {
    "two may be written to one place": lambda i: zeros().scatter(1, i, 1.0)[:, 0],
    "sorted": lambda i: VALUES[i.sort(-1).values][:, 0],
    "counted": lambda i: VALUES[i[:, 0] * i[:, 1] % 3],
    "a sum as a target": lambda i: cross_entropy(torch.zeros(N, 5), i.sum(1), reduction="none"),
}


@pytest.mark.parametrize("name", NOT_LINEAR)
def test_an_index_that_is_not_followed_says_so(name):
    program, found = run(NOT_LINEAR[name], torch.tensor([0.2, 0.3, 0.5], requires_grad=True))
    with pytest.warns(CutGradientWarning, match="used as an index|taken modulo|compared"):
        program.loss(found).mean().backward()


REARRANGED = {
    "[:, 0]": lambda i: i[:, 0],
    "[..., 0]": lambda i: i[..., 0],
    "select": lambda i: i.select(1, 1),
    "unsqueeze": lambda i: i[:, :1].unsqueeze(-1)[:, 0, 0],
    "t": lambda i: i.t()[1],
    "flip": lambda i: i.flip(1)[:, 0],
    "clone": lambda i: i.clone()[:, 0],
    "gather": lambda i: i.gather(1, torch.ones(N, 1, dtype=torch.long))[:, 0],
    "narrow": lambda i: i.narrow(1, 0, 1).squeeze(1),
    "view": lambda i: i[:, :1].reshape(-1),
}


@pytest.mark.parametrize("name", REARRANGED)
def test_an_index_keeps_its_categories_when_it_is_rearranged(name):
    """d/d logits of E v[i] is p (v - E v), at 5 standard errors."""
    logits = torch.tensor([0.3, -0.2, 0.9], requires_grad=True)
    p = logits.softmax(-1)
    with differentiable() as program:
        index = REARRANGED[name](drawn(p))
        z = one_hot(index, 3).float() @ VALUES
    (found,) = torch.autograd.grad(program.loss(z).mean(), logits)
    p = p.detach()
    assert ((found - p * (VALUES - p @ VALUES)).abs() < 5 * 3 / N**0.5).all()
    assert torch.equal(z.detach(), VALUES[index])


def test_values_of_a_mask_may_be_gathered():
    p = torch.full((N, 3), 0.3, requires_grad=True)
    order = torch.tensor([2, 0]).expand(N, 2)
    with differentiable() as program:
        mask = torch.rand(N, 3) < p
        picked = mask.long().gather(1, order)
        spread = torch.zeros(N, 3, dtype=torch.long).scatter_add(1, order, picked)
        z = (spread @ torch.tensor([1, 5, 7])).float()
    (found,) = torch.autograd.grad(program.loss(z).sum(), p)
    torch.testing.assert_close(found.mean(0), torch.tensor([1.0, 0.0, 7.0]), atol=0.3, rtol=0)


def test_a_mask_may_be_filled_or_choose():
    p = torch.full((N, 3), 0.3, requires_grad=True)
    grads = []
    for choose in (
        lambda mask: VALUES.expand(N, 3).masked_fill(mask, 4.0),
        lambda mask: torch.where(mask, 4.0, VALUES),
    ):
        torch.manual_seed(0)
        with differentiable() as program:
            z = choose(torch.rand(N, 3) < p)
        grads += torch.autograd.grad(program.loss(z.sum(1)).sum(), p)
    torch.testing.assert_close(grads[0].mean(0), 4.0 - VALUES, atol=0.15, rtol=0)
    assert torch.equal(*grads)


def test_a_mask_that_puts_infinite_values_says_so():
    p = torch.full((N, 3), 0.3, requires_grad=True)
    with differentiable() as program:
        z = torch.zeros(N, 3).masked_fill(torch.rand(N, 3) < p, -torch.inf)
    with pytest.warns(CutGradientWarning, match="infinite values"):
        program.loss(z.exp().sum(1)).mean().backward()
