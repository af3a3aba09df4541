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
    for name in ("benchmarks.mutants", "benchmarks.mutations", "benchmarks.live_code"):
        sys.modules.pop(name, None)


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


@pytest.mark.parametrize(
    ("change", "first"),
    [("x < 0 -> x <= 0", range(8, 9)), ("x - 1 -> x + 1", range(10, 11)), ("3 -> 4", range(7, 11))],
)
def test_the_tests_of_a_statement_are_asked_before_those_of_its_file(
    tester, tmp_path, change, first
):
    path = tmp_path / "law.py"
    path.write_text(SOURCE)
    (mutant,) = [m for m in tester.mutants_of(path, "law.py") if m.change == change]
    assert next(tester.lines_around(SOURCE, mutant.number)) == first
    quick, slow, other = (
        tester.TestRun(seconds, {"law.py": [line]}) for seconds, line in ((1, 9), (2, 9), (0, 2))
    )
    runs = {"slow": slow, "quick": quick, "other": other}
    if change == "3 -> 4":  # no line of a test's own runs it, but its function's
        assert tester.nearest_tests(mutant, SOURCE, runs, 100.0) == ["quick", "slow"]
    else:
        slow.lines["law.py"] = [first[0]]
        assert tester.nearest_tests(mutant, SOURCE, runs, 100.0) == ["slow"]


@pytest.fixture
def small_tree(tester, tmp_path):
    """A package of one law, with a test that runs it and one that does not."""
    package = tmp_path / "src" / "gengs"
    for folder in ("", "distributions", "draws", "estimators"):
        (package / folder).mkdir(parents=True, exist_ok=True)
        (package / folder / "__init__.py").write_text("")
    (package / "distributions" / "law.py").write_text(SOURCE)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_law.py").write_text(
        "from gengs.distributions.law import f\n\ndef test_f():\n    assert f(5) == 4\n"
        "def test_nothing():\n    pass\n"
    )
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


@pytest.fixture
def judged(tester, small_tree, monkeypatch):
    """Run the whole program on the small tree, in a fork; its answer, and the outcomes."""

    def run():
        out = small_tree / "out.jsonl"
        monkeypatch.setattr(tester, "ROOT", small_tree)
        monkeypatch.setattr(sys, "argv", ["mutants", "--out", str(out)])
        for name in [name for name in sys.modules if name.split(".")[0] == "gengs"]:
            monkeypatch.delitem(sys.modules, name)
        answer = tester.in_fork(lambda: tester.main() == 0, 240.0)
        return answer, {m.change: outcome for m, outcome in tester.read_outcomes(out).items()}

    return run


@pytest.mark.slow
def test_a_change_that_a_test_sees_is_killed_and_the_tree_stays_as_it_is(judged, small_tree):
    answer, outcomes = judged()
    assert answer is True and sorted(outcomes) == sorted(EXPECTED)
    # the second is made when the file is imported, the others when the function is called
    seen = {"not flag -> flag", "True -> False", "x == 7 -> x != 7", "x - 1 -> x + 1", "1 -> 2"}
    seen |= {"x == 7 and flag -> x == 7 or flag"}
    assert {change for change, outcome in outcomes.items() if outcome.startswith("k")} == seen
    assert set(outcomes.values()) == {"killed (1 tests)", "survived (1 tests)"}
    assert (small_tree / "src/gengs/distributions/law.py").read_text() == SOURCE


@pytest.mark.slow
def test_tests_that_fail_without_a_change_kill_nothing(judged, small_tree):
    law = small_tree / "src/gengs/distributions/law.py"
    law.write_text(SOURCE.replace("x - 1", "x + 1"))
    _, outcomes = judged()
    assert set(outcomes.values()) == {"survived (1 tests)"}  # by the test that runs no line
