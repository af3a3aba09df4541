"""Other code in functions that are loaded already: a change, or probes that tell what runs.

A function keeps its identity and gets another code, so whoever imported it has the new one, and
nothing is imported again. What runs when a file is imported (constants, facts, defaults) cannot be
changed like this.
"""

from __future__ import annotations

__all__ = ["replace_code", "report_lines"]

import ast
import builtins
import gc
import inspect
from collections.abc import Callable, Iterable
from pathlib import Path
from types import CodeType, FunctionType

PROBE = "__reached__"


def replace_code(path: Path, source: str, tree: ast.Module) -> bool:
    """Give the loaded functions of a file the code of a changed tree; whether one has changed."""
    before = _functions(compile(source, str(path), "exec"))
    after = _functions(compile(tree, str(path), "exec"))
    changed = {name for name, code in before.items() if code != after[name]}
    replaced = False
    for function in [found for found in gc.get_objects() if type(found) is FunctionType]:
        old = function.__code__
        if old.co_filename == str(path) and (old.co_qualname, old.co_firstlineno) in changed:
            function.__code__ = after[old.co_qualname, old.co_firstlineno]
            replaced = True
    return replaced


def report_lines(paths: Iterable[Path], to: Callable[[tuple[str, int]], object]) -> None:
    """From now on, tell the file and the line of each statement in a function that is about to run.

    Much less work than a tracer; but ``torch.compile`` stumbles over it.
    """
    setattr(builtins, PROBE, to)
    for path in paths:
        source = path.read_text()
        replace_code(path, source, with_probes(source, str(path)))


def with_probes(source: str, name: str) -> ast.Module:
    """The source with a probe before each statement of its functions."""
    tree = ast.parse(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    inside = {id(node): node for function in functions for node in ast.walk(function)}
    for node in inside.values():
        for field in ("body", "orelse", "finalbody"):
            block = getattr(node, field, None)
            if isinstance(block, list):
                probed = [(_probe(name, statement), statement) for statement in block]
                setattr(node, field, [part for pair in probed for part in pair])
    return ast.fix_missing_locations(tree)


def _probe(name: str, statement: ast.stmt) -> ast.stmt:
    call = ast.parse(f"{PROBE}(({name!r}, {statement.lineno}))").body[0]
    for node in ast.walk(call):
        ast.copy_location(node, statement)
    return call


def _functions(code: CodeType) -> dict[tuple[str, int], CodeType]:
    """All code of functions, by name and line; that of a class or a module is none."""
    found = {}
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            if inner.co_flags & inspect.CO_NEWLOCALS:
                found[inner.co_qualname, inner.co_firstlineno] = inner
            found |= _functions(inner)
    return found
