"""Importing the package changes nothing and costs little."""

import ast
import subprocess
import sys
from pathlib import Path

import gengs

SOURCE = Path(gengs.__file__).parent

SNAPSHOT = """
import sys, torch
def state():
    return (torch.get_default_dtype(), torch.get_rng_state().sum().item(),
            torch.distributions.Distribution._validate_args, torch.get_num_threads(),
            torch.is_grad_enabled(), torch.get_default_device(), torch.random.initial_seed(),
            torch.are_deterministic_algorithms_enabled())
torch.manual_seed(3)
before = state()
modules = set(sys.modules)
import gengs
assert state() == before, (before, state())
new = {name.split(".")[0] for name in set(sys.modules) - modules}
new |= {"compiler" for name in set(sys.modules) - modules if name == "torch._dynamo"}
heavy = new & {"compiler", "matplotlib", "scipy", "sklearn", "pandas", "numpy", "pyro",
               "lightning_fabric", "tensorboard", "plotly", "jinja2", "joblib", "ray", "tyro"}
assert not heavy, heavy
rate = torch.tensor([3.0, 200.0], requires_grad=True)
gengs.gumbel_relax(torch.distributions.Poisson(rate)).sum().backward()
half = torch.distributions.Binomial(torch.tensor(9.0), torch.tensor(0.5))
gengs.Relaxed(0.5, gengs.truncate(half, 5)).rsample_value(hard=True)
assert "torch._dynamo" not in sys.modules, "the first draw imports torch's compiler"
missing = [name for name in gengs.__all__ if not hasattr(gengs, name)]
assert not missing, missing
"""


def test_import_has_no_side_effects():
    done = subprocess.run([sys.executable, "-c", SNAPSHOT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


NEEDS_MORE = {"integrations/pyro.py"}  # what gengs.pyro is for


def imported_at_once(tree):
    """The packages that a file imports when it is imported, those for type checkers left out."""
    pending = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" not in ast.unparse(node.test):
            pending += [*node.body, *node.orelse]
        elif isinstance(node, (ast.With, ast.ClassDef, ast.Try)):
            pending += node.body


def test_the_library_imports_torch_and_nothing_else():
    needs_more = set()
    for path in SOURCE.rglob("*.py"):
        roots = set(imported_at_once(ast.parse(path.read_text())))
        if roots - {"torch", *sys.stdlib_module_names}:
            needs_more.add(path.relative_to(SOURCE).as_posix())
    assert needs_more == NEEDS_MORE


def test_tab_completion_shows_public_names_only():
    assert {"rsample", "testing"} <= set(dir(gengs))
    assert not {"Any", "import_module", "numerics"} & set(dir(gengs))
