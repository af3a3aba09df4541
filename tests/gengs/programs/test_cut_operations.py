"""Operations that end a gradient are noted, in the block and in the cost."""

import gc
import warnings
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from torch.overrides import TorchFunctionMode, _len_torch_function_stack

import gengs
from gengs import CutGradientWarning, differentiable


def said(simulate, cost=None, by=None):
    """The warning's text, or an empty string; the cost keeps a slope of its own in the rate."""
    rate = torch.full((5,), 3.0, requires_grad=True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with differentiable(by=by) as program:
            z = simulate(rate)
        loss = program.loss((z if cost is None else cost(z)) + rate)
        loss.mean().backward()
    found = [str(w.message) for w in caught if w.category is CutGradientWarning]
    assert len(found) <= 1
    return found[0] if found else ""


def filled(z):
    whole = torch.zeros(5, dtype=torch.long)
    whole[:] = z
    return whole


def replaced(z):
    y = z.clone()
    y[z == 0] = 5.0
    return y


CUTS = {
    "z == 0": ("compared", lambda z: z + (z == 0)),
    "0 == z": ("compared", lambda z: z + (0 == z)),  # noqa: SIM300
    "where": ("compared", lambda z: torch.where(z == 0, 1.0, z)),
    "masked": ("compared", replaced),
    "logical_not": ("compared", lambda z: z + torch.logical_not(z)),
    "isin": ("compared", lambda z: z + torch.isin(z, torch.ones(2))),
    "max": ("compared", lambda z: z + z.max(0).indices.float()),
    "topk": ("compared", lambda z: z + torch.ones(2, 5)[:, z.topk(5).indices].sum(0)),
    "sort": ("compared", lambda z: z + torch.arange(5.0)[z.sort().indices]),
    "unique": ("compared", lambda z: z + z.unique().numel()),
    "histc": ("compared", lambda z: z + torch.histc(z, 5)),
    "floor_": ("rounded", lambda z: z + (z / 2).floor_()),
    "div": ("rounded", lambda z: z + torch.div(z, 2, rounding_mode="floor")),
    "z // 2": ("rounded", lambda z: z + z // 2),
    "heaviside": ("rounded", lambda z: z + torch.heaviside(z, torch.ones(5))),
    "setitem": ("cast to integers", lambda z: z + filled(z)),
    "copy_": ("cast to integers", lambda z: z + torch.zeros(5, dtype=torch.long).copy_(z)),
    "z % 2": ("taken modulo a number", lambda z: z % 2),
    "frac": ("taken modulo a number", lambda z: (z / 2).frac()),
    "nothing": (None, lambda z: z + z.max(0).values + torch.zeros_like(z) + z.isnan().sum()),
}


@pytest.mark.parametrize("name", CUTS)
@pytest.mark.parametrize("inside", [True, False], ids=["in the block", "in the cost"])
def test_what_ends_a_gradient_is_named(name, inside):
    kind, function = CUTS[name]
    message = (
        said(lambda rate: function(torch.poisson(rate)))
        if inside
        else said(torch.poisson, function)
    )
    if kind is None:
        assert message == ""
    else:
        assert "part of the gradient ends" in message and f"it is {kind} (" in message
        assert "test_cut_operations.py:" in message


def test_the_score_asks_nothing_of_the_cost():
    assert said(torch.poisson, lambda z: (z == 0).float(), by=gengs.RLOO()) == ""


def test_after_the_block_a_log_is_no_news():
    def cost(z):
        assert z.mean().item() >= 0 and len(z.detach().tolist()) == 5
        return z

    assert said(torch.poisson, cost) == ""


# ------------------------------------------------------------------- the mode after the block


class Named(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_the_mode_ends_with_the_loss():
    rate = torch.full((5,), 3.0, requires_grad=True)
    with differentiable() as program:
        z = torch.poisson(rate)
    program.loss(z)
    assert _len_torch_function_stack() == 0


def test_the_mode_ends_with_the_program():
    rate = torch.full((5,), 3.0, requires_grad=True)
    with differentiable() as program:
        torch.poisson(rate)
    del program
    gc.collect()
    assert _len_torch_function_stack() == 0
    with pytest.raises(ZeroDivisionError), differentiable():
        1 / 0  # noqa: B018
    assert _len_torch_function_stack() == 0


def test_a_loss_in_another_thread_leaves_no_mode_behind():
    rate = torch.full((5,), 3.0, requires_grad=True)
    with ThreadPoolExecutor(1) as pool:

        def simulate():
            with differentiable() as program:
                z = torch.poisson(rate)
            return program, z, _len_torch_function_stack()

        for _ in range(3):
            program, z, modes = pool.submit(simulate).result()
            program.loss(z).mean().backward()
            assert modes == 1


@pytest.mark.parametrize("around", [Named, lambda: torch.device("cpu")], ids=["mode", "device"])
def test_modes_around_and_after_a_block_are_left_alone(around):
    rate = torch.full((5,), 3.0, requires_grad=True)
    with around():
        with differentiable() as program:
            z = torch.poisson(rate)
        with around():
            far = (z == 0).float()
    with around():
        with pytest.warns(CutGradientWarning, match="compared"):
            program.loss(z + far).mean().backward()
        assert _len_torch_function_stack() == 1
    assert _len_torch_function_stack() == 0


def test_a_compiled_cost():
    rate = torch.full((5,), 3.0, requires_grad=True)
    with differentiable() as program:
        z = torch.poisson(rate)
    cost = torch.compile(lambda z: z.square(), backend="eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the compiler's own
        found = cost(z)
    program.loss(found).sum().backward()
    assert torch.equal(found, z.square()) and rate.grad.shape == (5,)


def test_a_default_device_may_come_and_go():
    rate = torch.full((5,), 3.0, requires_grad=True)
    try:
        torch.set_default_device("cpu")
        with differentiable() as program:
            z = torch.poisson(rate)
        torch.set_default_device("cpu")
    finally:
        torch.set_default_device(None)
    program.loss(z).mean().backward()
    assert _len_torch_function_stack() == 0
