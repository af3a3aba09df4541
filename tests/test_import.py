"""Importing the package changes nothing and costs little; its parts depend one way."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import gengs

SOURCE = Path(gengs.__file__).parent
# a part may use those before it, not those after it
ORDER = [
    *("distributions", "estimators", "run folders", "metrics", "models", "experiments"),
    *("study", "topics", "cli"),
]
# the modules of study that models and experiments write with; the rest of study repeats experiments
RUN_FOLDERS = {
    *("atomic", "checkpoint", "config", "json_lines", "lock"),
    *("manifest", "nonfinite", "random_state", "records"),
}

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


def part_of(names):
    """The part that a module, given by its names below the package, belongs to."""
    if names[0] == "study" and len(names) > 1 and names[1] in RUN_FOLDERS:
        return "run folders"
    return names[0]


def imported_parts(path):
    """The parts of the package that a file imports, absolute or relative."""
    package = ["gengs", *path.relative_to(SOURCE).parent.parts]
    for node in ast.walk(ast.parse(path.read_text())):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            stem = [*base, *(node.module.split(".") if node.module else [])]
            names = [".".join([*stem, alias.name]) for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "gengs" and len(parts) > 1:
                yield part_of(parts[1:])


@pytest.mark.parametrize(
    "path", sorted(SOURCE.rglob("*.py")), ids=lambda p: str(p.relative_to(SOURCE))
)
def test_dependencies_point_one_way(path):
    part = part_of(path.relative_to(SOURCE).with_suffix("").parts)
    if part not in ORDER:
        return
    later = set(ORDER[ORDER.index(part) + 1 :])
    wrong = later & set(imported_parts(path))
    assert not wrong, f"{part} must not depend on {wrong}"


def test_the_laws_depend_on_nothing_else_of_the_package():
    for path in (SOURCE / "distributions").glob("*.py"):
        assert set(imported_parts(path)) <= {"distributions"}, path.name
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                roots = {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                roots = {node.module.split(".")[0]}
            else:
                continue
            assert roots <= {"torch", *sys.stdlib_module_names}, (path.name, roots)
