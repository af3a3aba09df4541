"""One thread per worker, one seed per test, and nothing that outlives a test."""

import builtins
import signal
from pathlib import Path

import pytest
import torch
from torch.distributions import Distribution


def pytest_configure(config):
    # tests send these to commands, also where nohup or a shell's background job runs the tests
    signal.signal(signal.SIGHUP, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    torch.set_num_threads(1)  # workers share the cores; results do not depend on their number


def pytest_collection_modifyitems(items):
    """On an older torch, leave out what needs a newer one: ``needs_newer_torch.txt``."""
    version = tuple(map(int, torch.__version__.split(".")[:2]))
    lines = Path(__file__).with_name("needs_newer_torch.txt").read_text().splitlines()
    needs = [line.split(maxsplit=1) for line in lines if line and not line.startswith("#")]
    for item in items:
        for least, part in needs:
            if part in item.nodeid and version < tuple(map(int, least.split("."))):
                item.add_marker(pytest.mark.skip(reason=f"needs torch {least}"))


@pytest.fixture(autouse=True)
def _nothing_leaks():
    """Seed, and put back what a test may have changed for the whole process."""
    dtype, validate = torch.get_default_dtype(), Distribution._validate_args
    # a docstring's example leaves its last value there; tyro hashes all built-ins when imported
    vars(builtins).pop("_", None)
    torch.manual_seed(0)
    yield
    torch.set_default_dtype(dtype)
    Distribution._validate_args = validate


@pytest.fixture
def torch_validation_off(monkeypatch):
    """torch's own checks read values, which vmap and the meta device do not allow."""
    monkeypatch.setattr(Distribution, "_validate_args", False)


@pytest.fixture
def generator():
    return torch.Generator().manual_seed(1234)
