"""What can be wrong in a file: each place where one sign, number or comparison may be another."""

from __future__ import annotations

__all__ = ["Mutant", "changed_tree", "difference", "mutants_of", "mutated", "sites"]

import ast
import copy
import difflib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

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

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: {self.change}"


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


def changed_tree(source: str, number: int) -> ast.Module:
    """The source with one change made."""
    tree = ast.parse(source)
    before, after = list(sites(tree))[number]

    class Change(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            return ast.copy_location(after, before) if node is before else self.generic_visit(node)

    Change().visit(tree)
    return ast.fix_missing_locations(tree)


def mutated(source: str, number: int) -> str:
    """The same as text, without comments."""
    return ast.unparse(changed_tree(source, number))


def difference(source: str, number: int) -> str:
    """The change as a diff of the code, without comments."""
    before, after = ast.unparse(ast.parse(source)), mutated(source, number)
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), n=2, lineterm="")
    return "\n".join(list(lines)[2:])
