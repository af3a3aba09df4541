"""A block by the score whose loss is never called is named when it is discarded, and only then."""

import contextlib
import gc
import subprocess
import sys
import warnings
import weakref

import pytest
import torch

import gengs
from gengs import CutGradientWarning, differentiable

SCORES = pytest.mark.parametrize(
    "by", [gengs.RLOO(), gengs.REINFORCE(), gengs.FittedScore()], ids=str
)
NEVER = r"test_forgotten_score.py:\d+ \(Poisson\).*program.loss was never called"


def parameter():
    return torch.tensor(0.3, requires_grad=True)


def said(program):
    """What is said while a function runs, and of what it leaves behind."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program()
        gc.collect()
    return [str(w.message) for w in caught]


@SCORES
def test_a_loss_that_is_never_called_is_named(by):
    def cost(t):
        with differentiable(by=by):
            return torch.poisson(t.expand(100)) + t

    with pytest.warns(CutGradientWarning, match=NEVER):
        cost(parameter()).mean().backward()


@SCORES
def test_a_program_that_is_discarded_later_is_named(by):
    def cost(t):
        with differentiable(by=by) as program:
            z = torch.poisson(t.expand(100))
            uniform = torch.rand(100) < t
        program.cost(z)
        return z + t + uniform

    with pytest.warns(CutGradientWarning, match=rf"{NEVER}") as caught:
        cost(parameter()).mean().backward()
    assert "torch.rand(...) < p" in str(caught[0].message)


def test_a_score_inside_of_a_path_is_named():
    def cost(t):
        with differentiable():
            z = torch.bernoulli(t.expand(100))
            with differentiable(by=gengs.RLOO()):
                z = z + torch.poisson(t.expand(100))
        return z.mean()

    with pytest.warns(CutGradientWarning, match=NEVER):
        cost(parameter()).backward()


def test_it_is_said_at_the_end_of_a_script():
    script = """if True:
    import torch, gengs
    t = torch.tensor(0.3, requires_grad=True)
    with gengs.differentiable(by=gengs.RLOO()) as program:
        cost = torch.poisson(t.expand(100)) + t
    cost.mean().backward()
    """
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0 and "program.loss was never called" in done.stderr


@SCORES
def test_a_loop_is_named_once(by):
    t = parameter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        for _ in range(3):
            with differentiable(by=by):
                torch.poisson(t.expand(10))
    assert len(caught) == 1


# ------------------------------------------------------------------------------- no warning


def run(by, t):
    with differentiable(by=by) as program:
        z = torch.poisson(t.expand(100))
    return program, z


def by_loss(by):
    program, z = run(by, parameter())
    program.loss(z).mean().backward()


def by_loss_inside(by):
    with differentiable(by=by) as program:
        loss = program.loss(torch.poisson(parameter().expand(100)))
    loss.mean().backward()


def by_mean(by):
    program, z = run(by, parameter())
    program.mean(z).square().backward()


def by_costs(by):
    with differentiable(by=by) as program:
        program.cost(torch.poisson(parameter().expand(100)))
    program.loss().mean().backward()


def out_of_order(by):
    t = parameter()
    programs = [run(by, t) for _ in range(3)]
    t.square().backward()  # another loss of the same parameter
    for program, z in reversed(programs):
        program.loss(z).mean().backward()


def steps(by):
    t = parameter()
    for _ in range(3):
        program, z = run(by, t)
        loss = program.loss(z).mean()
        del program
        loss.backward()


def without_gradients(by):
    with torch.no_grad():
        run(by, parameter())
    with torch.inference_mode():
        run(by, parameter())
    run(by, parameter().detach())


def failing(by):
    with contextlib.suppress(KeyError), differentiable(by=by):
        torch.poisson(parameter().expand(100))
        raise KeyError


def failing_loss(by):
    program, _ = run(by, parameter())
    with pytest.raises(ValueError, match="replicates"):
        program.loss(torch.ones(7, 3))


def nested(by):
    with differentiable() as program, differentiable(by=by):
        z = torch.poisson(parameter().expand(100))
    program.loss(z).mean().backward()


def in_transforms(by):
    def loss(t):
        program, z = run(by, t)
        return program.loss(z).mean()

    torch.func.grad(loss)(torch.tensor(0.3))


RIGHT = [
    *(by_loss, by_loss_inside, by_mean, by_costs, out_of_order, steps, without_gradients),
    *(failing, failing_loss, nested, in_transforms),
]


@SCORES
@pytest.mark.parametrize("program", RIGHT, ids=lambda f: f.__name__)
def test_nothing_is_said_of_correct_use(program, by):
    assert said(lambda: program(by)) == []


def test_nothing_is_said_of_the_path_and_of_a_check():
    def path():
        _, z = run(None, parameter())
        z.mean().backward()

    def checked():
        with differentiable() as program:
            z = torch.poisson(parameter().expand(100))
            with differentiable(by=gengs.RLOO()):
                z = z + torch.poisson(parameter().expand(100))
        program.check(z)

    assert said(path) == [] == said(checked)


def test_nothing_is_kept_alive():
    program, z = run(gengs.RLOO(), parameter())
    kept = [weakref.ref(x) for x in (program, z)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CutGradientWarning)
        del program, z
    assert [x() for x in kept] == [None, None]
