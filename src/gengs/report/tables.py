"""Summaries as tables: estimators by conditions, and every number of a setting in one row.

Estimators go down and conditions (priors, laws) across.
"""

from __future__ import annotations

__all__ = ["make_tables", "table_title"]

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product

from ..lab.palette import looks
from .cells import Cell, ReportTable, absent_cell, value_cell
from .metric_catalogue import ExperimentView, Metric, metrics_of, view_of
from .seed_groups import SeedGroups, Setting, grouped
from .summaries import PUBLISHED, Summary, best_of, published

TITLES = {
    "table1": "Table 1",
    "table2": "Table 2",
    "figure3": "Figure 3",
    "midcdf": "Mid-CDF and its rivals",
}
"""The built-in studies' tables in words."""


def table_title(table: str) -> str:
    """A built-in study's name in words."""
    return TITLES.get(table, table)


def make_tables(
    experiment: str, groups: SeedGroups, summaries: Sequence[Summary]
) -> tuple[list[list[ReportTable]], ReportTable]:
    """For each table and data set, estimators by conditions, a table per metric; and all numbers.

    Where there is one condition, and nothing published, the table of all numbers says it all.
    """
    view = view_of(experiment)
    # runs with many estimators make one setting of each
    places = {one.setting: () for one in summaries} if view.many_estimators else groups
    found = {(one.setting, one.metric): one for one in summaries}
    metrics = metrics_of(experiment, (one.metric.key for one in summaries))
    numbers = _Numbers(view, metrics, places, found)
    blocks = grouped(places, "table", "data")
    pivots = [numbers.pivots(own, several=len(blocks) > 1) for own in blocks]
    return [tables for tables in pivots if tables], numbers.all()


@dataclass(frozen=True)
class _Numbers:
    """What is known of an experiment, by setting and metric."""

    view: ExperimentView
    metrics: Sequence[Metric]
    places: SeedGroups
    found: Mapping[tuple[Setting, Metric], Summary]

    def pivots(self, own: Sequence[Setting], several: bool) -> list[ReportTable]:
        """The settings of one table and data set, estimators by conditions, once for each metric.

        Where there are ``several`` tables, a title tells them apart.
        """
        table, data = own[0].table, own[0].data
        by_place = {(one.estimator, one.condition): one for one in own}
        paper = PUBLISHED.get(table, {}).get(data, {})
        # the paper's order; else as in a legend, kinds together
        order = [name for row in paper.values() for name in row]
        names = [name for name, _ in by_place]
        estimators = _ordered(names, order or looks(names))
        conditions = _ordered([condition for _, condition in by_place], paper)
        if len(estimators) < 2 or (len(conditions) < 2 and not paper):
            return []
        shown = [m for m in self.metrics if m.tabulated and any((p, m) in self.found for p in own)]
        if not shown and paper:  # nothing is done yet: what there will be to compare with
            shown = [metric for metric in self.view.metrics if metric.published]
        words = [TITLES.get(table, f"Estimators by {self.view.condition}")]
        words += [data] if data not in ("", "synthetic") else []
        words += [table] if several and table not in TITLES else []
        tables = []
        for metric in shown:
            columns = [
                self._column([by_place.get((name, one)) for name in estimators], metric)
                for one in conditions
            ]
            rows = tuple(zip([Cell(name, name) for name in estimators], *columns, strict=True))
            compared = any(cell.paper for row in rows for cell in row)
            heads, repeats = ("estimator", *conditions), self.view.repeats
            title = " · ".join(words)
            tables.append(ReportTable(title, heads, rows, 1, metric.title, repeats, compared))
        return tables

    def all(self) -> ReportTable:
        """A row for each setting, a column for each metric; labels that never vary are left out."""
        view, places = self.view, self.places
        labels = {
            "estimator": [one.estimator for one in places],
            view.condition: [one.condition for one in places],
            "data": [one.data for one in places],
            "table": [table_title(one.table) for one in places],
        }
        labels = {k: own for k, own in labels.items() if k == "estimator" or len(set(own)) > 1}
        blocks = grouped(places, "table", "data", "condition")  # each is a comparison of its own
        cells: dict[tuple[Setting, Metric], Cell] = {}
        for own, metric in product(blocks, self.metrics):
            column = self._column(own, metric, with_paper=False)
            cells |= {(one, metric): cell for one, cell in zip(own, column, strict=True)}
        compared = any(one.paper is not None for one in self.found.values())
        rows = tuple(
            (
                *(Cell(names[row], names[row]) for names in labels.values()),
                self._count_cell(one),
                *(cells[one, metric] for metric in self.metrics),
                *([self._paper_cell(one)] if compared else []),
            )
            for row, one in enumerate(places)
        )
        heads = (*labels, view.repeats, *(m.title for m in self.metrics), *["paper"] * compared)
        among = "of a column" if len(blocks) == 1 else f"for the same {view.condition}"
        counts = len(labels), "", view.repeats, compared, among
        return ReportTable("All numbers", heads, rows, *counts)

    def _column(
        self, places: Sequence[Setting | None], metric: Metric, with_paper: bool = True
    ) -> list[Cell]:
        """The cells of a metric at these places, the best of them marked."""
        known = [self.found.get((one, metric)) if one else None for one in places]
        best = best_of([summary for summary in known if summary])
        cells = []
        for one, summary in zip(places, known, strict=True):
            if one is None:
                cells.append(Cell(""))
            elif summary is not None:
                cells.append(value_cell(summary, summary in best, with_paper))
            else:
                paper = published(one, metric)[1] if with_paper else ""
                cells.append(absent_cell(self.places[one], paper, metric.absent))
        return cells

    def _count_cell(self, setting: Setting) -> Cell:
        runs = self.places[setting]
        if not runs:
            count = max(one.count for one in self.found.values() if one.setting == setting)
            return Cell(f"{count:,}", count)
        done = sum(run.state == "done" for run in runs)
        return Cell(str(done) if done == len(runs) else f"{done} of {len(runs)}", done)

    def _paper_cell(self, setting: Setting) -> Cell:
        pairs = (published(setting, metric) for metric in self.metrics)
        value, text = next((pair for pair in pairs if pair[1]), (None, ""))
        return Cell(text, value)


def _ordered(names: Sequence[str], first: Iterable[str]) -> list[str]:
    """Each once: those of ``first`` in its order, then the plan's."""
    return list(dict.fromkeys([*(name for name in first if name in names), *names]))
