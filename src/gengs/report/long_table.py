"""Every number of a setting in one row: the whole of an experiment as one table."""

from __future__ import annotations

__all__ = ["long_table"]

from collections.abc import Mapping, Sequence

from .cells import Cell, Column, ReportTable, absent_cell, published_text, value_cell
from .runs import Run
from .settings import Setting, orientation
from .summaries import Summary, published
from .tables import CONDITIONS, places, repeats, table_title


def long_table(
    title: str, settings: Mapping[Setting, Sequence[Run]], summaries: Sequence[Summary]
) -> ReportTable:
    """A row for each setting, a column for each metric; labels that do not vary are left out."""
    known = places(settings, summaries)
    metrics = list(dict.fromkeys(one.metric for one in summaries))
    found = {(one.setting, one.metric.key): one for one in summaries}
    labels = _labels(known)
    names = [name for name, column in labels.items() if name == "estimator" or _vary(column)]
    paper = any(one.paper is not None for one in summaries)
    heads = [Column(name, numeric=False) for name in names]
    heads += [Column(repeats(known)), *(Column(metric.title) for metric in metrics)]
    heads += [Column("paper")] if paper else []
    lines = []
    for number, (place, runs) in enumerate(known.items()):
        cells = [Cell(labels[name][number], labels[name][number]) for name in names]
        own = [found[place, m.key] for m in metrics if (place, m.key) in found]
        cells.append(_runs_cell(runs, own))
        for metric in metrics:
            summary = found.get((place, metric.key))
            cells.append(value_cell(summary, with_paper=False) if summary else absent_cell(runs))
        if paper:
            texts = [text for metric in metrics if (text := published_text(place, metric))]
            cells.append(Cell(texts[0], published(place)) if texts else Cell(""))
        lines.append(tuple(cells))
    return ReportTable(title, tuple(heads), tuple(lines), repeats=repeats(known), compared=paper)


def _labels(settings: Mapping[Setting, Sequence[Run]]) -> dict[str, list[str]]:
    """The columns of labels: estimators in one of them, whichever side of a table they are on."""
    sides = orientation(settings)
    experiment = next((one.experiment for one in settings), "")
    condition = CONDITIONS.get(experiment, "condition")
    columns: dict[str, list[str]] = {"estimator": [], condition: [], "data": [], "table": []}
    for one in settings:
        pair = (one.row, one.column) if sides[one.table] == "row" else (one.column, one.row)
        for name, label in zip(columns, (*pair, one.data, table_title(one.table)), strict=True):
            columns[name].append(label)
    return columns


def _vary(labels: Sequence[str]) -> bool:
    return len(set(labels)) > 1


def _runs_cell(runs: Sequence[Run], own: Sequence[Summary]) -> Cell:
    if not runs:
        count = max((one.count for one in own), default=0)
        return Cell(f"{count:,}", count)
    done = sum(run.state == "done" for run in runs)
    text = str(done) if done == len(runs) else f"{done} of {len(runs)}"
    return Cell(text, done)
