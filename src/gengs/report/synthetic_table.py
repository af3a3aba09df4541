"""The table of a synthetic run: for the terminal, for a page, for a spreadsheet."""

from __future__ import annotations

__all__ = ["as_csv", "as_markdown", "print_table", "rows"]

import csv
import io
import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from .numbers import number, with_error

_HEADINGS = ("estimator", "loss − min", "variance", "|bias|", "error", "evals", "ms")


def rows(
    records: Sequence[Mapping[str, Any]], times: Mapping[str, float]
) -> list[dict[str, float | int | str | None]]:
    """One row for each estimator, the smallest loss first.

    ``excess`` is the exact loss minus its minimum, over the last quarter of the steps; the rest is
    measured at the last parameters: ``bias`` is the distance of the mean gradient from the exact
    one, ``bias_ci`` two of its standard errors, ``error`` the mean distance of a single gradient.

    Args:
        records: Of a run.
        times: Milliseconds of one gradient and its step, by estimator.
    """
    found = []
    for record in records:
        if not record.get("last"):
            continue
        bias = record.get("bias")
        found.append(
            {
                "estimator": record["estimator"],
                "excess": record["excess"],
                "excess_se": record["excess_se"],
                "variance": record["variance"],
                "bias": None if bias is None else math.hypot(*bias),
                "bias_ci": None if bias is None else 2 * record["bias_se"],
                "error": record.get("error"),
                "evaluations": record["evaluations"],
                "milliseconds": times.get(record["estimator"]),
            }
        )
    return sorted(found, key=lambda row: row["excess"])


def print_table(table: Sequence[Mapping[str, Any]], title: str) -> None:
    """Print it; a bias that is more than noise is red."""
    from rich import box
    from rich.console import Console
    from rich.table import Table

    shown = Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    for heading in _HEADINGS:
        justify: Literal["left", "right"] = "left" if heading == "estimator" else "right"
        shown.add_column(heading, justify=justify, no_wrap=True)
    for row in table:
        cells = _cells(row)
        if _biased(row):
            cells[3] = f"[red]{cells[3]}[/red]"
        shown.add_row(*cells)
    Console().print(shown)


def as_markdown(table: Sequence[Mapping[str, Any]]) -> str:
    """A Markdown table; a bias that is more than noise is bold."""
    lines = ["| " + " | ".join(_HEADINGS).replace("|bias|", r"\|bias\|") + " |"]
    lines.append("| --- |" + " ---: |" * (len(_HEADINGS) - 1))
    for row in table:
        cells = _cells(row)
        cells[0] = cells[0].replace("*", r"\*")
        if _biased(row):
            cells[3] = f"**{cells[3]}**"
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def as_csv(table: Sequence[Mapping[str, Any]]) -> str:
    """All digits, comma-separated."""
    file = io.StringIO()
    writer = csv.DictWriter(file, fieldnames=list(table[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(table)
    return file.getvalue()


def _biased(row: Mapping[str, Any]) -> bool:
    return row["bias"] is not None and row["bias"] > row["bias_ci"]


def _cells(row: Mapping[str, Any]) -> list[str]:
    time = row["milliseconds"]
    return [
        row["estimator"],
        with_error(row["excess"], row["excess_se"]),
        number(row["variance"]),
        "—" if row["bias"] is None else with_error(row["bias"], row["bias_ci"]),
        "—" if row["error"] is None else number(row["error"]),
        str(row["evaluations"]),
        "—" if time is None else f"{time:.1f}",
    ]
