"""Summaries as tables: estimators by conditions, and every number of a setting in one row.

Estimators go down and conditions (priors, laws) across.
"""

from __future__ import annotations

__all__ = ["make_tables", "table_title"]

from collections.abc import Iterable, Mapping, Sequence

from ..lab.palette import looks
from .cells import Cell, ReportTable, absent_cell, value_cell
from .metric_catalogue import ExperimentView, Metric, metrics_of, view_of
from .seed_groups import SeedGroups, Setting
from .summaries import PUBLISHED, Summary, best_of, published

TITLES = {
    "table1": "Table 1",
    "table2": "Table 2",
    "figure3": "Figure 3",
    "midcdf": "Mid-CDF and its rivals",
}
"""The built-in studies' tables in words."""

_Found = Mapping[tuple[Setting, Metric], Summary]


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
    blocks: dict[tuple[str, str], list[Setting]] = {}
    for one in places:
        blocks.setdefault((one.table, one.data), []).append(one)
    pivots = []
    for key, own in blocks.items():
        title = _pivot_title(view, *key, len(blocks) > 1)
        pivots.append(_pivots(view, title, own, metrics, places, found))
    return [group for group in pivots if group], _all_numbers(view, metrics, places, found)


def table_title(table: str) -> str:
    """A built-in study's name in words."""
    return TITLES.get(table, table)


def _pivots(
    view: ExperimentView,
    title: str,
    own: Sequence[Setting],
    metrics: Sequence[Metric],
    groups: SeedGroups,
    found: _Found,
) -> list[ReportTable]:
    """The settings of one table and data set, estimators by conditions, once for each metric."""
    by_place = {(one.estimator, one.condition): one for one in own}
    paper = PUBLISHED.get(own[0].table, {}).get(own[0].data, {})
    # the paper's order; else as in a legend, kinds together
    order = [name for row in paper.values() for name in row]
    estimators = _ordered([name for name, _ in by_place], order or looks(n for n, _ in by_place))
    conditions = _ordered([condition for _, condition in by_place], paper)
    if len(estimators) < 2 or (len(conditions) < 2 and not paper):
        return []
    shown = [m for m in metrics if m.tabulated and any((one, m) in found for one in own)]
    if not shown and paper:  # nothing is done yet: what there will be to compare with
        shown = [metric for metric in view.metrics if metric.published]
    tables = []
    for metric in shown:
        columns = [
            _column([by_place.get((name, one)) for name in estimators], groups, metric, found)
            for one in conditions
        ]
        rows = tuple(zip([Cell(name, name) for name in estimators], *columns, strict=True))
        compared = any(cell.paper for row in rows for cell in row)
        heads = ("estimator", *conditions)
        tables.append(ReportTable(title, heads, rows, 1, metric.title, view.repeats, compared))
    return tables


def _all_numbers(
    view: ExperimentView, metrics: Sequence[Metric], groups: SeedGroups, found: _Found
) -> ReportTable:
    """A row for each setting, a column for each metric; labels that do not vary are left out."""
    compared = any(one.paper is not None for one in found.values())
    labels = {
        "estimator": [one.estimator for one in groups],
        view.condition: [one.condition for one in groups],
        "data": [one.data for one in groups],
        "table": [table_title(one.table) for one in groups],
    }
    labels = {k: own for k, own in labels.items() if k == "estimator" or len(set(own)) > 1}
    blocks: dict[tuple[str, ...], list[Setting]] = {}
    for one in groups:
        blocks.setdefault((one.table, one.data, one.condition), []).append(one)
    cells: dict[tuple[Setting, Metric], Cell] = {}
    for own in blocks.values():  # each is a comparison of its own
        for metric in metrics:
            column = _column(own, groups, metric, found, with_paper=False)
            cells |= {(one, metric): cell for one, cell in zip(own, column, strict=True)}
    rows = tuple(
        (
            *(Cell(names[row], names[row]) for names in labels.values()),
            _count_cell(one, groups, found),
            *(cells[one, metric] for metric in metrics),
            *([_paper_cell(one, metrics)] if compared else []),
        )
        for row, one in enumerate(groups)
    )
    heads = (*labels, view.repeats, *(m.title for m in metrics), *["paper"] * compared)
    among = "of a column" if len(blocks) == 1 else f"for the same {view.condition}"
    return ReportTable("All numbers", heads, rows, len(labels), "", view.repeats, compared, among)


def _column(
    places: Sequence[Setting | None],
    groups: SeedGroups,
    metric: Metric,
    found: _Found,
    with_paper: bool = True,
) -> list[Cell]:
    """The cells of a metric at these places, the best of them marked."""
    best = best_of([found[one, metric] for one in places if one and (one, metric) in found])
    cells = []
    for one in places:
        if one is None:
            cells.append(Cell(""))
        elif (summary := found.get((one, metric))) is not None:
            cells.append(value_cell(summary, summary in best, with_paper))
        else:
            paper = published(one, metric)[1] if with_paper else ""
            cells.append(absent_cell(groups[one], paper, metric.absent))
    return cells


def _ordered(names: Sequence[str], first: Iterable[str]) -> list[str]:
    """Each once: those of ``first`` in its order, then the plan's."""
    return list(dict.fromkeys([*(name for name in first if name in names), *names]))


def _pivot_title(view: ExperimentView, table: str, data: str, several: bool) -> str:
    words = [TITLES.get(table, f"Estimators by {view.condition}")]
    words += [data] if data not in ("", "synthetic") else []
    words += [table] if several and table not in TITLES else []
    return " · ".join(words)


def _count_cell(setting: Setting, groups: SeedGroups, found: _Found) -> Cell:
    runs = groups[setting]
    if not runs:
        count = max(one.count for one in found.values() if one.setting == setting)
        return Cell(f"{count:,}", count)
    done = sum(run.state == "done" for run in runs)
    return Cell(str(done) if done == len(runs) else f"{done} of {len(runs)}", done)


def _paper_cell(setting: Setting, metrics: Iterable[Metric]) -> Cell:
    pairs = (published(setting, metric) for metric in metrics)
    value, text = next((pair for pair in pairs if pair[1]), (None, ""))
    return Cell(text, value)
