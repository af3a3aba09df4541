"""A cell of a table: a number with its error, how many it is of, and the paper's beside it.

A table is data: the page, Markdown and LaTeX each write it in their own way.
"""

from __future__ import annotations

__all__ = ["Cell", "Column", "ReportTable", "absent_cell", "published_text", "value_cell"]

from collections.abc import Sequence
from dataclasses import dataclass

from .metrics import Metric
from .numbers import number, signed, with_error
from .runs import Run
from .settings import Setting
from .summaries import Summary, Verdict, is_dash, published

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

    @property
    def sign(self) -> str:
        """The verdict's sign."""
        return SIGNS[self.verdict] if self.verdict else ""

    @property
    def words(self) -> str:
        """The verdict in words."""
        return WORDS[self.verdict] if self.verdict else ""


@dataclass(frozen=True)
class Column:
    """A column's head."""

    title: str
    numeric: bool = True


@dataclass(frozen=True)
class ReportTable:
    """A table with its title."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    choice: str = ""
    """What the table shows, where several show the same settings."""
    repeats: str = "runs"
    """What means are over."""
    compared: bool = False
    """Whether some number stands beside a published one."""


def value_cell(summary: Summary, best: bool = False, with_paper: bool = True) -> Cell:
    """Mean ± error, and how it stands to the paper's number."""
    paper = published_text(summary.setting, summary.metric) if with_paper else ""
    if not summary.count:
        return Cell("diverged", None, paper=paper, note=f"{summary.lost} not finite")
    text = with_error(summary.mean, summary.error, summary.metric.digits)
    if summary.error is None and summary.metric.digits is None:
        text = number(summary.mean)
    difference = "" if summary.difference is None else signed(summary.difference)
    return Cell(
        text.replace("-", "−"),
        summary.mean,
        summary.count,
        paper,
        difference,
        summary.verdict,
        f"{summary.lost} not finite" if summary.lost else "",
        best,
    )


def published_text(setting: Setting, metric: Metric) -> str:
    """The paper's number with the paper's digits."""
    number = published(setting) if metric.published else None
    if number is not None:
        return f"{number:,.{metric.digits or 0}f}"
    return "—" if metric.published and is_dash(setting) else ""


def absent_cell(runs: Sequence[Run], paper: str = "") -> Cell:
    """Why there is no number."""
    states = {run.state for run in runs}
    for state in ("failed", "damaged", "different", "running", "unfinished", "waiting"):
        if state in states:
            return Cell(state, None, note=state, paper=paper)
    return Cell("–", paper=paper)
