"""The README says what the code says."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parent.parent


def test_the_table_of_estimators_is_up_to_date():
    tool = runpy.run_path(str(ROOT / "docs" / "readme_table.py"))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    table = readme.partition(tool["BEGIN"])[2].partition(tool["END"])[0]
    assert table and table == tool["estimator_table"](), "run: python docs/readme_table.py"
