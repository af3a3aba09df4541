"""The documentation's table of estimators says what the code says."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_it_is_up_to_date():
    tool = runpy.run_path(str(ROOT / "docs" / "estimator_table.py"))
    page = tool["PAGE"].read_text(encoding="utf-8")
    table = page.partition(tool["BEGIN"])[2].partition(tool["END"])[0]
    assert table and table == tool["estimator_table"](), "run: python docs/estimator_table.py"
