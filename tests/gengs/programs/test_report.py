"""A gradient that ends in silence is reported after ``backward()``, with file, line and advice."""

import inspect
import warnings

import pytest
import torch
from torch.distributions import Categorical, Poisson

import gengs
from gengs import CutGradientWarning, differentiable
from gengs.programs.cut_report import CutReport
from gengs.programs.sample_site import Site


def said(simulate, by=None, cost=None, size=5):
    """The warning's text, or an empty string; the cost keeps a slope of its own in the rate."""
    rate = torch.full((size,), 3.0, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with differentiable(by=by) as program:
            z = simulate(rate)
        loss = program.loss((z if cost is None else cost(z)) + rate)
        assert not caught  # not before backward
        loss.mean().backward()
    found = [w for w in caught if w.category is CutGradientWarning]
    assert len(found) <= 1
    return str(found[0].message) if found else ""


def line_of(function, text):
    source, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(source) if text in line)


def compared(rate):
    z = torch.poisson(rate)
    return (z > 2).float()


def branched(rate):
    z = torch.poisson(rate)
    return torch.ones(5) if z.sum() > 2 else torch.zeros(5)


def cast(rate):
    z = torch.poisson(rate)
    return z.long().float()


def cast_by_to(rate):
    z = torch.poisson(rate)
    return z.to(torch.int64) * 2.0


def index(rate):
    z = Categorical(logits=torch.stack([rate, -rate], -1)).sample()
    return torch.arange(4.0)[z + 2]


def detached(rate):
    z = torch.poisson(rate)
    return z.detach() * 2


def data(rate):
    z = torch.poisson(rate)
    return z.data * 2


def rounded(rate):
    z = Poisson(rate).sample()
    return torch.floor(z / 2)


def numpy(rate):
    z = torch.poisson(rate)
    return torch.from_numpy(z.numpy() ** 2)


def item(rate):
    z = torch.poisson(rate)
    return torch.tensor([x.item() for x in z])


def unused(rate):
    torch.poisson(rate)
    return torch.ones(5)


def mask_as_index(rate):
    x = torch.ones(5)
    x[torch.rand(5) < rate / 6] = 2.0
    return x


CUTS = {
    compared: ("compared", "z > 2"),
    branched: ("compared", "z.sum() > 2"),
    cast: ("cast to integers", "z.long()"),
    cast_by_to: ("cast to integers", "z.to("),
    index: ("used as an index", "[z + 2]"),
    detached: ("detached", "z.detach()"),
    data: ("detached", "z.data"),
    rounded: ("rounded", "torch.floor"),
    numpy: ("taken out of torch", "z.numpy()"),
    item: ("taken out of torch", "x.item()"),
    mask_as_index: ("used as an index", "torch.rand"),
}


@pytest.mark.parametrize("simulate", CUTS, ids=lambda f: f.__name__)
def test_a_gradient_that_is_cut_off_is_named(simulate):
    kind, text = CUTS[simulate]
    message = said(simulate)
    ends = "part of the gradient ends" if kind == "rounded" else "no gradient comes back"
    assert ends in message and f"it is {kind}" in message  # torch gives rounding a slope of 0
    assert f"test_report.py:{line_of(simulate, text)}" in message  # where it ends
    drawn = next(
        t
        for t in ("torch.poisson", "Poisson(", "Categorical(", "torch.rand")
        if t in inspect.getsource(simulate)
    )
    assert f"test_report.py:{line_of(simulate, drawn)}: " in message  # where it was drawn
    assert "shape (5,)" in message and "RLOO" in message
    assert said(simulate, by=gengs.RLOO()) == ""  # it asks nothing of the program


def test_a_draw_that_is_never_used():
    assert "not used in the cost" in said(unused)


def test_a_mask_that_leaves_the_block():
    assert "left the block" in said(lambda rate: torch.rand(5) < rate / 6)


def test_part_of_a_gradient():
    def simulate(rate):
        z = torch.poisson(rate)
        return z + 10 * (z > 2)

    message = said(simulate)
    assert "part of the gradient ends" in message and "compared" in message


def test_a_loop_is_one_line_of_the_report():
    def simulate(rate):
        for _ in range(7):
            z = torch.poisson(rate)
            rate = rate + (z > 3)
        return rate

    message = said(simulate)
    assert message.count("test_report.py") == 2 and "shape (5,)" in message


def test_an_idle_last_step_is_no_news():
    def simulate(rate):
        total = 0
        for _ in range(3):
            total = total + rate
            rate = rate + torch.poisson(rate)
        return total

    assert said(simulate) == ""


def test_a_laws_own_checks_are_no_news():
    def simulate(rate):
        return torch.distributions.Binomial(Poisson(rate).sample(), torch.tensor(0.3)).sample()

    assert said(simulate) == ""


def test_a_mask_may_be_asked_for_its_shape_and_printed():
    def simulate(rate):
        mask = torch.rand(5) < rate / 6
        assert mask.numel() == len(mask) == mask.size(0) == mask.shape[0] and mask.dim() == 1
        assert "tensor(" in repr(mask)
        return mask.float()

    assert said(simulate) == ""

    def any_of(rate):
        mask = torch.rand(5) < rate / 6
        return torch.ones(5) if mask.any() else torch.zeros(5)

    assert "it is compared" in said(any_of)


def test_uniform_numbers_used_otherwise_are_named():
    def simulate(rate):
        u = torch.rand(5, 2)
        return (u.sum(-1) < rate / 6).float()

    assert "uniform numbers" in said(simulate)


def test_draws_shared_by_all_replicates():
    def simulate(rate):
        return torch.poisson(rate[0]) + torch.poisson(rate)

    message = said(simulate, by=gengs.RLOO())
    assert "shape (): shared by all replicates" in message and message.count("shared") == 1
    assert said(simulate) == ""  # the path needs no replicates


def test_a_loss_without_any_gradient_is_named_at_once():
    rate = torch.full((5,), 3.0, requires_grad=True)
    with differentiable() as program:
        z = compared(rate)
    with pytest.warns(CutGradientWarning, match="compared"):
        program.loss(z)


def test_it_is_said_once_and_points_to_the_draw():
    rate = torch.full((5,), 3.0, requires_grad=True)
    with differentiable() as program:
        z = compared(rate)
    loss = program.loss(z + rate).mean()
    with pytest.warns(CutGradientWarning) as caught:
        loss.backward(retain_graph=True)
    assert len(caught) == 1
    assert caught[0].lineno == line_of(compared, "torch.poisson")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loss.backward()


@pytest.mark.filterwarnings("ignore:.*lost its gradient at")  # which is said, too
@pytest.mark.parametrize(
    ("simulate", "reason"),
    {
        index: "used as an index",
        branched: "compared",
        lambda rate: (torch.poisson(rate) > 2).float(): "compared",
        lambda rate: torch.poisson(torch.full((5,), rate[0].item())): "taken out of torch",
        lambda rate: torch.poisson(rate.detach()): "detached",
        lambda rate: torch.poisson(torch.ones(5)): "no draw's parameters require",
    }.items(),
)
def test_a_cost_without_any_gradient_says_so_and_why(simulate, reason):
    rate = torch.full((5,), 3.0, requires_grad=True)
    with differentiable() as program:
        z = simulate(rate)
    with pytest.warns(CutGradientWarning, match=f"(?s)cost carries no gradient.*{reason}"):
        assert not program.loss(z).requires_grad


def test_asking_where_a_rate_comes_from_visits_each_operation_once():
    """Not the whole past at each step: the number of visits is linear in the number of steps."""
    report, visits = CutReport(), []

    class Seen(dict):
        def __contains__(self, node):
            visits.append(node)
            return super().__contains__(node)

    report._of_node = Seen()
    x = torch.ones(2, requires_grad=True)
    report.follow(Site("", "", 0, ""), first := x * 1)
    x, steps = x + first, 200
    for _ in range(steps):
        assert report.comes_from_a_draw(0.1 * x)
        x = x + 0.1 * x - 0.001 * x
    assert not report.comes_from_a_draw(torch.ones(2)) and len(visits) < 20 * steps
    other = torch.ones(2, requires_grad=True)
    assert not report.comes_from_a_draw(2 * other + other)
