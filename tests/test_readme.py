"""The README says what the code says."""

from pathlib import Path

from gengs.report.readme import BEGIN, END, estimator_table

README = Path(__file__).parent.parent / "README.md"


def test_the_table_of_estimators_is_up_to_date():
    table = README.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    assert table == estimator_table(), "run: python -m gengs.report.readme"
