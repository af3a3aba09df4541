"""A small mutation tester: does a test notice when one sign, number or comparison is wrong?

Each mutant is the package with one change in its core (laws, draws, estimators): a comparison
(``<`` for ``<=``), an operation (``+`` for ``-``), a number (one more, or twice as much), a truth
value, an ``and`` for an ``or``, a minus left out. It runs the tests in stages, from the nearest to
all of ``tests/edges``, and stops at the first that fails: *killed*. One that passes all has
*survived*, and is either equivalent or a test that is missing.

    python -m benchmarks.mutants                       # 100 at random, seed 0
    python -m benchmarks.mutants --number 20 --seed 1 --only estimators/
    python -m benchmarks.mutants --list --only finite  # what there is to change

Results go to a file of JSON lines; the same call goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NoReturn

import pytest
import scipy.stats  # noqa: F401 (for the forks)
import torch

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("distributions", "draws", "estimators")

COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
OPERATIONS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
}
FACTS = {"__all__", "year", "reference", "paper_name", "needs"}
"""Assignments that are words about the code, not code."""


@dataclass(frozen=True)
class Mutant:
    """One change: the file, the line, and the words before and after."""

    file: str
    line: int
    number: int
    """Which of the file's changes it is."""
    change: str


# ------------------------------------------------------------------------------ what can be changed


def sites(tree: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    """Every node that can be changed, and what it becomes; always in the same order."""
    if isinstance(tree, ast.Assign | ast.AnnAssign):
        targets = tree.targets if isinstance(tree, ast.Assign) else [tree.target]
        if any(isinstance(target, ast.Name) and target.id in FACTS for target in targets):
            return
    if isinstance(tree, ast.Raise | ast.JoinedStr | ast.Import | ast.ImportFrom):
        return  # words for people
    yield from _changes(tree)
    for field, value in ast.iter_fields(tree):
        if field in ("annotation", "returns", "decorator_list", "type_params"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from sites(child)


def _changes(node: ast.AST) -> Iterator[tuple[ast.AST, ast.AST]]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        other = copy.copy(node)
        other.ops = [COMPARISONS[type(node.ops[0])](), *node.ops[1:]]
        yield node, other
    elif isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
        yield node, ast.BinOp(node.left, OPERATIONS[type(node.op)](), node.right)
    elif isinstance(node, ast.BoolOp):
        op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield node, ast.BoolOp(op, node.values)
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.Not):
        yield node, node.operand
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield node, ast.Constant(not node.value)
        elif isinstance(node.value, int):
            yield node, ast.Constant(node.value + 1)
        elif isinstance(node.value, float):
            yield node, ast.Constant(2 * node.value if node.value else 1.0)


def mutants_of(path: Path, name: str) -> list[Mutant]:
    """All changes of one file."""
    found = []
    for number, (before, after) in enumerate(sites(ast.parse(path.read_text()))):
        words = " -> ".join(ast.unparse(ast.fix_missing_locations(n)) for n in (before, after))
        found.append(Mutant(name, getattr(before, "lineno", 0), number, words))
    return found


def mutated(source: str, number: int) -> str:
    """The source with one change made."""
    tree = ast.parse(source)
    before, after = list(sites(tree))[number]

    class Change(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return after if node is before else self.generic_visit(node)

    return ast.unparse(ast.fix_missing_locations(Change().visit(tree)))


# ------------------------------------------------------------------------------------- the tests


def stages(file: str) -> list[list[str]]:
    """Which tests to ask, nearest first."""
    stem = Path(file).stem
    own = [str(p) for p in sorted(Path("tests").glob(f"test_{stem}*.py"))]
    edges = Path("tests/edges")
    near = {
        "distributions": ["test_generic.py", "test_quantiles.py", "test_debias.py"],
        "draws": ["test_boundaries.py", "test_debias.py", "test_learned_total_count.py"],
        "estimators": ["test_parameters.py", "test_pmf_only.py"],
    }[file.split("/")[0]]
    first = [*own, *(str(edges / name) for name in near)]
    wide = ["test_conformance", "test_estimators", "test_hazards", "test_truncation", "test_midcdf"]
    broad = [f"tests/{name}.py" for name in wide if Path(f"tests/{name}.py").exists()]
    return [first, [str(edges)], [name for name in broad if name not in own]]


def passes(tests: list[str], source: Path, limit: float) -> bool:
    """Whether the tests pass on the package in ``source``; longer than the limit is a failure.

    In a fork of this process, which has imported torch already: that is most of a short run.
    """
    child = os.fork()
    if child == 0:
        _become(tests, source)
    end = time.monotonic() + limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status) == 0
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _become(tests: list[str], source: Path) -> NoReturn:
    """Run the tests in this process, silently, and end it."""
    code = 2
    try:
        os.setsid()
        os.chdir(ROOT)
        os.environ |= {"PYTHONPATH": str(source), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(source))
        for name in [name for name in sys.modules if name.split(".")[0] == "gengs"]:
            del sys.modules[name]  # the tests import the mutant
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        options = ["-n", "0", "-q", "-x", "-m", "not slow", "--tb=no", "-p", "no:cacheprovider"]
        code = int(pytest.main([*options, *tests]))
    finally:
        os._exit(code)


def judge(mutant: Mutant, source: Path, limit: float, most_stages: int) -> str:
    """``killed by stage N`` or ``survived``."""
    target = source / "gengs" / mutant.file
    original = target.read_text()
    try:
        target.write_text(mutated(original, mutant.number))
        for number, tests in enumerate(stages(mutant.file)[:most_stages], 1):
            if tests and not passes(tests, source, limit):
                return f"killed by stage {number}"
        return "survived"
    finally:
        target.write_text(original)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="a part of the file's name")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "mutants.jsonl")
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each stage")
    parser.add_argument("--stages", type=int, default=3, help="how far a mutant is followed")
    parser.add_argument("--list", action="store_true", help="print the changes and stop")
    options = parser.parse_args()
    torch.set_num_threads(1)
    package = ROOT / "src" / "gengs"
    files = [path for folder in FOLDERS for path in sorted((package / folder).glob("*.py"))]
    every = [m for path in files for m in mutants_of(path, str(path.relative_to(package)))]
    every = [mutant for mutant in every if options.only in mutant.file]
    chosen = random.Random(options.seed).sample(every, min(options.number, len(every)))
    if options.list:
        for mutant in every:
            print(f"{mutant.file}:{mutant.line}: {mutant.change}")
        return 0
    print(f"{len(chosen)} of {len(every)} changes, seed {options.seed}; results in {options.out}")
    known = _known(options.out)
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        shutil.copytree(package, source / "gengs", ignore=shutil.ignore_patterns("__pycache__"))
        _require_sound(chosen, known, source, options)
        for mutant in chosen:
            if mutant not in known:
                start = time.monotonic()
                known[mutant] = judge(mutant, source, options.limit, options.stages)
                row = {**asdict(mutant), "outcome": known[mutant]}
                row["seconds"] = round(time.monotonic() - start, 1)
                with options.out.open("a") as out:
                    out.write(json.dumps(row) + "\n")
            print(f"{known[mutant]:18} {mutant.file}:{mutant.line}: {mutant.change}", flush=True)
    survivors = [mutant for mutant in chosen if known[mutant] == "survived"]
    print(f"\nkilled {len(chosen) - len(survivors)} of {len(chosen)}; survivors:")
    for mutant in survivors:
        print(f"  {mutant.file}:{mutant.line}: {mutant.change}")
    return 0


def _known(out: Path) -> dict[Mutant, str]:
    """What was found before."""
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    fields = ("file", "line", "number", "change")
    return {Mutant(**{field: row[field] for field in fields}): row["outcome"] for row in rows}


def _require_sound(
    chosen: list[Mutant], known: dict[Mutant, str], source: Path, options: argparse.Namespace
) -> None:
    """Without a change all tests must pass: else every mutant would seem to be killed."""
    left = [mutant for mutant in chosen if mutant not in known]
    tests = {test for m in left for stage in stages(m.file)[: options.stages] for test in stage}
    if left and not passes(sorted(tests), source, 10 * options.limit):
        raise SystemExit(f"mutants: these tests fail without a change: {' '.join(sorted(tests))}")


if __name__ == "__main__":
    os.chdir(ROOT)
    raise SystemExit(main())
