"""How often a training step makes Python wait for a number: never without validation, else 3 times.

``watching.Synchronisations`` counts what would stall a GPU. Validation is off by torch's own
switch, ``Distribution.set_default_validate_args(False)``, or by a law's ``validate_args=False``.

Left out, because the size of what is computed is itself a number that must be read: laws with
infinitely many values that have no closed form and are cut where their tail ends (a mixture of
Poisson laws); they can be cut beforehand, with a level.
"""

from unittest.mock import patch

import pytest
import torch
from cases import INTERIOR
from settings import SETTINGS, TABLES, draw
from torch import nn
from torch.distributions import (
    Distribution,
    Independent,
    NegativeBinomial,
    OneHotCategorical,
    Poisson,
)
from watching import Synchronisations

import gengs
from gengs.numerics import tracing
from gengs_experiments.models import VAE

WITH_VALIDATION = 3
validation = pytest.mark.parametrize("checked", [False, True], ids=["unchecked", "checked"])


def count(prepare, checked):
    """The synchronisations of one step that is not the first; ``prepare`` makes laws and step."""
    before = Distribution._validate_args
    Distribution.set_default_validate_args(checked)
    try:
        # a test that compiled something before: from then on the switch is not the user's
        with patch.object(tracing, "_dynamo_has_patched", return_value=False):
            step = prepare()
            step()
            with Synchronisations() as watch:
                step()
    finally:
        Distribution.set_default_validate_args(before)
    return watch.seen


def assert_few(seen, checked):
    assert len(seen) <= (WITH_VALIDATION if checked else 0), seen


# ------------------------------------------------------------------------------- the watch itself

PLANTED = {
    "item": lambda x: x.sum().item(),
    "float": lambda x: float(x.sum()),
    "a branch": lambda x: 1 if x.sum() > 0 else 0,
    "all": lambda x: bool((x > 0).all()),
    "equal": lambda x: torch.equal(x, x),
    "nonzero": lambda x: (x > 0).nonzero(),
    "mask": lambda x: x[x > 0],
    "masked_select": lambda x: x.masked_select(x > 0),
    "put by mask": lambda x: x.clone().index_put_((x > 0,), torch.tensor(0.0)),
    "unique": lambda x: x.unique(),
    "repeat": lambda x: x.repeat_interleave(torch.tensor([1, 2, 1])),
    "on the way back": lambda x: _with_hook(x),
}
HARMLESS = {
    "sums": lambda x: (x.exp() / x.sum()).cumsum(-1),
    "where": lambda x: torch.where(x > 0, x, 0.0),
    "gather": lambda x: x.gather(-1, x.argmax(-1, keepdim=True)),
    "by index": lambda x: x[torch.tensor([0, 1])],
    "search": lambda x: torch.searchsorted(x, torch.rand(2)),
    "noise": lambda x: torch.poisson(x.abs()) + torch.rand_like(x),
    "back": lambda x: x.clone().requires_grad_().square().sum().backward(),
}


def _with_hook(x):
    y = x.clone().requires_grad_()
    z = y * 2
    z.register_hook(lambda grad: None if grad.sum() > 0 else grad)
    z.sum().backward()


@pytest.mark.parametrize("planted", PLANTED.values(), ids=list(PLANTED))
def test_the_watch_sees_a_planted_synchronisation(planted):
    x = torch.tensor([0.5, 1.0, 2.0])
    with Synchronisations() as watch:
        planted(x)
    assert watch.seen


@pytest.mark.parametrize("harmless", HARMLESS.values(), ids=list(HARMLESS))
def test_the_watch_is_silent_otherwise(harmless):
    x = torch.tensor([0.5, 1.0, 2.0])
    with Synchronisations() as watch:
        harmless(x)
    assert not watch.seen


def test_the_switch_is_put_back():
    before = Distribution._validate_args
    count(lambda: lambda: None, not before)
    assert Distribution._validate_args is before


# ---------------------------------------------------------------------------- the training step


def model(name, posterior):
    torch.manual_seed(0)
    level = None if name == "ArrivalTimes" else 4
    width = 2 * (level or 1) if posterior == "implicit" else 2
    return VAE(
        nn.Linear(5, width),
        nn.Linear(2, 5),
        Poisson(torch.tensor(1.3)),
        SETTINGS[name].make(),
        posterior,
        level=level,
        latents=2,
    )


@validation
@pytest.mark.parametrize(
    ("name", "posterior"),
    [
        (name, posterior)
        for name in SETTINGS
        for posterior in ("explicit", "implicit")
        if (name, posterior) != ("ArrivalTimes", "implicit")  # it is a law of Poisson's
    ],
)
def test_a_step_of_the_count_vae(name, posterior, checked):
    def prepare():
        vae, x = model(name, posterior), torch.rand(3, 5)

        def step():
            vae.zero_grad()
            vae.loss(x).mean().backward()

        return step

    assert_few(count(prepare, checked), checked)


# --------------------------------------------------------------------------- estimators and draws

LAWS = {
    "cut poisson": lambda **off: gengs.truncate(Poisson(_rates()), 5, **off),
    "finite": lambda **off: gengs.Finite(
        torch.arange(4.0), logits=torch.zeros(2, 4, requires_grad=True), **off
    ),
    "poisson": lambda **off: Poisson(_rates(), **off),
}


def _rates():
    return torch.tensor([0.7, 1.6], requires_grad=True)


def expectation(name, q):
    estimator = SETTINGS[name].make()

    def step():
        estimator.expect(lambda z: z.square().sum(-1), q).sum().backward(retain_graph=True)

    return step


@validation
@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("name", SETTINGS)
def test_an_expectation(name, law, checked):
    if name == "ArrivalTimes" and law != "poisson":
        pytest.skip("it counts the arrivals of a Poisson law")
    if law == "poisson" and name in (*TABLES, "Exact"):
        pytest.skip("where to cut a whole law is read from its rate")
    assert_few(count(lambda: expectation(name, Independent(LAWS[law](), 1)), checked), checked)


@pytest.mark.parametrize("name", [name for name in SETTINGS if name != "ArrivalTimes"])
def test_a_law_without_validation_is_enough(name):
    q = Independent(LAWS["finite"](validate_args=False), 1, validate_args=False)
    assert_few(count(lambda: expectation(name, q), True), False)


@validation
@pytest.mark.parametrize(
    "case", [case for case in INTERIOR if "level=None" not in case.name], ids=lambda case: case.name
)
def test_a_draw_that_moves(case, checked):
    def prepare():
        law = case.build(**case.tensors(3))
        return lambda: draw(law, (2,)).sum().backward(retain_graph=True)

    try:
        seen = count(prepare, checked)
    except TypeError:
        if not case.event_dim:
            raise
        pytest.skip("vectors do not move")
    assert_few(seen, checked)


@validation
@pytest.mark.parametrize("hard", [False, True], ids=["soft", "hard"])
@pytest.mark.parametrize("law", ["cut poisson", "finite", "one-hot"])
def test_a_relaxed_value(law, hard, checked):
    def prepare():
        relaxed = gengs.Relaxed(0.5, {**LAWS, "one-hot": one_hot}[law]())

        def step():
            relaxed.rsample_value((3,), hard=hard).sum().backward(retain_graph=True)

        return step

    assert_few(count(prepare, checked), checked)


def one_hot():
    return OneHotCategorical(logits=torch.zeros(2, 4, requires_grad=True))


@validation
@pytest.mark.parametrize("law", ["cut poisson", "cut negative binomial", "finite"])
def test_making_a_law(law, checked):
    r, p = torch.tensor([2.5, 1.0]), torch.tensor([0.3, 0.4])
    make = {
        **LAWS,
        "cut negative binomial": lambda: gengs.truncate(NegativeBinomial(r, p), 5),
    }[law]
    assert_few(count(lambda: lambda: make().probs, checked), checked)
