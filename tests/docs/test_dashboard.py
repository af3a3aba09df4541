"""The results page: every picture and every number comes out of a table in ``results/``."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
dashboard = runpy.run_path(str(ROOT / "docs" / "_ext" / "dashboard.py"))
QUESTION = re.compile(r"^```\{question\} (\S+)\n((?::\w+:[^\n]*\n)+)\n(.*?)^```", re.S | re.M)

TABLE = r"""
## First

| estimator | test |
| --- | ---: |
| **MidCDF** | **117.68 ± 0.46 (paper 120.5; n = 2)** |
| RF\\* | 1,131.5 ± 0.36 |
| ReinMax | 118.2 ± 0.3 |
| gone |  |

## Second

| case | ratio |
| --- | ---: |
| a \\| b | 1.24 to 1.26 |
"""


def questions():
    text = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    found = []
    for source, options, content in QUESTION.findall(text):
        given = dict(re.findall(r"^:(\w+):[ ]?(.*)$", options, re.M))
        found.append((source, given, " ".join(content.split("\n")).strip()))
    assert len(found) == text.count("```{question}") > 8
    return found


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "table.md"
    path.write_text(TABLE.replace("\\\\", "\\"))
    return path


def test_rows(table):
    rows = dashboard["read_rows"](table, "test")
    assert [(row.label, row.value, row.error, row.paper) for row in rows] == [
        ("MidCDF", 117.68, 0.46, 120.5),
        ("ReinMax", 118.2, 0.3, None),
        ("RF*", 1131.5, 0.36, None),
    ]
    (row,) = dashboard["read_rows"](table, "ratio", "Second")
    assert (row.label, row.text, row.low, row.high) == ("a | b", "1.24 to 1.26", 1.24, 1.26)
    with pytest.raises(ValueError, match="expected a column 'ratio'"):
        dashboard["read_rows"](table, "ratio", "First")


def test_ties_are_ties(table):
    rows = dashboard["read_rows"](table, "test")
    assert [row.label for row in dashboard["ties"](rows)] == ["MidCDF", "ReinMax"]
    assert [row.label for row in dashboard["ties"](rows, True)] == ["RF*"]
    text = dashboard["filled"]("{best} has {best value}, RF {RF*}", rows, False)
    assert text == "MidCDF has 117.68 ± 0.46 (a tie with ReinMax), RF 1,131.5 ± 0.36"
    with pytest.raises(ValueError, match="but got 'RF'"):
        dashboard["filled"]("{RF}", rows, False)


def test_the_picture_shows_every_number(table):
    rows = dashboard["read_rows"](table, "test")
    drawn = dashboard["picture"](rows, "nats", log=True, bold=rows[:1])
    assert all(row.text in drawn for row in rows)
    assert drawn.count('class="point"') == 3 and drawn.count('class="ring"') == 1
    assert re.findall(r'class="tick"[^>]*>([^<]*)<', drawn) == ["100", "1000", "10000", "nats"]
    assert drawn.count(" best") == 2


@pytest.mark.parametrize(("source", "options", "sentence"), questions())
def test_questions(source, options, sentence):
    typed = re.sub(r"\{[^}]+\}", "", sentence)
    assert not re.search(r"\d\.\d", typed), "a number that no table vouches for"
    assert options["command"]
    path = ROOT / "results" / source
    if path.exists():  # else the page says that it was not run
        keys = ("value", "table", "rows")
        rows = dashboard["read_rows"](path, *(options.get(key, "") for key in keys))
        assert len(rows) > 1
        numbers = re.findall(r"\d[\d,]*\.\d+", dashboard["filled"](sentence, rows, False))
        assert numbers and all(number in path.read_text(encoding="utf-8") for number in numbers)


def test_no_decade_is_cut():
    low, high, ticks = dashboard["decades"]([0.34, 0.9])
    assert (low, high) == (0.1, 1.0) and ticks == [0.1, 1.0]
    low, high, ticks = dashboard["round_ticks"](117.2, 139.0)
    assert low <= 117.2 < 139.0 <= high and ticks == [115, 120, 125, 130, 135, 140]
