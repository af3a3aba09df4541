"""The report's tables as Markdown, as LaTeX, and its numbers as CSV.

CSV is tidy: a row for each number, with its error, the number of runs and the paper's value.
"""

from __future__ import annotations

__all__ = ["FORMATS", "as_csv", "as_latex", "as_markdown", "markdown_table"]

import csv
import io
import re
from collections.abc import Callable

from ..runs.sanitise import printable, spreadsheet_cell
from .cells import Cell, ReportTable
from .contents import Contents

_HEADS = (
    *("experiment", "table", "data", "condition", "estimator", "metric"),
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
            labels = (place.experiment, place.table, place.data, place.condition, place.estimator)
            numbers = (one.mean, one.error, one.count, one.lost, one.paper, one.difference)
            words = map(spreadsheet_cell, (*labels, one.metric.key))
            writer.writerow([*words, *map(_blank, numbers), one.verdict or ""])
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
            lines += [f"### {_markdown(_heading(table))}", "", markdown_table(table)]
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


def markdown_table(table: ReportTable) -> str:
    """One table, and below it what ± and bold mean."""
    heads = [_markdown(column.title) for column in table.columns]
    rules = ["---:" if column.numeric else "---" for column in table.columns]
    lines = [_row(heads), _row(rules)]
    for row in table.rows:
        cells = [_markdown(_shown(cell, table)) for cell in row]
        bold = [f"**{t}**" if c.best else t for c, t in zip(row, cells, strict=True)]
        lines.append(_row(bold))
    return "\n".join([*lines, "", *([table.legend, ""] if table.legend else [])])


def _heading(table: ReportTable) -> str:
    words = f"{table.title}: {table.choice}" if table.choice else table.title
    if table.choice and table.common_count:
        repeats = table.repeats[:-1] if table.common_count == 1 else table.repeats
        words += f", {table.common_count:,} {repeats} each"
    return words


def _shown(cell: Cell, table: ReportTable) -> str:
    """The cell's text with what small print says on the page."""
    small = []
    if cell.paper:
        small.append(f"paper {cell.paper}")
    if cell.verdict:
        small.append(f"{cell.sign} {cell.difference}")
    if cell.note and cell.note != cell.text:
        small.append(cell.note)
    if cell.count and not table.common_count:
        small.append(f"n = {cell.count}")
    return f"{cell.text} ({'; '.join(small)})" if small and cell.text else cell.text


def _row(cells: list[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    flat = printable(" ".join(text.split()))
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
        cells = [_latex(_shown(cell, table)) for cell in row]
        bold = [rf"\textbf{{{t}}}" if c.best else t for c, t in zip(row, cells, strict=True)]
        lines.append(" & ".join(bold) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    lines += [r"\par\smallskip\footnotesize " + _latex(table.legend)] if table.legend else []
    return [*lines, r"\end{table}"]


_WORDS = ["backslash", "asciitilde", "asciicircum", "bar", "less", "greater"]
_MATHS = [r"\pm", r"-", r"\blacktriangledown", r"\blacktriangle", r"\approx", r"\circ"]
_LATEX = {character: f"\\{character}" for character in "{}$&%#_"} | {"–": "--"}
_LATEX |= {sign: rf"\text{word}{{}}" for sign, word in zip(r"\~^|<>", _WORDS, strict=True)}
_LATEX |= {sign: f"${word}$" for sign, word in zip("±−▼▲≈○", _MATHS, strict=True)}


def _latex(text: str) -> str:
    flat = printable(" ".join(text.split()))
    return "".join(_LATEX.get(character, character) for character in flat)


def _blank(value: float | int | None) -> str:
    return "" if value is None else repr(value)
