"""The mutation tester changes one thing at a time, leaves words alone, and notices a survivor."""

import ast
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

SOURCE = '''
"""A docstring with 1 < 2."""
__all__ = ["f"]
year = 2016

def f(x: int = 3, *, flag: bool = True) -> float:
    """Words."""
    if x < 0 or not flag:
        raise ValueError(f"expected {x + 1}")
    return -x * 2.0 if x == 7 and flag else x - 1
'''
EXPECTED = [
    "3 -> 4",
    "True -> False",
    "x < 0 or not flag -> x < 0 and (not flag)",
    "x < 0 -> x <= 0",
    "0 -> 1",
    "not flag -> flag",
    "-x * 2.0 -> -x / 2.0",
    "-x -> x",
    "2.0 -> 4.0",
    "x == 7 and flag -> x == 7 or flag",
    "x == 7 -> x != 7",
    "7 -> 8",
    "x - 1 -> x + 1",
    "1 -> 2",
]


@pytest.fixture
def tester(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks import mutants

    yield mutants
    sys.modules.pop("benchmarks.mutants", None)


def test_what_can_be_changed(tester, tmp_path):
    path = tmp_path / "law.py"
    path.write_text(SOURCE)
    found = tester.mutants_of(path, "distributions/law.py")
    assert sorted(mutant.change for mutant in found) == sorted(EXPECTED)
    assert len({mutant.number for mutant in found}) == len(found)


def test_each_change_is_one_change(tester, tmp_path):
    path = tmp_path / "law.py"
    path.write_text(SOURCE)
    plain = ast.unparse(ast.parse(SOURCE))
    lines = plain.splitlines()
    made = [tester.mutated(SOURCE, m.number) for m in tester.mutants_of(path, "law.py")]
    assert len(set(made)) == len(EXPECTED) and plain not in made
    for text in made:
        same = [a == b for a, b in zip(lines, text.splitlines(), strict=True)]
        assert same.count(False) == 1


@pytest.mark.slow
def test_a_change_that_a_test_sees_is_killed_and_the_file_is_put_back(
    tester, tmp_path, monkeypatch
):
    law = tmp_path / "gengs" / "distributions" / "law.py"
    law.parent.mkdir(parents=True)
    law.write_text(SOURCE)
    for name in ("gengs", "gengs/distributions"):
        (tmp_path / name / "__init__.py").write_text("")
    check = tmp_path / "test_law.py"
    check.write_text("from gengs.distributions.law import f\n\ndef test():\n    assert f(5) == 4\n")
    monkeypatch.setattr(tester, "stages", lambda file: [[str(check)]])
    monkeypatch.setattr(tester, "ROOT", tmp_path)
    outcomes = {
        mutant.change: tester.judge(mutant, tmp_path, 120.0, 1)
        for mutant in tester.mutants_of(law, "distributions/law.py")
        if mutant.change in ("x - 1 -> x + 1", "7 -> 8")
    }
    assert outcomes == {"x - 1 -> x + 1": "killed by stage 1", "7 -> 8": "survived"}
    assert law.read_text() == SOURCE
