"""What a synthetic run shows: figures (PNG, SVG, a page to play with) and tables, in its folder."""

from __future__ import annotations

__all__ = ["write_report"]

from pathlib import Path
from typing import Any

from ..study.json_lines import JsonLines
from ..study.records import RunFolder
from .synthetic_curves import curves
from .synthetic_figure import draw_descents
from .synthetic_page import interactive_descents
from .synthetic_table import as_csv, as_markdown, rows


def write_report(folder: Path, window: int, title: str) -> list[dict[str, Any]]:
    """Draw and tabulate the records of a run; the rows of the table."""
    records = RunFolder.load_records(folder)
    drawn = curves(records, window)
    figure = draw_descents(drawn, title)
    figure.savefig(folder / "figure.png", dpi=120)
    figure.savefig(folder / "figure.svg", metadata={"Date": None})
    (folder / "figure.html").write_text(interactive_descents(drawn, title), encoding="utf-8")
    timings = JsonLines.read(folder / "timings.jsonl")
    times = {line["estimator"]: float(line["milliseconds"]) for line in timings}
    table = rows(records, times)
    (folder / "table.md").write_text(as_markdown(table), encoding="utf-8")
    (folder / "table.csv").write_text(as_csv(table), encoding="utf-8")
    return table
