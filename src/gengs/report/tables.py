"""Summaries as tables: estimators by conditions, and every number of a setting in one row.

Estimators go down and conditions (priors, laws) across.
"""

from __future__ import annotations

__all__ = ["long_table", "pivots", "table_title"]

from collections.abc import Iterable, Mapping, Sequence

from ..lab.palette import looks
from .cells import Cell, ReportTable, TableColumn, absent_cell, value_cell
from .metric_catalogue import Metric, view_of
from .run_results import RunResult
from .seed_groups import SeedGroups, Setting
from .summaries import PUBLISHED, Summary, best_of, published

TITLES = {
    "table1": "Table 1",
    "table2": "Table 2",
    "figure3": "Figure 3",
    "midcdf": "Mid-CDF and its rivals",
}
"""The built-in studies' tables in words."""

_Found = Mapping[tuple[Setting, str], Summary]


def pivots(groups: SeedGroups, summaries: Sequence[Summary]) -> list[list[ReportTable]]:
    """For each table and data set: estimators by conditions, a table per metric.

    Where there is one condition, and nothing published, the long table says all.
    """
    known = _places(groups, summaries)
    found = {(one.setting, one.metric.key): one for one in summaries}
    metrics = list(dict.fromkeys(one.metric for one in summaries if one.metric.tabulated))
    blocks: dict[tuple[str, str], dict[Setting, Sequence[RunResult]]] = {}
    for setting, runs in known.items():
        blocks.setdefault((setting.table, setting.data), {})[setting] = runs
    tables = []
    for (table, data), members in blocks.items():
        paper = PUBLISHED.get(table, {}).get(data, {})
        # the paper's order; else as in a legend, kinds together
        order = [name for row in paper.values() for name in row]
        order = order or list(looks(one.estimator for one in members))
        estimators = _ordered((one.estimator for one in members), order)
        conditions = _ordered((one.condition for one in members), list(paper))
        if len(estimators) < 2 or (len(conditions) < 2 and not paper):
            continue
        by_place = {(one.estimator, one.condition): one for one in members}
        grid = [[by_place.get((name, one)) for name in estimators] for one in conditions]
        experiment = next(iter(members)).experiment
        shown = [m for m in metrics if any((one, m.key) in found for one in members)]
        if not shown and paper:  # nothing is done yet: what there will be to compare with
            shown = [metric for metric in view_of(experiment).metrics if metric.published]
        title = _pivot_title(table, data, experiment, len(blocks) > 1)
        heads = (TableColumn("estimator", numeric=False), *map(TableColumn, conditions))
        group = []
        for metric in shown:
            columns = [_column(places, members, metric, found) for places in grid]
            names = [Cell(name, name) for name in estimators]
            rows = tuple(zip(names, *columns, strict=True))
            compared = any(cell.paper for row in rows for cell in row)
            repeats = view_of(experiment).repeats
            group.append(ReportTable(title, heads, rows, metric.title, repeats, compared))
        tables += [group] if group else []
    return tables


def long_table(title: str, groups: SeedGroups, summaries: Sequence[Summary]) -> ReportTable:
    """A row for each setting, a column for each metric; labels that do not vary are left out."""
    known = _places(groups, summaries)
    metrics = list(dict.fromkeys(one.metric for one in summaries))
    found = {(one.setting, one.metric.key): one for one in summaries}
    repeats = next((view_of(one.experiment).repeats for one in known), "runs")
    paper = any(one.paper is not None for one in summaries)
    columns: list[tuple[TableColumn, Sequence[Cell]]] = [
        (TableColumn(name, numeric=False), [Cell(label, label) for label in labels])
        for name, labels in _labels(known).items()
        if name == "estimator" or len(set(labels)) > 1
    ]
    counts = [
        _count_cell(runs, [found[one, m.key] for m in metrics if (one, m.key) in found])
        for one, runs in known.items()
    ]
    columns.append((TableColumn(repeats), counts))
    blocks: dict[tuple[str, ...], list[Setting]] = {}
    for one in known:
        blocks.setdefault((one.table, one.data, one.condition), []).append(one)
    for metric in metrics:
        cells_of: dict[Setting, Cell] = {}
        for places in blocks.values():  # each is a comparison of its own
            cells = _column(places, known, metric, found, with_paper=False)
            cells_of.update(zip(places, cells, strict=True))
        columns.append((TableColumn(metric.title), [cells_of[one] for one in known]))
    if paper:
        columns.append((TableColumn("paper"), [_paper_cell(one, metrics) for one in known]))
    heads, cells_by_column = zip(*columns, strict=True)
    rows = tuple(zip(*cells_by_column, strict=True))
    condition = next((view_of(one.experiment).condition for one in known), "condition")
    among = "of a column" if len(blocks) == 1 else f"for the same {condition}"
    return ReportTable(title, heads, rows, repeats=repeats, compared=paper, best_among=among)


def table_title(table: str) -> str:
    """A built-in study's name in words."""
    return TITLES.get(table, table)


def _column(
    places: Sequence[Setting] | Sequence[Setting | None],
    groups: SeedGroups,
    metric: Metric,
    found: _Found,
    with_paper: bool = True,
) -> list[Cell]:
    """The cells of a metric at these places, the best of them marked."""
    best = best_of([found[one, metric.key] for one in places if one and (one, metric.key) in found])
    cells = []
    for one in places:
        if one is None:
            cells.append(Cell(""))
        elif (summary := found.get((one, metric.key))) is not None:
            cells.append(value_cell(summary, summary in best, with_paper))
        else:
            paper = published(one, metric)[1] if with_paper else ""
            cells.append(absent_cell(groups[one], paper, metric.absent))
    return cells


def _places(groups: SeedGroups, summaries: Iterable[Summary]) -> dict[Setting, Sequence[RunResult]]:
    """The settings of a table; those of runs with many estimators are one for each of them."""
    found: dict[Setting, Sequence[RunResult]] = {}
    for one in summaries:
        if view_of(one.setting.experiment).many_estimators:
            found[one.setting] = ()
    for setting, runs in groups.items():
        if not view_of(setting.experiment).many_estimators:
            found[setting] = runs
    return found


def _ordered(names: Iterable[str], first: Sequence[str]) -> list[str]:
    """Each once: those of ``first`` in its order, then the plan's."""
    planned = list(dict.fromkeys(names))
    leading = [name for name in dict.fromkeys(first) if name in planned]
    return [*leading, *(name for name in planned if name not in leading)]


def _pivot_title(table: str, data: str, experiment: str, several: bool) -> str:
    condition = view_of(experiment).condition
    words = [table_title(table) if table in TITLES else f"Estimators by {condition}"]
    words += [data] if data not in ("", "synthetic") else []
    words += [table] if several and table not in TITLES else []
    return " · ".join(words)


def _labels(groups: SeedGroups) -> dict[str, list[str]]:
    """The columns of labels."""
    condition = next((view_of(one.experiment).condition for one in groups), "condition")
    return {
        "estimator": [one.estimator for one in groups],
        condition: [one.condition for one in groups],
        "data": [one.data for one in groups],
        "table": [table_title(one.table) for one in groups],
    }


def _count_cell(runs: Sequence[RunResult], own: Sequence[Summary]) -> Cell:
    if not runs:
        count = max((one.count for one in own), default=0)
        return Cell(f"{count:,}", count)
    done = sum(run.state == "done" for run in runs)
    return Cell(str(done) if done == len(runs) else f"{done} of {len(runs)}", done)


def _paper_cell(setting: Setting, metrics: Iterable[Metric]) -> Cell:
    found = [pair for metric in metrics if (pair := published(setting, metric))[1]]
    return Cell(found[0][1], found[0][0]) if found else Cell("")
