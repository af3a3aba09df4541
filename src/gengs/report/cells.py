"""A cell of a table: a number with its error, how many it is of, and the paper's beside it.

A table is data: the page, Markdown and LaTeX each write it in their own way. Numbers have as many
digits as their standard error allows.
"""

from __future__ import annotations

__all__ = [
    "Cell",
    "ReportTable",
    "TableColumn",
    "absent_cell",
    "number",
    "value_cell",
    "with_error",
]

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .run_results import RunResult
from .summaries import Summary, Verdict, published

SIGNS: dict[Verdict, str] = {"better": "▼", "worse": "▲", "within": "≈", "single": "○"}
"""A verdict without colour; less is better wherever the paper has a number."""

WORDS: dict[Verdict, str] = {
    "better": "better than the paper",
    "worse": "worse than the paper",
    "within": "within two standard errors of the paper",
    "single": "one run: no error to judge by",
}


@dataclass(frozen=True)
class Cell:
    """One cell: what is shown, and what sorting goes by."""

    text: str
    value: float | str | None = None
    count: int = 0
    paper: str = ""
    """The published number, or a dash where the paper has one for "no convergence"."""
    difference: str = ""
    verdict: Verdict | None = None
    note: str = ""
    best: bool = False
    """Whether it is the best of its column, or cannot be told from it."""

    @property
    def sign(self) -> str:
        """The verdict's sign."""
        return SIGNS[self.verdict] if self.verdict else ""

    @property
    def words(self) -> str:
        """The verdict in words."""
        return WORDS[self.verdict] if self.verdict else ""


@dataclass(frozen=True)
class TableColumn:
    """A column's head."""

    title: str
    numeric: bool = True


@dataclass(frozen=True)
class ReportTable:
    """A table with its title."""

    title: str
    columns: tuple[TableColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]
    choice: str = ""
    """What the table shows, where several show the same settings."""
    repeats: str = "runs"
    """What means are over."""
    compared: bool = False
    """Whether some number stands beside a published one."""
    best_among: str = "of a column"
    """What the best are the best of."""

    @property
    def common_count(self) -> int | None:
        """How many each number is the mean of, where they agree."""
        counts = {cell.count for row in self.rows for cell in row if cell.count}
        return counts.pop() if len(counts) == 1 else None

    @property
    def legend(self) -> str:
        """What ± and bold mean in it."""
        cells = [cell for row in self.rows for cell in row]
        parts = []
        if any("±" in cell.text for cell in cells):
            parts.append("Mean ± one standard error.")
        if any(cell.best for cell in cells):
            parts.append(f"Bold: the best {self.best_among}, and all within two standard errors.")
        return " ".join(parts)


def value_cell(summary: Summary, best: bool = False, with_paper: bool = True) -> Cell:
    """Mean ± error, and how it stands to the paper's number."""
    paper = published(summary.setting, summary.metric)[1] if with_paper else ""
    if not summary.count:
        return Cell("diverged", None, paper=paper, note=f"{summary.lost} not finite")
    return Cell(
        with_error(summary.mean, summary.error, summary.metric.digits),
        summary.mean,
        summary.count,
        paper,
        "" if summary.difference is None else _signed(summary.difference),
        summary.verdict,
        f"{summary.lost} not finite" if summary.lost else "",
        best,
    )


def absent_cell(runs: Sequence[RunResult], paper: str = "", reason: str = "") -> Cell:
    """Why there is no number."""
    states = {run.state for run in runs}
    for state in ("failed", "damaged", "different", "running", "unfinished", "waiting"):
        if state in states:
            return Cell(state, None, note=state, paper=paper)
    return Cell("–", paper=paper, note=reason)


def number(value: float) -> str:
    """Three digits, all before the point.

    Example:
        >>> number(12345.6), number(-0.012345), number(float("nan"))
        ('12,346', '−0.0123', 'nan')
    """
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}"
    return text.replace("-", "−")


def with_error(value: float, error: float | None, digits: int | None = None) -> str:
    """A value and its standard error, to the same place: one digit of it, two if the first is 1, 2.

    Args:
        value: The value.
        error: Its standard error, where there is one.
        digits: Digits after the point where there is none; by default three significant ones.

    Example:
        >>> with_error(117.4512, 0.5234), with_error(117.4512, None, 2)
        ('117.5 ± 0.5', '117.45')
    """
    if error is None or not 0 < error < math.inf:
        return number(value) if digits is None else f"{value:,.{digits}f}".replace("-", "−")
    exponent = math.floor(math.log10(error))
    shown = max(0, (1 if error < 3 * 10.0**exponent else 0) - exponent)
    text = f"{round(value, shown) + 0.0:,.{shown}f} ± {error:,.{shown}f}"  # no -0.0
    return text.replace("-", "−")


def _signed(value: float) -> str:
    """With its sign, a real minus."""
    return f"{value:+,.{2 if abs(value) < 100 else 0}f}".replace("-", "−")
