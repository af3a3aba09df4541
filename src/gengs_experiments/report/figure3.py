"""The paper's Figure 3, from the records of a run of ``gengs synthetic``.

====================  ==========================================================================
figure.png, .svg      loss, variance and both kinds of bias over the descent
figure.html           the report of this run, where estimators can be hidden and shown
table.md, table.csv   the last parameters in numbers
====================  ==========================================================================
"""

from __future__ import annotations

__all__ = ["show_figure3"]

import io
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas
from rich.console import Console
from rich.markdown import Markdown

from gengs.lab.palette import full_decades, legend_handles, looks

from ..runs.atomic import write_atomically
from ..runs.sanitise import printable, spreadsheet_cell
from .contents import contents_of
from .curves import PANELS, Band, descent_curves
from .rendering import markdown_table, render_page
from .run_results import StudyResults, load_run
from .summaries import Summary

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLUMNS = (
    *("estimator", "excess", "excess_se", "variance", "variance_se", "bias", "bias_se"),
    *("error", "error_se", "evaluations", "milliseconds"),
)
_NOTE = (
    "Moving averages; bands: two standard errors over the seeds. "
    "A bias is drawn where it is more than four standard errors from zero."
)


def show_figure3(folder: Path, as_json: bool = False) -> None:
    """Write figures and tables into a run's folder, and print the table, or its rows as JSON."""
    run = replace(load_run(folder), state="done")  # it may still hold its lock
    law = str(run.config["law"]).replace("-", " ").capitalize()
    title = f"{law} · {run.config['steps']} steps · {run.config['seeds']} seeds"
    contents = contents_of([StudyResults(run.id, None, (run,))], title)
    (section,) = contents.sections
    figure = draw_descents(descent_curves(run.records, int(run.config["window"])), title)
    for suffix, options in (("png", {"dpi": 120}), ("svg", {"metadata": {"Date": None}})):
        image = io.BytesIO()
        figure.savefig(image, format=suffix, **options)
        write_atomically(folder / f"figure.{suffix}", image.getvalue())
    rows = _rows(section.summaries)
    # as the rows, by the loss in the third column; the seeds in the second are in the title
    shown = sorted(section.table.rows, key=lambda row: float(row[2].value or 0))
    heads, cells = section.table.columns, tuple(row[:1] + row[2:] for row in shown)
    table = replace(section.table, title=title, columns=heads[:1] + heads[2:], rows=cells)
    frame = pandas.DataFrame(rows)
    frame["estimator"] = frame["estimator"].map(spreadsheet_cell)
    command = str(run.manifest.get("command", "gengs synthetic"))
    markdown = markdown_table(table)
    for name, text in {
        "figure.html": render_page(contents, command),
        "table.md": markdown,
        "table.csv": frame.to_csv(index=False),
    }.items():
        write_atomically(folder / name, text.encode())
    if as_json:
        print(json.dumps({"folder": str(folder), "rows": rows}, indent=2))
        return
    text = f"{title}\n\n{markdown.rstrip()}"
    for note, sign in {cell.note: cell.text for cell in table.cells if cell.note}.items():
        text = text.replace(f"{sign} ({note})", sign) + f" {sign}: {note}."  # columns stay narrow
    text = re.sub(r"(?<=\d) ± ", "±", text.replace("Bold", "**Bold**"))
    # what is bold has a star, too: in a file all letters are alike
    Console().print(Markdown(re.sub(r"\*\*(.+?)\*\*", r"**\1**\\*", text)))
    print(f"Figures, table and records: {printable(folder.resolve())}")


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
        drawn = [
            (curves[name][panel], look) for name, look in found.items() if panel in curves[name]
        ]
        for band, look in drawn:
            axes.plot(band.step, band.mean, zorder=3 + look.width, **look.line)
            if len(band.low):
                shade = {"color": look.colour, "alpha": 0.14 if look.width > 2 else 0.035, "lw": 0}
                axes.fill_between(band.step, band.low, band.high, zorder=2 + look.width, **shade)
        # a log scale; along the steps a square root, as most happens early
        axes.set_xscale("function", functions=(lambda x: np.sqrt(np.maximum(x, 0)), np.square))
        last = max(band.step[-1] for band, _ in drawn)
        ticks = sorted({round(last * share) for share in (0, 0.025, 0.1, 0.25, 0.5, 0.75, 1)})
        axes.set_xticks(ticks, [str(tick) for tick in ticks])
        axes.set_xlim(0, last)
        axes.set_yscale("log")
        full_decades(axes, "y")
        axes.set_title(PANELS[panel], fontsize=10, loc="left")
        axes.set_xlabel("step (square-root scale)", fontsize=9)
        axes.grid(alpha=0.25, lw=0.6)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=8, which="both", labelbottom=True)
    named = {
        label if "error" in curves[label] else f"{label} (another objective)": look
        for label, look in found.items()
    }
    style = {"fontsize": 8.5, "frameon": False, "handlelength": 2.6, "labelspacing": 0.35}
    figure.legend(handles=legend_handles(named), loc="outside right upper", **style)
    figure.suptitle(title, fontsize=11, x=0.01, ha="left")
    figure.supxlabel(_NOTE, fontsize=8, color="0.4", x=0.01, ha="left")
    return figure


def _rows(summaries: Sequence[Summary]) -> list[dict[str, Any]]:
    """One row for each estimator, the smallest loss first, with standard errors as ``_se``.

    ``excess`` is the exact loss minus its minimum, over the last quarter of the steps; the rest is
    measured at the last parameters: ``bias`` is the distance of the mean gradient from the exact
    one, ``error`` the mean distance of a single gradient.
    """
    found: dict[str, dict[str, Any]] = {}
    for one in summaries:
        label, key = one.setting.estimator, one.metric.key
        row = found.setdefault(label, dict.fromkeys(_COLUMNS) | {"estimator": label})
        row[key] = int(one.mean) if key == "evaluations" else one.mean
        if f"{key}_se" in row:
            row[f"{key}_se"] = one.error
    return sorted(found.values(), key=lambda row: row["excess"])
