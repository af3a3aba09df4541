"""A small mutation tester: does a test notice when one sign, number or comparison is wrong?

Each mutant is the package with one change in its core (laws, draws, estimators): a comparison
(``<`` for ``<=``), an operation (``+`` for ``-``), a number (one more, or twice as much), a truth
value, an ``and`` for an ``or``, a minus left out. All tests of the core run once without a change,
and the lines that each of them runs are remembered; a mutant is then shown to those that run its
line, the quick ones first, until one fails: *killed*. One that passes all has
*survived*, and is either equivalent or a test that is missing.

    python -m benchmarks.mutants                       # 100 at random, seed 0
    python -m benchmarks.mutants --number 20 --seed 1 --only estimators/ gumbel.py
    python -m benchmarks.mutants --list --only finite  # what there is to change

It works in a copy of the tree. Results go to a file of JSON lines, the lines of the tests to one
beside it; the same call goes on where it was interrupted (after a change of the package or of its
tests, take another file).
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest

from .live_code import replace_code, report_lines
from .mutations import Mutant, changed_tree, difference, mutants_of, mutated, sites

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = "src/gengs"
FOLDERS = ("distributions", "draws", "estimators")

ABOVE = re.compile(
    r"^(from|import) gengs\.(models|data|metrics|runs|experiments|study|report|apps|cli)"
    r"|^import subprocess|digits_run|tiny_vae",
    re.MULTILINE,
)
"""What a test of the core does not import."""
OPTIONS = ["-n", "0", "-q", "-x", "-s", "-m", "not slow", "--tb=no", "-p", "no:cacheprovider"]
MOST_FILES = 8
"""Of tests that are collected again where the package is imported again."""


@dataclass
class TestRun:
    """One test: how long it took, and the lines it ran, by file."""

    seconds: float = 0.0
    lines: dict[str, list[int]] = field(default_factory=dict)

    def runs(self, file: str, lines: range) -> bool:
        """Whether it runs one of these lines."""
        return any(line in lines for line in self.lines.get(file, ()))


def tests_of_the_core(root: Path) -> list[str]:
    """The test files that import no layer above the core, or are named after a file of it."""
    core = {path.stem for folder in FOLDERS for path in (root / PACKAGE / folder).glob("*.py")}
    found = [f"{PACKAGE}/{folder}" for folder in FOLDERS]  # the examples in docstrings
    for folder in ("tests", "tests/edges", "tests/programs"):
        for path in sorted((root / folder).glob("test_*.py")):
            if path.stem[5:] in core or not ABOVE.search(path.read_text()):
                found.append(f"{folder}/{path.name}")
    return found


def lines_around(source: str, number: int) -> Iterator[range]:
    """The lines whose tests can notice a change: of its statement, its function, its file."""
    tree = ast.parse(source)
    changed = list(sites(tree))[number][0]
    around = [node for node in ast.walk(tree) if any(n is changed for n in ast.walk(node))]
    functions = [node for node in around if isinstance(node, ast.FunctionDef)]
    statements = [node for node in around if isinstance(node, ast.stmt)]
    if functions:  # from the outside to the inside, as `ast.walk` goes
        inner, last = functions[-1], statements[-1]
        if last is not inner:
            body = getattr(last, "body", None)
            end = body[0].lineno - 1 if body else last.end_lineno or last.lineno
            yield range(last.lineno, max(last.lineno, end) + 1)
        yield range(inner.body[0].lineno, (inner.end_lineno or 0) + 1)
    yield range(1, len(source.splitlines()) + 1)


def nearest_tests(
    mutant: Mutant, source: str, known: dict[str, TestRun], budget: float
) -> list[str]:
    """Those that run the changed line, the quick ones first, as far as the budget goes.

    The tests that are named after the file are asked whatever they cost.
    """
    found: list[str] = []
    for lines in lines_around(source, mutant.number):
        found = found or [name for name, test in known.items() if test.runs(mutant.file, lines)]
    own = f"/test_{Path(mutant.file).stem}"
    chosen = []
    for name in sorted(found or known, key=lambda name: known[name].seconds):
        budget -= known[name].seconds
        if budget > 0 or own in name:
            chosen.append(name)
    return chosen


class Tester:
    """A plugin of pytest: collects the tests once, and runs them in forks, one for each mutant."""

    def __init__(self, root: Path, chosen: list[Mutant], options: argparse.Namespace) -> None:
        self.root, self.chosen, self.out = root, chosen, options.out
        self.limit, self.budget = options.limit, options.budget
        self.outcomes = read_outcomes(options.out)

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed or not session.items:
            pytest.exit("the tests cannot be collected")
        items = {item.nodeid: item for item in session.items}
        left = [mutant for mutant in self.chosen if mutant not in self.outcomes]
        known = self.line_map(items) if left else {}
        for mutant in left:
            start = time.monotonic()
            self.outcomes[mutant] = self.judge(mutant, items, known)
            row = {**asdict(mutant), "outcome": self.outcomes[mutant]}
            row["seconds"] = round(time.monotonic() - start, 1)
            with self.out.open("a") as out:
                out.write(json.dumps(row) + "\n")
            print(f"{self.outcomes[mutant]:24} {mutant}", flush=True)
        return True

    def line_map(self, items: dict[str, pytest.Item]) -> dict[str, TestRun]:
        """All tests once, without a change; one that does not pass is asked no more."""
        kept = self.out.with_suffix(".lines.json")
        if not kept.exists():
            in_fork(lambda: self._record(list(items.values()), kept), 100 * self.limit)
        rows = json.loads(kept.read_text())
        print(f"{len(rows)} of {len(items)} tests pass without a change", flush=True)
        return {name: TestRun(**rows[name]) for name in rows if name in items}

    def _record(self, items: list[pytest.Item], kept: Path) -> bool:
        package = self.root / PACKAGE
        reached: set[tuple[str, int]] = set()
        files = [path for folder in FOLDERS for path in (package / folder).glob("*.py")]
        report_lines(files, reached.add)
        tests = {}
        for item, following in zip(items, [*items[1:], None], strict=True):
            reached.clear()
            start = time.monotonic()
            if _passes(item, following):
                test = tests[item.nodeid] = TestRun(time.monotonic() - start)
                for name, line in sorted(reached):
                    test.lines.setdefault(str(Path(name).relative_to(package)), []).append(line)
        kept.write_text(json.dumps({name: asdict(test) for name, test in tests.items()}))
        return True

    def judge(
        self, mutant: Mutant, items: dict[str, pytest.Item], known: dict[str, TestRun]
    ) -> str:
        """``killed``, ``killed (took too long)`` or ``survived``, and how many tests were asked."""
        path = self.root / PACKAGE / mutant.file
        source = path.read_text()
        tests = nearest_tests(mutant, source, known, self.budget)

        def run() -> bool:
            if replace_code(path, source, changed_tree(source, mutant.number)):
                asked = [items[name] for name in tests]
                return all(map(_passes, asked, [*asked[1:], None]))
            path.write_text(mutated(source, mutant.number))
            return _passes_afresh(tests)

        try:
            passed = in_fork(run, self.limit)
        finally:
            path.write_text(source)
        if passed is None:
            return "killed (took too long)"
        return f"{'survived' if passed else 'killed'} ({len(tests)} tests)"


def _passes(item: pytest.Item, following: pytest.Item | None) -> bool:
    before = item.session.testsfailed
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    return item.session.testsfailed == before


def _passes_afresh(tests: list[str]) -> bool:
    """In a new session, which imports the package and the tests again."""
    ours = {"gengs", *(Path(name.partition("::")[0]).stem for name in tests)}
    for name in [name for name in sys.modules if name.split(".")[0] in ours]:
        del sys.modules[name]
    files = list(dict.fromkeys(name.partition("::")[0] for name in tests))[:MOST_FILES]
    return pytest.main([*OPTIONS, *files], plugins=[Ordered(tests)]) == pytest.ExitCode.OK


class Ordered:
    """A plugin of pytest: only these tests, in this order."""

    def __init__(self, tests: list[str]) -> None:
        self.rank = {name: rank for rank, name in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        known = [item for item in items if item.nodeid in self.rank]
        items[:] = sorted(known, key=lambda item: self.rank[item.nodeid])


def in_fork(question: Callable[[], bool], limit: float) -> bool | None:
    """The answer of a silent fork of this process; ``None`` if it takes longer than the limit.

    The limit is in seconds of the processor: on a busy machine a slow answer is no endless loop.
    One that only waits has twenty times as long.
    """
    child = os.fork()
    if child == 0:
        code = 2
        try:
            os.setsid()
            most = resource.getrlimit(resource.RLIMIT_CPU)[1]
            resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(limit), most))
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            code = 0 if question() else 1
        except BaseException:  # not for the session that was forked
            traceback.print_exc()
        finally:
            os._exit(code)
    end = time.monotonic() + 20 * limit
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            code = os.waitstatus_to_exitcode(status)
            if code == -signal.SIGXCPU:
                return None
            if code == 2:
                pytest.exit("the mutation tester itself has failed")
            return code == 0  # a crash is a failure like any other
        time.sleep(0.05)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--number", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", default=[""], help="parts of the files' names")
    parser.add_argument("--out", type=Path, default=Path(tempfile.gettempdir()) / "mutants.jsonl")
    parser.add_argument("--limit", type=float, default=600.0, help="processor seconds for each")
    parser.add_argument("--budget", type=float, default=300.0, help="seconds of tests for each")
    parser.add_argument("--list", action="store_true", help="print the changes and stop")
    options = parser.parse_args()
    package = ROOT / PACKAGE
    files = [path for folder in FOLDERS for path in sorted((package / folder).glob("*.py"))]
    every = [m for path in files for m in mutants_of(path, str(path.relative_to(package)))]
    every = [mutant for mutant in every if any(part in mutant.file for part in options.only)]
    chosen = random.Random(options.seed).sample(every, min(options.number, len(every)))
    if options.list:
        for mutant in every:
            print(mutant)
        return 0
    print(f"{len(chosen)} of {len(every)} changes, seed {options.seed}; results in {options.out}")
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "tree"
        shutil.copytree(ROOT, root, ignore=shutil.ignore_patterns("__pycache__", ".*", "results"))
        os.chdir(root)
        os.environ |= {"PYTHONPATH": str(root / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.dont_write_bytecode = True
        sys.path.insert(0, str(root / "src"))
        tester = Tester(root, chosen, options)
        pytest.main([*OPTIONS, *tests_of_the_core(root)], plugins=[tester])
        os.chdir(ROOT)
    if not all(mutant in tester.outcomes for mutant in chosen):
        return 1
    outcomes = [tester.outcomes[mutant] for mutant in chosen]
    print(f"\nkilled {sum(o.startswith('killed') for o in outcomes)} of {len(chosen)}; survivors:")
    for mutant, outcome in zip(chosen, outcomes, strict=True):
        if outcome.startswith("survived"):
            print(f"\n{mutant}\n{difference((package / mutant.file).read_text(), mutant.number)}")
    return 0


def read_outcomes(out: Path) -> dict[Mutant, str]:
    """What was found before."""
    rows = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    fields = ("file", "line", "number", "change")
    return {Mutant(**{field: row[field] for field in fields}): row["outcome"] for row in rows}


if __name__ == "__main__":
    raise SystemExit(main())
