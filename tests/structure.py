"""Checks of the packages' shape, as functions of their folder: each lists what breaks a rule.

A checker takes the folder of the three packages and returns sentences, one for each violation, that
name files and classes but no line numbers: a list of them stays valid while the code around them
moves. What is known to break a rule stands in ``known_violations.txt``, which may
only become shorter:

    python tests/structure.py   # removes the lines whose violation is gone
"""

import ast
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

PACKAGES = {
    "gengs": "numerics  tables laws  distributions  gradients  estimators  programs nn"
    "  lab integrations  __init__  __main__",
    "gengs_experiments": "__init__  runs  data  models  experiments  study  report  cli demo",
    "gengs_topics": "text  metrics  model  commands  __init__",
}
"""Low to high: a folder, or a file beside them, may import what is below it, in its own package and
in those that stand before it; names with one space between them stand side by side."""
LAYERS = [
    {f"{package}/{name}" for name in layer.split()}
    for package, layers in PACKAGES.items()
    for layer in layers.split("  ")
]
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
BY_NAME = {"gengs/__main__": "gengs_experiments", "gengs_experiments": "gengs_topics"}
"""Who may name a module of a package above it in a string, to import it when it is used."""
ENTRIES = {
    *("gengs/__init__", "gengs/__main__", "gengs_experiments/__init__", "gengs_experiments/cli"),
    *("gengs_experiments/demo", "gengs_topics/__init__"),
}
"""What users run and import; everything else is there because one of these needs it."""
HOME_OF_TORCH_C = "gengs/numerics/tracing.py"
TOGETHER = {"gengs/tables", "gengs/laws"}
"""A law has a table, and a table is made of a law: these import each other, but in no circle."""
LAWS = {
    *("Poisson", "Binomial", "Bernoulli", "NegativeBinomial", "Geometric", "Categorical"),
    *("OneHotCategorical", "Multinomial", "MixtureSameFamily", "TransformedDistribution"),
}
NAMES_LAWS = {"gengs/lab/testing.py", "gengs/programs"}
"""Outside of ``laws/`` these name distributions of torch: the kit, which has a list of them, and
programs, which take torch's random functions for the distributions they draw from."""


@dataclass
class Module:
    """A file and what it imports, found in its syntax tree: inside functions too."""

    path: str
    """Relative to the folder of the packages."""
    lines: int
    tree: ast.Module
    imports: list[tuple[str, str | None]] = field(default_factory=list)
    """Dotted modules of the packages and a name taken from each."""
    by_name: set[str] = field(default_factory=set)
    """Modules that are imported by their name, in a string, alone."""
    only_for_types: set[str] = field(default_factory=set)
    """Modules that are imported under ``TYPE_CHECKING`` alone."""

    @property
    def name(self):
        """``gengs.tables.finite``; a package is called like its folder."""
        return self.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    @property
    def package(self):
        return self.path.split("/")[0]

    @property
    def layer(self):
        return "/".join(self.path.split("/")[:2]).removesuffix(".py")

    @property
    def folder(self):
        return self.path.rpartition("/")[0]

    @property
    def public(self):
        """The names of ``__all__``, ``None`` where there is none or it is not a plain list."""
        for node in self.tree.body:
            targets = node.targets if isinstance(node, ast.Assign) else []
            if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets):
                found = {
                    part.value
                    for part in ast.walk(node.value)
                    if isinstance(part, ast.Constant) and isinstance(part.value, str)
                }
                return found | ({"*"} if any_starred(node.value) else set())
        return None


def any_starred(node):
    return any(isinstance(part, ast.Starred) for part in ast.walk(node))


@cache
def modules_of(root):
    """All modules of the packages in ``root``, by dotted name."""
    found = {}
    for file in sorted(file for name in PACKAGES for file in (Path(root) / name).rglob("*.py")):
        text = file.read_text()
        module = Module(
            file.relative_to(root).as_posix(), len(text.splitlines()), ast.parse(text, str(file))
        )
        found[module.name] = module
    for module in found.values():
        _find_imports(module, found)
    return found


def _find_imports(module, known):
    package = module.folder.replace("/", ".")
    for_types = set()
    for node in ast.walk(module.tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            for_types |= {id(part) for branch in node.body for part in ast.walk(branch)}
    needed, typed, named = set(), set(), set()
    for node in ast.walk(module.tree):
        found = []
        if isinstance(node, ast.Import):
            found = [(a.name, None) for a in node.names if a.name.split(".")[0] in PACKAGES]
        elif isinstance(node, ast.ImportFrom):
            stem = _absolute(package, node.level, node.module)
            if stem is None:
                continue
            for alias in node.names:
                inner = f"{stem}.{alias.name}"
                found.append((inner, None) if inner in known else (stem, alias.name))
        elif isinstance(node, ast.Constant | ast.JoinedStr):
            found = _in_string(node, package, known)
            named.update(name for name, _ in found)
            module.imports += found
            continue
        module.imports += found
        (typed if id(node) in for_types else needed).update(name for name, _ in found)
    module.only_for_types = typed - needed - named
    module.by_name = named - needed - typed


def _absolute(package, level, name):
    """A module of the packages, dotted; ``None`` for one of others."""
    if not level:
        return name if name.split(".")[0] in PACKAGES else None
    base = package.split(".")
    base = base[: len(base) - level + 1]
    return ".".join([*base, *([name] if name else [])])


def _in_string(node, package, known):
    """Modules imported by name: ``".lab.kit"``, ``"gengs.lab.kit:Name"``, by ``__package__``."""
    if isinstance(node, ast.JoinedStr):
        text = ast.unparse(node)[2:-1].replace("{__package__}", package)
    else:
        text = node.value if isinstance(node.value, str) else ""
    if not re.fullmatch(r"\.?\w+([.:]\w+)+|\.\w+", text):
        return []
    name = (f"{package}{text}" if text.startswith(".") else text).replace(":", ".")
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return [(name, None)] if name in known and name not in PACKAGES else []


# ------------------------------------------------------------------------------------- the rules


def files_of_no_layer(root):
    """Every file belongs to exactly one layer."""
    return [f"{m.path} is in no layer" for m in modules_of(root).values() if m.layer not in RANK]


def imports_that_go_up(root):
    """A layer imports what is below it: not above, not beside; ``gengs`` knows no other package."""
    known = modules_of(root)
    found = set()
    for module in known.values():
        for name, taken in module.imports:
            if (name, taken) == (module.package, "__version__"):
                continue
            target = known.get(name)
            if target is None or target.layer == module.layer:
                continue
            above = BY_NAME.get(module.layer, BY_NAME.get(module.package))
            if name in module.by_name and target.package == above:
                continue
            if {module.layer, target.layer} <= TOGETHER:
                continue
            if RANK.get(target.layer, 99) >= RANK.get(module.layer, 99):
                found.add(f"{module.path} imports {target.path}")
    return sorted(found)


def private_imports(root):
    """Across folders only names of ``__all__`` are used, whether imported or reached by a dot."""
    known = modules_of(root)
    found = set()
    for module in known.values():
        for name, taken in [*module.imports, *_attributes(module, known)]:
            target = known.get(name)
            if target is None or taken is None or target.folder == module.folder:
                continue
            if taken in ("__version__", "*", "__all__"):
                continue
            if target.name == "gengs" and not taken.startswith("_"):
                continue  # its list of names is made when one is asked for
            public = target.public
            if public is None or (taken not in public and "*" not in public):
                found.add(f"{module.path} takes {taken} of {target.path}")
    return sorted(found)


def _attributes(module, known):
    """What is taken by a dot from modules that were imported as such."""
    package = module.folder.replace("/", ".")
    bound = {}
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom):
            stem = _absolute(package, node.level, node.module)
            for alias in node.names:
                inner = f"{stem}.{alias.name}"
                if stem is not None and inner in known:
                    bound[alias.asname or alias.name] = inner
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            name = bound.get(node.value.id)
            if name is not None and f"{name}.{node.attr}" not in known:
                yield name, node.attr


def uses_of_torch_c(root):
    """torch's private C++ names have one home."""
    found = set()
    for module in modules_of(root).values():
        for node in ast.walk(module.tree):
            private = (
                isinstance(node, ast.Attribute)
                and node.attr == "_C"
                and isinstance(node.value, ast.Name)
                and node.value.id == "torch"
            )
            if isinstance(node, ast.Import):
                private = any(alias.name.startswith("torch._C") for alias in node.names)
            if isinstance(node, ast.ImportFrom) and not node.level:
                private = node.module.startswith("torch._C") or (
                    node.module == "torch" and any(alias.name == "_C" for alias in node.names)
                )
            if private and module.path != HOME_OF_TORCH_C:
                found.add(f"{module.path} uses torch._C")
    return sorted(found)


def names_used_twice(root):
    """No class and no file is called like another."""
    classes, files = defaultdict(set), defaultdict(set)
    for module in modules_of(root).values():
        files[Path(module.path).name].add(module.path)
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef):
                classes[node.name].add(module.path)
    files.pop("__init__.py", None)
    return sorted(
        f"the {kind} {name} is there more than once"
        for kind, named in (("class", classes), ("file name", files))
        for name, where in named.items()
        if len(where) > 1
    )


def modules_nobody_imports(root):
    """Every module is needed by what users run or import; tests alone are no reason."""
    known = modules_of(root)
    reached, todo = set(), [m.name for m in known.values() if m.path.removesuffix(".py") in ENTRIES]
    while todo:
        name = todo.pop()
        if name in reached or name not in known:
            continue
        reached.add(name)
        todo += [other for other, _ in known[name].imports]
        todo += [name.rpartition(".")[0]]
    return sorted(f"{known[name].path} is imported by no other" for name in set(known) - reached)


@cache
def imported_by_help(
    root,
    command=("vae", "--help"),
    barred=("gengs_experiments.study", "gengs_experiments.report", "gengs_topics"),
):
    """Help of an experiment does not import what only others need."""
    program = (
        "import contextlib, io, json, sys\n"
        f"sys.argv = ['gengs', *{list(command)!r}]\n"
        "from gengs_experiments.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main()\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('gengs')]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root)},
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    loaded = set(json.loads(done.stdout))
    return sorted(f"gengs {' '.join(command)} imports {name}" for name in loaded & set(barred))


def circles(root):
    """No files import each other in a circle, not even inside of functions."""
    modules = modules_of(root)
    below = {
        m.name: {name for name, _ in m.imports if name in modules} - m.only_for_types - {m.name}
        for m in modules.values()
        if not m.path.endswith("__init__.py")
    }
    done, found = set(), set()

    def visit(name, above):
        if name in above:
            found.add(f"a circle of imports: {' -> '.join([*above[above.index(name) :], name])}")
        elif name not in done:
            for following in sorted(below[name] & below.keys()):
                visit(following, [*above, name])
            done.add(name)

    for name in below:
        visit(name, [])
    return sorted(found)


def laws_outside_their_rooms(root):
    """What is known of a distribution stands in its file in ``laws/``, and nowhere else."""
    found = set()
    for module in modules_of(root).values():
        if module.package != "gengs" or module.layer == "gengs/laws":
            continue
        if {module.path, module.layer} & NAMES_LAWS:
            continue
        for node in ast.walk(module.tree):
            name = getattr(node, "id", None) or getattr(node, "attr", None)
            if isinstance(node, ast.Name | ast.Attribute) and name in LAWS:
                found.add(f"{module.path} names {name}")
    return sorted(found)


# ----------------------------------------------------------------------- what is known to be wrong

RULES = (
    *(files_of_no_layer, imports_that_go_up, private_imports, uses_of_torch_c),
    *(names_used_twice, modules_nobody_imports, imported_by_help),
    *(circles, laws_outside_their_rooms),
)
KNOWN = Path(__file__).with_name("known_violations.txt")


def known_violations():
    return KNOWN.read_text().splitlines() if KNOWN.exists() else []


def shrink(root):
    """Remove from the list what is no longer wrong; nothing is ever added."""
    wrong = {sentence for rule in RULES for sentence in rule(root)}
    left = [line for line in known_violations() if line in wrong]
    KNOWN.write_text("".join(f"{line}\n" for line in left))
    for sentence in sorted(wrong - set(left)):
        print(f"new, to be mended: {sentence}")
    print(f"{len(left)} known violations are left")


if __name__ == "__main__":
    shrink(Path(__file__).resolve().parents[1] / "src")
