"""The paper's Figure 3, from the records of a run of ``gengs synthetic``.

====================  ==========================================================================
figure.png, .svg      loss, variance and both kinds of bias over the descent
figure.html           the report of this run, where estimators can be hidden and shown
table.md, table.csv   the last parameters in numbers
====================  ==========================================================================
"""

from __future__ import annotations

__all__ = ["show_figure3", "write_figure3"]

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas

from ..lab.palette import Look, full_decades, legend_handles, looks
from ..runs.atomic import write_atomically
from ..runs.sanitise import printable, spreadsheet_cell
from .cells import ReportTable
from .contents import contents_of
from .curves import PANELS, Band, descent_curves
from .html_page import render_page
from .run_results import StudyResults, load_run
from .summaries import Summary
from .text_formats import markdown_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_NOTE = (
    "Moving averages; bands: two standard errors over the seeds. "
    "A bias is drawn where it is more than four standard errors from zero."
)


def show_figure3(folder: Path, as_json: bool = False) -> None:
    """Write figures and tables into a run's folder, and print the table, or its rows as JSON."""
    rows, table = write_figure3(folder)
    if as_json:
        print(json.dumps({"folder": str(folder), "rows": rows}, indent=2))
        return
    _print_table(table)
    print(f"Figures, table and records: {printable(folder.resolve())}")


def write_figure3(folder: Path) -> tuple[list[dict[str, Any]], ReportTable]:
    """Write figures and tables into a run's folder; the table's rows in full and as it is shown."""
    run = replace(load_run(folder, folder.name), state="done")  # it may still hold its lock
    law = str(run.config["law"]).replace("-", " ").capitalize()
    title = f"{law} · {run.config['steps']} steps · {run.config['seeds']} seeds"
    contents = contents_of([StudyResults(run.id, None, (run,))], title)
    (section,) = contents.sections
    figure = draw_descents(descent_curves(run.records, int(run.config["window"])), title)
    for suffix, options in (("png", {"dpi": 120}), ("svg", {"metadata": {"Date": None}})):
        image = io.BytesIO()
        figure.savefig(image, format=suffix, **options)
        write_atomically(folder / f"figure.{suffix}", image.getvalue())
    command = str(run.manifest.get("command", "gengs synthetic"))
    write_atomically(folder / "figure.html", render_page(contents, command).encode())
    rows = _rows(section.summaries)
    order = {row["estimator"]: place for place, row in enumerate(rows)}
    # the number of seeds, in the second column, is in the title
    heads = section.table.columns[:1] + section.table.columns[2:]
    cells = sorted(section.table.rows, key=lambda row: order[row[0].text])
    table = replace(
        section.table, title=title, columns=heads, rows=tuple(row[:1] + row[2:] for row in cells)
    )
    write_atomically(folder / "table.md", markdown_table(table).encode())
    frame = pandas.DataFrame(rows)
    frame["estimator"] = frame["estimator"].map(spreadsheet_cell)
    write_atomically(folder / "table.csv", frame.to_csv(index=False).encode())
    return rows, table


def draw_descents(curves: Mapping[str, Mapping[str, Band]], title: str) -> Figure:
    """The panels on log scales, with bands of two standard errors, and a legend by kind."""
    from matplotlib.figure import Figure

    found = looks(curves)
    panels = [panel for panel in PANELS if any(panel in bands for bands in curves.values())]
    figure = Figure(figsize=(12.5, 7.6), layout="constrained")
    grid = figure.subplots(2, (len(panels) + 1) // 2, sharex=True, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    for axes, panel in zip(grid.flat, panels, strict=False):
        for label, look in found.items():
            if panel in curves[label]:
                _draw(axes, curves[label][panel], panel, look)
        _scales(axes)
        axes.set_title(PANELS[panel], fontsize=10, loc="left")
        axes.set_xlabel("step (square-root scale)", fontsize=9)
        axes.grid(alpha=0.25, lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8, which="both", labelbottom=True)
    named = {
        label if "error" in curves[label] else f"{label} (another objective)": look
        for label, look in found.items()
    }
    figure.legend(
        handles=legend_handles(named),
        loc="outside right upper",
        fontsize=8.5,
        frameon=False,
        handlelength=2.6,
        labelspacing=0.35,
    )
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.supxlabel(_NOTE, fontsize=8, color="0.4", x=0.01, ha="left")
    return figure


def _draw(axes: Any, band: Band, panel: str, look: Look) -> None:
    axes.plot(band.step, band.mean, zorder=3 + look.width, **look.line)
    if panel != "bias":
        shade = {"color": look.colour, "alpha": 0.14 if look.width > 2 else 0.035, "lw": 0}
        axes.fill_between(band.step, band.low, band.high, zorder=2 + look.width, **shade)


def _scales(axes: Any) -> None:
    """A log scale; along the steps a square root, as most happens early."""
    axes.set_xscale("function", functions=(_root, np.square))
    last = max(line.get_xdata()[-1] for line in axes.lines)
    ticks = sorted({round(last * share) for share in (0, 0.025, 0.1, 0.25, 0.5, 0.75, 1)})
    axes.set_xticks(ticks, [str(tick) for tick in ticks])
    axes.set_xlim(0, last)
    axes.set_yscale("log")
    full_decades(axes, "y")


def _root(step: Any) -> Any:
    return np.sqrt(np.maximum(step, 0))


def _rows(summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """One row for each estimator, the smallest loss first, with standard errors as ``_se``.

    ``excess`` is the exact loss minus its minimum, over the last quarter of the steps; the rest is
    measured at the last parameters: ``bias`` is the distance of the mean gradient from the exact
    one, ``error`` the mean distance of a single gradient.
    """
    names = ("excess", "variance", "bias", "error", "evaluations", "milliseconds")
    found: dict[str, dict[str, Any]] = {}
    for one in summaries:
        found.setdefault(one.setting.estimator, {})[one.metric.key] = one
    rows = []
    for label, metrics in found.items():
        row: dict[str, Any] = {"estimator": label}
        for name in names:
            row[name] = metrics[name].mean if name in metrics else None
            if name not in ("evaluations", "milliseconds"):
                row[f"{name}_se"] = metrics[name].error if name in metrics else None
        row["evaluations"] = int(row["evaluations"])
        rows.append(row)
    return sorted(rows, key=lambda row: row["excess"])


def _print_table(table: ReportTable) -> None:
    """Print it; what is bold elsewhere has a star here, as colours get lost in a file."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    notes = {cell.note: cell.text for row in table.rows for cell in row if cell.note}
    legend = [
        table.legend.replace("Bold", "*"),
        *(f"{sign}: {why}." for why, sign in notes.items()),
    ]
    shown = Table(
        title=table.title,
        title_justify="left",
        caption=" ".join(legend),
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
    )
    starred = [any(cell.best for cell in cells) for cells in zip(*table.rows, strict=True)]
    for column, star in zip(table.columns, starred, strict=True):
        side: Any = "right" if column.numeric else "left"
        title = column.title.replace("error of one", "error of a")
        shown.add_column(title + " " * star, justify=side, overflow="fold")
    for row in table.rows:
        cells = []
        for column, cell, star in zip(table.columns, row, starred, strict=True):
            biased = column.title == "|bias|" and cell.value is not None and not cell.best
            text = cell.text.replace(" ± ", "±") + " *"[cell.best] * star
            cells.append(Text(text, "red" if biased else "bold" if cell.best else ""))
        shown.add_row(*cells)
    Console().print(shown)
