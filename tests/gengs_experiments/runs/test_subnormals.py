"""While a model trains, numbers below 1e-38 are zero; afterwards they are what they were."""

import subprocess
import sys

import pytest
import torch

from gengs_experiments.runs.machine import without_subnormals

# where a processor cannot, torch says so
CAN = torch.set_flush_denormal(True) and torch.set_flush_denormal(False)
pytestmark = pytest.mark.skipif(not CAN, reason="this processor keeps subnormal numbers")


def tiny() -> float:
    return float(torch.tensor(1e-30) * 1e-12)


def test_inside_and_afterwards():
    assert tiny() > 0
    with without_subnormals():
        assert tiny() == 0
    assert tiny() > 0


def test_an_error_does_not_leave_them_away():
    with pytest.raises(RuntimeError), without_subnormals():
        raise RuntimeError
    assert tiny() > 0


def test_who_had_none_before_has_none_afterwards():
    torch.set_flush_denormal(True)
    try:
        with without_subnormals():
            pass
        assert tiny() == 0
    finally:
        torch.set_flush_denormal(False)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float16])
def test_whatever_the_default_type_is(dtype):
    torch.set_default_dtype(dtype)
    try:
        with without_subnormals():
            with without_subnormals():
                pass
            inner = float(torch.tensor(1e-30, dtype=torch.float32) * 1e-12)
    finally:
        torch.set_default_dtype(torch.float32)
    assert inner == 0
    assert tiny() > 0


def test_a_decorated_function_can_be_called_twice():
    decorated = without_subnormals()(tiny)
    assert decorated() == 0
    assert decorated() == 0


def test_all_threads_of_a_command_do_without():
    """In a process of its own, as torch's threads stay as they were started."""
    program = """
import torch
from gengs_experiments.experiments.train_command import Vae, VaeConfig
from gengs_experiments.runs import training
torch.set_num_threads(2)
seen = []
def train(*_, **__):
    seen.append(int((torch.full((1 << 20,), 1e-30) * 1e-12).count_nonzero()))
    return []
training.train = train
Vae(VaeConfig(images=100, epochs=1, network="64-32", latents=2)).run()
print(seen)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.splitlines()[-1:] == ["[0]"], done.stderr
