"""The report's tables as Markdown, as LaTeX, and its numbers as CSV.

CSV is tidy: a row for each number, with its error, the number of runs and the paper's value.
"""

from __future__ import annotations

__all__ = ["FORMATS", "as_csv", "as_latex", "as_markdown", "markdown_table"]

import csv
import io
import re
from collections.abc import Callable
from dataclasses import astuple

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
    writer = csv.writer(file, lineterminator="\n")  # which writes nothing for None
    writer.writerow(_HEADS)
    for section in contents.sections:
        for one in section.summaries:
            words = map(spreadsheet_cell, (*astuple(one.setting), one.metric.key))
            numbers = (one.mean, one.error, one.count, one.lost, one.paper, one.difference)
            writer.writerow([*words, *numbers, one.verdict])
    return file.getvalue()


def as_markdown(contents: Contents) -> str:
    """The tables under the headings of the page."""
    lines = [f"# {_markdown(contents.title)}", ""]
    for study in contents.studies:
        budget = f", budget {_markdown(study.budget)}" if study.budget else ""
        done, total = study.count("done"), len(study.runs)
        lines += [f"{_markdown(study.name)}{budget}: {done} of {total} runs done.", ""]
    for section in contents.sections:
        lines += [f"## {_markdown(section.view.title)}", ""]
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
            lines += ["", *_latex_table(table, f"{section.view.title}: {_heading(table)}")]
    return "\n".join(lines) + "\n"


FORMATS: dict[str, Callable[[Contents], str]] = {
    "markdown": as_markdown,
    "csv": as_csv,
    "latex": as_latex,
}
"""The writers by name."""


def markdown_table(table: ReportTable) -> str:
    """One table, and below it what ± and bold mean."""
    rules = ["---"] * table.labels + ["---:"] * (len(table.columns) - table.labels)
    rows = [[_markdown(name) for name in table.columns], rules, *_texts(table, _markdown, "**{}**")]
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([*lines, "", *([table.legend, ""] if table.legend else [])])


def _heading(table: ReportTable) -> str:
    return f"{table.title}: {table.choice}{table.each}" if table.choice else table.title


def _texts(table: ReportTable, escape: Callable[[str], str], bold: str) -> list[list[str]]:
    return [
        [(bold if cell.best else "{}").format(escape(_shown(cell, table))) for cell in row]
        for row in table.rows
    ]


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


def _markdown(text: str) -> str:
    """Text that Markdown shows as it is, on one line."""
    flat = printable(" ".join(text.split()))
    return re.sub(r"([\\`*_{}\[\]<>#|!~$&])", r"\\\1", flat)


def _latex_table(table: ReportTable, caption: str) -> list[str]:
    columns = "l" * table.labels + "r" * (len(table.columns) - table.labels)
    rows = [list(map(_latex, table.columns)), *_texts(table, _latex, r"\textbf{{{}}}")]
    heads, *body = (" & ".join(row) + r" \\" for row in rows)
    lines = [r"\begin{table}", r"\centering", rf"\caption{{{_latex(caption)}}}"]
    lines += [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", heads, r"\midrule", *body]
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
