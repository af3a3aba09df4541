"""Summaries laid out as tables: the paper's beside ours, and every number of a setting in a row.

A table is data: the page, Markdown and LaTeX each write it in their own way.
"""

from __future__ import annotations

__all__ = ["Cell", "Column", "ReportTable", "long_table", "pivots", "table_title", "value_cell"]

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from .metrics import REPEATS, Metric
from .numbers import number, signed, with_error
from .palette import looks
from .runs import Run
from .settings import Setting, orientation
from .summaries import PUBLISHED, Summary, Verdict, is_dash, published

Side = Literal["row", "column"]

SIGNS: dict[Verdict, str] = {"better": "▼", "worse": "▲", "within": "≈", "single": "○"}
"""A verdict without colour; less is better wherever the paper has a number."""

TITLES = {
    "table1": "Table 1",
    "table2": "Table 2",
    "figure3": "Figure 3",
    "midcdf": "Mid-CDF and its rivals",
}
"""The built-in studies' tables in words."""

WORDS: dict[Verdict, str] = {
    "better": "better than the paper",
    "worse": "worse than the paper",
    "within": "within two standard errors of the paper",
    "single": "one run: no error to judge by",
}


@dataclass(frozen=True)
class Cell:
    """One cell: what is shown, and what sorting goes by."""

    text: str
    value: float | str | None = None
    count: int = 0
    paper: str = ""
    """The published number, or a dash where the paper has one for "no convergence"."""
    difference: str = ""
    verdict: Verdict | None = None
    note: str = ""
    best: bool = False

    @property
    def sign(self) -> str:
        """The verdict's sign."""
        return SIGNS[self.verdict] if self.verdict else ""

    @property
    def words(self) -> str:
        """The verdict in words."""
        return WORDS[self.verdict] if self.verdict else ""


@dataclass(frozen=True)
class Column:
    """A column's head."""

    title: str
    numeric: bool = True


@dataclass(frozen=True)
class ReportTable:
    """A table with its title."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    choice: str = ""
    """What the table shows, where several show the same settings."""
    repeats: str = "runs"
    """What means are over."""
    compared: bool = False
    """Whether some number stands beside a published one."""


def pivots(
    settings: Mapping[Setting, Sequence[Run]], summaries: Sequence[Summary]
) -> list[list[ReportTable]]:
    """For each table and data set: estimators by conditions (priors, laws), a table per metric.

    Estimators go down and conditions across, whichever of them the study calls rows. Where there
    is one condition, and nothing published, the long table says all.
    """
    places = _places(settings, summaries)
    found = {(one.setting, one.metric.key): one for one in summaries}
    metrics = list(dict.fromkeys(one.metric for one in summaries if one.metric.tabulated))
    groups: dict[tuple[str, str], dict[Setting, Sequence[Run]]] = {}
    for setting, runs in places.items():
        groups.setdefault((setting.table, setting.data), {})[setting] = runs
    tables = []
    for (table, data), members in groups.items():
        published = PUBLISHED.get(table, {}).get(data, {})
        down: Side = orientation(members)
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
        tables.append(
            [
                layout.table(metric, found)
                for metric in metrics
                if any((one, metric.key) in found for one in members)
            ]
        )
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
            self.title, heads, tuple(rows), metric.title, _repeats(self.runs), compared
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
                cells.append(_absent(self.runs[one], published_text(one, metric)))
        return cells


def long_table(
    title: str, settings: Mapping[Setting, Sequence[Run]], summaries: Sequence[Summary]
) -> ReportTable:
    """A row for each setting, a column for each metric."""
    places = _places(settings, summaries)
    metrics = list(dict.fromkeys(one.metric for one in summaries))
    found = {(one.setting, one.metric.key): one for one in summaries}
    labels = ("table", "data", "row", "column")
    shown = [key for key in labels if len({getattr(one, key) for one in places}) > 1] or ["column"]
    paper = any(one.paper is not None for one in summaries)
    heads = [Column({"row": "row", "column": "estimator"}.get(key, key), False) for key in shown]
    heads += [Column(_repeats(places)), *(Column(metric.title) for metric in metrics)]
    heads += [Column("paper")] if paper else []
    lines = []
    for place, runs in places.items():
        cells = [Cell(getattr(place, key), getattr(place, key)) for key in shown]
        own = [found[place, m.key] for m in metrics if (place, m.key) in found]
        cells.append(_runs_cell(runs, own))
        for metric in metrics:
            summary = found.get((place, metric.key))
            cells.append(value_cell(summary, with_paper=False) if summary else _absent(runs))
        if paper:
            texts = [text for metric in metrics if (text := published_text(place, metric))]
            cells.append(Cell(texts[0], published(place)) if texts else Cell(""))
        lines.append(tuple(cells))
    return ReportTable(title, tuple(heads), tuple(lines), repeats=_repeats(places), compared=paper)


def value_cell(summary: Summary, best: bool = False, with_paper: bool = True) -> Cell:
    """Mean ± error, and how it stands to the paper's number."""
    paper = published_text(summary.setting, summary.metric) if with_paper else ""
    if not summary.count:
        return Cell("diverged", None, paper=paper, note=f"{summary.lost} not finite")
    text = with_error(summary.mean, summary.error, summary.metric.digits)
    if summary.error is None and summary.metric.digits is None:
        text = number(summary.mean)
    difference = "" if summary.difference is None else signed(summary.difference)
    return Cell(
        text.replace("-", "−"),
        summary.mean,
        summary.count,
        paper,
        difference,
        summary.verdict,
        f"{summary.lost} not finite" if summary.lost else "",
        best,
    )


def published_text(setting: Setting, metric: Metric) -> str:
    """The paper's number with the paper's digits."""
    number = published(setting) if metric.published else None
    if number is not None:
        return f"{number:,.{metric.digits or 0}f}"
    return "—" if metric.published and is_dash(setting) else ""


def _places(
    settings: Mapping[Setting, Sequence[Run]], summaries: Iterable[Summary]
) -> dict[Setting, Sequence[Run]]:
    """The settings of a table; those of runs with many estimators are one for each of them."""
    places: dict[Setting, Sequence[Run]] = {}
    for one in summaries:
        if one.setting.experiment in ("synthetic", "measure"):
            places[one.setting] = ()
    for setting, runs in settings.items():
        if setting.experiment not in ("synthetic", "measure"):
            places[setting] = runs
    return places


def _repeats(settings: Iterable[Setting]) -> str:
    return next((REPEATS.get(setting.experiment, "runs") for setting in settings), "runs")


def _runs_cell(runs: Sequence[Run], own: Sequence[Summary]) -> Cell:
    if not runs:
        count = max((one.count for one in own), default=0)
        return Cell(f"{count:,}", count)
    done = sum(run.state == "done" for run in runs)
    text = str(done) if done == len(runs) else f"{done} of {len(runs)}"
    return Cell(text, done)


def _absent(runs: Sequence[Run], paper: str = "") -> Cell:
    """Why there is no number."""
    states = {run.state for run in runs}
    for state in ("failed", "damaged", "running", "unfinished", "waiting"):
        if state in states:
            return Cell(state, None, note=state, paper=paper)
    return Cell("–", paper=paper)


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
    conditions = {"vae": "prior", "synthetic": "law", "measure": "law", "topics": "layers"}
    condition = conditions.get(experiment, "condition")
    words = [table_title(table) if table in TITLES else f"Estimators by {condition}"]
    words += [data] if data not in ("", "synthetic") else []
    words += [table] if several and table not in TITLES else []
    return " · ".join(words)


def table_title(table: str) -> str:
    """A built-in study's name in words."""
    return TITLES.get(table, table)
