"""The examples of these pages run as tests; other packages' own warnings are theirs."""

import pytest
import torch
from torch.distributions import Distribution

# page: warnings of another package's own making
FOREIGN = {
    "lightning.md": (
        "ignore:.*LeafSpec.*:FutureWarning",
        "ignore:.*does not have many workers.*",
    ),
    "torch.md": (
        "ignore:.*should not be instantiated:DeprecationWarning",
        "ignore:.*torch.jit.script_method:DeprecationWarning",
    ),
}


def pytest_configure(config):
    torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _nothing_leaks():
    """Seed, and put back what a page may have changed for the whole process."""
    validate = Distribution._validate_args  # a torch.compile wrapper switches it off
    torch.manual_seed(0)
    yield
    Distribution._validate_args = validate


def pytest_collection_modifyitems(items):
    for item in items:
        for warning in FOREIGN.get(item.path.name, ()):
            item.add_marker(pytest.mark.filterwarnings(warning))
