"""Summaries as tables of estimators by conditions, the paper's numbers beside ours."""

from __future__ import annotations

__all__ = ["pivots", "places", "repeats", "table_title"]

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .cells import Cell, Column, ReportTable, absent_cell, published_text, value_cell
from .metrics import METRICS, REPEATS, Metric
from .palette import looks
from .runs import Run
from .settings import Setting, Side, orientation
from .summaries import PUBLISHED, Summary

TITLES = {
    "table1": "Table 1",
    "table2": "Table 2",
    "figure3": "Figure 3",
    "midcdf": "Mid-CDF and its rivals",
}
"""The built-in studies' tables in words."""

CONDITIONS = {"vae": "prior", "synthetic": "law", "measure": "law", "topics": "layers"}
"""What estimators are compared on."""


def pivots(
    settings: Mapping[Setting, Sequence[Run]], summaries: Sequence[Summary]
) -> list[list[ReportTable]]:
    """For each table and data set: estimators by conditions (priors, laws), a table per metric.

    Estimators go down and conditions across, whichever of them the study calls rows. Where there
    is one condition, and nothing published, the long table says all.
    """
    known = places(settings, summaries)
    found = {(one.setting, one.metric.key): one for one in summaries}
    metrics = list(dict.fromkeys(one.metric for one in summaries if one.metric.tabulated))
    sides = orientation(known)
    groups: dict[tuple[str, str], dict[Setting, Sequence[Run]]] = {}
    for setting, runs in known.items():
        groups.setdefault((setting.table, setting.data), {})[setting] = runs
    tables = []
    for (table, data), members in groups.items():
        published = PUBLISHED.get(table, {}).get(data, {})
        down = sides[table]
        across: Side = "column" if down == "row" else "row"
        order = {"row": list(published), "column": [c for row in published.values() for c in row]}
        if not published:  # as in a legend: kinds together
            order[down] = list(looks(getattr(one, down) for one in members))
        estimators, conditions = (_ordered(members, side, order[side]) for side in (down, across))
        if len(estimators) < 2 or (len(conditions) < 2 and not published):
            continue
        by_place = {(getattr(one, down), getattr(one, across)): one for one in members}
        title = _pivot_title(table, data, next(iter(members)).experiment, len(groups) > 1)
        layout = _Layout(title, estimators, conditions, by_place, members)
        shown = [m for m in metrics if any((one, m.key) in found for one in members)]
        if not shown and published:  # nothing is done yet: what there will be to compare with
            experiment = next(iter(members)).experiment
            shown = [metric for metric in METRICS.get(experiment, ()) if metric.published]
        tables.append([layout.table(metric, found) for metric in shown])
    return [group for group in tables if group]


@dataclass(frozen=True)
class _Layout:
    """Where the settings of one table stand."""

    title: str
    estimators: Sequence[str]
    conditions: Sequence[str]
    by_place: Mapping[tuple[str, str], Setting]
    runs: Mapping[Setting, Sequence[Run]]

    def table(self, metric: Metric, found: Mapping[tuple[Setting, str], Summary]) -> ReportTable:
        """The table of one metric."""
        columns = [self._column(name, metric, found) for name in self.conditions]
        rows = [
            (Cell(name, name), *(column[number] for column in columns))
            for number, name in enumerate(self.estimators)
        ]
        heads = (Column("estimator", numeric=False), *(Column(name) for name in self.conditions))
        compared = any(cell.paper for row in rows for cell in row)
        return ReportTable(
            self.title, heads, tuple(rows), metric.title, repeats(self.runs), compared
        )

    def _column(
        self, condition: str, metric: Metric, found: Mapping[tuple[Setting, str], Summary]
    ) -> list[Cell]:
        here = [self.by_place.get((name, condition)) for name in self.estimators]
        known = {one: found[one, metric.key] for one in here if one and (one, metric.key) in found}
        best = _best([one for one in known.values() if one.count])
        cells = []
        for one in here:
            if one is None:
                cells.append(Cell(""))
            elif one in known:
                cells.append(value_cell(known[one], best=known[one] is best))
            else:
                cells.append(absent_cell(self.runs[one], published_text(one, metric)))
        return cells


def places(
    settings: Mapping[Setting, Sequence[Run]], summaries: Iterable[Summary]
) -> dict[Setting, Sequence[Run]]:
    """The settings of a table; those of runs with many estimators are one for each of them."""
    found: dict[Setting, Sequence[Run]] = {}
    for one in summaries:
        if one.setting.experiment in ("synthetic", "measure"):
            found[one.setting] = ()
    for setting, runs in settings.items():
        if setting.experiment not in ("synthetic", "measure"):
            found[setting] = runs
    return found


def repeats(settings: Iterable[Setting]) -> str:
    """What means are over: runs, or what one run has many of."""
    return next((REPEATS.get(setting.experiment, "runs") for setting in settings), "runs")


def _best(summaries: Sequence[Summary]) -> Summary | None:
    """The best of a row; none among fewer than two."""
    if len(summaries) < 2 or not summaries[0].metric.better:
        return None
    return max(summaries, key=lambda one: one.mean * one.metric.better)


def _ordered(members: Iterable[Setting], side: Side, published: Sequence[str]) -> list[str]:
    """The paper's order, then the plan's."""
    planned = list(dict.fromkeys(getattr(one, side) for one in members))
    first = [name for name in dict.fromkeys(published) if name in planned]
    return [*first, *(name for name in planned if name not in first)]


def _pivot_title(table: str, data: str, experiment: str, several: bool) -> str:
    condition = CONDITIONS.get(experiment, "condition")
    words = [table_title(table) if table in TITLES else f"Estimators by {condition}"]
    words += [data] if data not in ("", "synthetic") else []
    words += [table] if several and table not in TITLES else []
    return " · ".join(words)


def table_title(table: str) -> str:
    """A built-in study's name in words."""
    return TITLES.get(table, table)
