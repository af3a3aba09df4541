"""A cell of a table: a number with its error, how many it is of, and the paper's beside it.

A table is data: the page, Markdown and LaTeX each write it in their own way. Numbers have as many
digits as their standard error allows.
"""

from __future__ import annotations

__all__ = ["Cell", "ReportTable", "absent_cell", "value_cell", "with_error"]

import math
from collections.abc import Sequence
from dataclasses import dataclass

from .run_results import RunResult
from .summaries import Summary, Verdict, published

_VERDICTS: dict[Verdict | None, tuple[str, str]] = {
    "better": ("▼", "better than the paper"),
    "worse": ("▲", "worse than the paper"),
    "within": ("≈", "within two standard errors of the paper"),
    "single": ("○", "one run: no error to judge by"),
    None: ("", ""),
}
"""A verdict as a sign (less is better wherever the paper has a number) and in words."""


@dataclass(frozen=True)
class Cell:
    """One cell: what is shown, and what sorting goes by."""

    text: str
    value: float | str | None = None
    count: int = 0
    paper: str = ""  # the published number, or a dash where the paper has one for "no convergence"
    difference: str = ""
    verdict: Verdict | None = None
    note: str = ""
    best: bool = False  # whether it is the best of its column, or cannot be told from it

    @property
    def sign(self) -> str:
        return _VERDICTS[self.verdict][0]

    @property
    def words(self) -> str:
        return _VERDICTS[self.verdict][1]


@dataclass(frozen=True)
class ReportTable:
    """A table with its title."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    labels: int = 1  # how many columns are names; the others are numbers
    choice: str = ""  # what the table shows, where several show the same settings
    repeats: str = "runs"  # what means are over
    compared: bool = False  # whether some number stands beside a published one
    best_among: str = "of a column"  # what the best are the best of

    @property
    def common_count(self) -> int | None:
        """How many each number is the mean of, where they agree."""
        counts = {cell.count for row in self.rows for cell in row if cell.count}
        return counts.pop() if len(counts) == 1 else None

    @property
    def each(self) -> str:
        """The same in words."""
        if not (count := self.common_count):
            return ""
        return f", {count:,} {self.repeats[:-1] if count == 1 else self.repeats} each"

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
    note = f"{summary.lost} not finite" if summary.lost else ""
    if not summary.count:
        return Cell("diverged", paper=paper, note=note)
    difference = ""
    if (by := summary.difference) is not None:
        difference = _minus(f"{by:+,.{2 if abs(by) < 100 else 0}f}")
    text = with_error(summary.mean, summary.error, summary.metric.digits)
    verdict = summary.verdict
    return Cell(text, summary.mean, summary.count, paper, difference, verdict, note, best)


def absent_cell(runs: Sequence[RunResult], paper: str = "", reason: str = "") -> Cell:
    """Why there is no number."""
    states = {run.state for run in runs}
    for state in ("failed", "damaged", "different", "running", "unfinished", "waiting"):
        if state in states:
            return Cell(state, note=state, paper=paper)
    return Cell("–", note=reason, paper=paper)


def with_error(value: float, error: float | None, digits: int | None = None) -> str:
    """A value and its standard error, to the same place: one digit of it, two if the first is 1, 2.

    Without an error, so many ``digits`` after the point, or three significant ones.

    Example:
        >>> with_error(117.4512, 0.5234), with_error(117.4512, None, 2), with_error(-0.012345, None)
        ('117.5 ± 0.5', '117.45', '−0.0123')
    """
    if error is not None and 0 < error < math.inf:
        exponent = math.floor(math.log10(error))
        digits = max(0, (1 if error < 3 * 10.0**exponent else 0) - exponent)
        return _minus(f"{round(value, digits) + 0.0:,.{digits}f} ± {error:,.{digits}f}")  # no -0.0
    if digits is None:
        return _minus(f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}")
    return _minus(f"{value:,.{digits}f}")


def _minus(text: str) -> str:
    return text.replace("-", "−")
