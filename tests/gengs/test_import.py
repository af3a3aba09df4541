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


def test_the_laws_import_torch_and_nothing_else():
    for path in (SOURCE / "distributions").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                roots = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                roots = {node.module.split(".")[0]}
            else:
                continue
            assert roots <= {"torch", *sys.stdlib_module_names}, (path.name, roots)
