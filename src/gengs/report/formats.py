"""The report's tables as Markdown, as LaTeX, and its numbers as CSV.

CSV is tidy: a row for each number, with its error, the number of runs and the paper's value.
"""

from __future__ import annotations

__all__ = ["FORMATS", "as_csv", "as_latex", "as_markdown"]

import csv
import io
import re
from collections.abc import Callable

from .cells import Cell, ReportTable
from .contents import Contents

_HEADS = (
    *("experiment", "table", "data", "row", "column", "metric"),
    *("mean", "standard_error", "runs", "not_finite", "paper", "difference", "verdict"),
)


def as_csv(contents: Contents) -> str:
    """Every number with all its digits, one a line."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(_HEADS)
    for section in contents.sections:
        for one in section.summaries:
            place = one.setting
            labels = (place.experiment, place.table, place.data, place.row, place.column)
            numbers = (one.mean, one.error, one.count, one.lost, one.paper, one.difference)
            row = [*map(_inert, labels), one.metric.key, *map(_blank, numbers), one.verdict or ""]
            writer.writerow(row)
    return file.getvalue()


def as_markdown(contents: Contents) -> str:
    """The tables under the headings of the page."""
    lines = [f"# {_markdown(contents.title)}", ""]
    for study in contents.studies:
        budget = f", budget {_markdown(study.budget)}" if study.budget else ""
        done, total = study.count("done"), len(study.runs)
        lines += [f"{_markdown(study.name)}{budget}: {done} of {total} runs done.", ""]
    for section in contents.sections:
        lines += [f"## {_markdown(section.title)}", ""]
        for problem in section.problems:
            lines += [f"{_markdown(problem)}.", ""]
        for table in section.tables:
            lines += [f"### {_markdown(_heading(table))}", "", *_markdown_table(table), ""]
    unfinished = [run for run in contents.runs if run.state != "done"]
    if unfinished:
        lines += ["## Runs that are not done", ""]
        for run in unfinished:
            error = f": {_markdown(run.error)}" if run.error else ""
            lines.append(f"- {_markdown(run.id)}, {run.state}{error}")
        lines.append("")
    return "\n".join(lines)


def as_latex(contents: Contents) -> str:
    """The tables with booktabs rules."""
    lines = ["% \\usepackage{booktabs}"]
    for section in contents.sections:
        for table in section.tables:
            lines += ["", *_latex_table(table, f"{section.title}: {_heading(table)}")]
    return "\n".join(lines) + "\n"


FORMATS: dict[str, Callable[[Contents], str]] = {
    "markdown": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
}
"""The writers by name."""


def _heading(table: ReportTable) -> str:
    return f"{table.title}: {table.choice}" if table.choice else table.title


def _shown(cell: Cell) -> str:
    """The cell's text with what small print says on the page."""
    parts = [cell.text]
    small = []
    if cell.paper:
        small.append(f"paper {cell.paper}")
    if cell.verdict:
        small.append(f"{cell.sign} {cell.difference}")
    if cell.note and cell.note != cell.text:
        small.append(cell.note)
    if cell.count:
        small.append(f"n = {cell.count}")
    if small and len(parts[0]):
        parts.append(f"({'; '.join(small)})")
    return " ".join(parts)


def _markdown_table(table: ReportTable) -> list[str]:
    heads = [_markdown(column.title) for column in table.columns]
    rules = ["---:" if column.numeric else "---" for column in table.columns]
    lines = [_row(heads), _row(rules)]
    for row in table.rows:
        cells = [_markdown(_shown(cell)) for cell in row]
        bold = [f"**{t}**" if c.best else t for c, t in zip(row, cells, strict=True)]
        lines.append(_row(bold))
    return lines


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    flat = " ".join(text.split())
    return re.sub(r"([\\`*_{}\[\]<>#|!~$&])", r"\\\1", flat)


def _latex_table(table: ReportTable, caption: str) -> list[str]:
    columns = "".join("r" if column.numeric else "l" for column in table.columns)
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(caption)}}}",
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        " & ".join(_latex(column.title) for column in table.columns) + r" \\",
        r"\midrule",
    ]
    for row in table.rows:
        cells = [_latex(_shown(cell)) for cell in row]
        bold = [rf"\textbf{{{t}}}" if c.best else t for c, t in zip(row, cells, strict=True)]
        lines.append(" & ".join(bold) + r" \\")
    return [*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"]


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "%": r"\%",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "±": r"$\pm$",
    "−": r"$-$",
    "▼": r"$\blacktriangledown$",
    "▲": r"$\blacktriangle$",
    "≈": r"$\approx$",
    "○": r"$\circ$",
    "–": "--",
}


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in " ".join(text.split()))


def _inert(text: str) -> str:
    """A spreadsheet runs a cell that begins like a formula: an apostrophe makes it text."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def _blank(value: float | int | None) -> str:
    return "" if value is None else repr(value)
