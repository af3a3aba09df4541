"""Checks of the package's shape, as functions of its folder: each lists what breaks a rule.

A checker takes the folder of a package called ``gengs`` and returns sentences, one for each
violation, that name files and classes but no line numbers: a list of them stays valid while the
code around them moves. What is known to break a rule stands in ``known_violations.txt``, which may
only become shorter:

    python tests/structure.py   # removes the lines whose violation is gone
"""

import ast
import json
import os
import re
import statistics
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

LAYERS = [
    *({"distributions"}, {"draws"}, {"estimators"}, {"programs"}, {"lab", "integrations"}),
    *(
        {"runs"},
        {"data"},
        {"metrics"},
        {"models"},
        {"experiments"},
        {"study"},
        {"report"},
        {"apps"},
    ),
    *({"__init__"}, {"cli", "demo"}, {"__main__"}),
]
"""Low to high: a folder, or a file beside them, may import what is below it."""
RANK = {name: rank for rank, layer in enumerate(LAYERS) for name in layer}
ENTRIES = {"__init__", "__main__", "cli", "demo"}
"""What users run and import; everything else is there because one of these needs it."""
HOME_OF_TORCH_C = "distributions/tracing.py"

MOST_LAW_FILES, MOST_LAW_LINES, LONGEST_CHAIN = 20, 3200, 7
MOST_LINES, MEDIAN_LINES = 330, 150


@dataclass
class Module:
    """A file and what it imports, found in its syntax tree: inside functions too."""

    path: str
    """Relative to the package's folder."""
    lines: int
    tree: ast.Module
    imports: list[tuple[str, str | None]] = field(default_factory=list)
    """Dotted modules below the package (``""`` is the package) and a name taken from each."""
    only_for_types: set[str] = field(default_factory=set)
    """Modules that are imported under ``TYPE_CHECKING`` alone."""

    @property
    def name(self):
        """``distributions.finite``; a package is called like its folder."""
        stem = self.path.removesuffix(".py").replace("/", ".")
        return stem.removesuffix(".__init__") if stem != "__init__" else ""

    @property
    def layer(self):
        return self.path.split("/")[0].removesuffix(".py")

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
    """All modules of the package in ``root``, by dotted name."""
    found = {}
    for file in sorted(Path(root).rglob("*.py")):
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
    needed, typed = set(), set()
    for node in ast.walk(module.tree):
        found = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.split(".")[0] == "gengs"]
            found = [(name.removeprefix("gengs").lstrip("."), None) for name in names]
        elif isinstance(node, ast.ImportFrom):
            stem = _absolute(package, node.level, node.module)
            if stem is None:
                continue
            for alias in node.names:
                inner = f"{stem}.{alias.name}".lstrip(".")
                found.append((inner, None) if inner in known else (stem, alias.name))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            found = _in_string(node.value, package, known)
        module.imports += found
        (typed if id(node) in for_types else needed).update(name for name, _ in found)
    module.only_for_types = typed - needed


def _absolute(package, level, name):
    """A module below ``gengs``, dotted; ``None`` for one of another package."""
    if not level:
        if name.split(".")[0] != "gengs":
            return None
        return name.removeprefix("gengs").lstrip(".")
    base = package.split(".") if package else []
    base = base[: len(base) - level + 1]
    return ".".join([*base, *([name] if name else [])])


def _in_string(text, package, known):
    """Modules imported by name: ``".lab.kit"``, ``"gengs.lab.kit"``, ``"lab.kit.Name"``."""
    if not re.fullmatch(r"\.?\w+([.:]\w+)+|\.\w+", text):
        return []
    name = text.removeprefix("gengs.").replace(":", ".")
    if name.startswith("."):
        name = f"{package}{name}".lstrip(".")
    while name not in known and "." in name:
        name = name.rpartition(".")[0]
    return [(name, None)] if name in known else []


# ------------------------------------------------------------------------------------- the rules


def files_of_no_layer(root):
    """Every file belongs to exactly one layer."""
    return [f"{m.path} is in no layer" for m in modules_of(root).values() if m.layer not in RANK]


def imports_that_go_up(root):
    """A layer imports what is below it: not above, not beside."""
    known = modules_of(root)
    found = set()
    for module in known.values():
        for name, taken in module.imports:
            if (name, taken) == ("", "__version__"):
                continue
            target = known.get(name)
            if target is None or target.layer == module.layer:
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
            if (name, taken) == ("", "__version__") or taken in ("*", "__all__"):
                continue
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
                inner = f"{stem}.{alias.name}".lstrip(".")
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
def imported_by_help(root, command=("vae", "--help"), barred=("study", "report", "apps")):
    """Help of an experiment does not import what only others need."""
    program = (
        "import contextlib, io, json, sys\n"
        f"sys.argv = ['gengs', *{list(command)!r}]\n"
        "from gengs.cli import main\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n"
        "    main()\n"
        "print(json.dumps([name for name in sys.modules if name.startswith('gengs.')]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(root).parent)},
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    layers = {name.split(".")[1] for name in json.loads(done.stdout)}
    return sorted(f"gengs {' '.join(command)} imports {name}" for name in layers & set(barred))


def sizes(root):
    """Small enough to be read: files, lines, and imports in a row."""
    modules = modules_of(root)
    lines = {m.path: m.lines for m in modules.values()}
    laws = [n for path, n in lines.items() if path.startswith("distributions/")]
    chain = longest_chain(modules, "distributions")
    found = []
    if len(laws) > MOST_LAW_FILES:
        found.append(f"distributions has more than {MOST_LAW_FILES} files")
    if sum(laws) > MOST_LAW_LINES:
        found.append(f"distributions has more than {MOST_LAW_LINES} lines")
    if len(chain) > LONGEST_CHAIN:
        found.append(f"a chain of imports inside distributions is longer than {LONGEST_CHAIN}")
    if statistics.median(lines.values()) > MEDIAN_LINES:
        found.append(f"the median file has more than {MEDIAN_LINES} lines")
    found += [
        f"{path} has more than {MOST_LINES} lines" for path in lines if lines[path] > MOST_LINES
    ]
    return sorted(found)


def longest_chain(modules, layer):
    """The largest number of files that import one another in a row, and which."""
    inside = {
        m.name: {
            name
            for name, _ in m.imports
            if name in modules and modules[name].layer == layer and name not in m.only_for_types
        }
        for m in modules.values()
        # the package's own list imports all: it would add one to every chain
        if m.layer == layer and not m.path.endswith("__init__.py")
    }
    best = {}

    def chain(name, above=()):
        if name in above:
            raise ValueError(f"a circle of imports: {' -> '.join([*above, name])}")
        if name not in best:
            following = [chain(n, (*above, name)) for n in sorted(inside[name]) if n in inside]
            best[name] = (name, *max(following, key=len, default=()))
        return best[name]

    return max((chain(name) for name in inside), key=len, default=())


# ----------------------------------------------------------------------- what is known to be wrong

RULES = (
    *(files_of_no_layer, imports_that_go_up, private_imports, uses_of_torch_c),
    *(names_used_twice, modules_nobody_imports, imported_by_help, sizes),
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
    shrink(Path(__file__).resolve().parents[1] / "src" / "gengs")
