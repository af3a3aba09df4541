"""Summaries as tables: estimators by conditions, and every number of a setting in one row.

A table is data: the page, Markdown and LaTeX each write it in their own way. Estimators go down and
conditions (priors, laws) across, but a study of one's own has the rows of its labels. A cell is a
number with its error, how many it is of, and the paper's beside it; it has as many digits as its
standard error allows.
"""

__all__ = ["Cell", "ReportTable", "make_tables", "table_title", "with_error"]

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from gengs.lab.palette import looks

from .metric_catalogue import ExperimentView, Metric, metrics_of, view_of
from .seed_groups import SeedGroups, Setting, grouped
from .summaries import PUBLISHED, Summary, Verdict, best_of, published

TITLES = {
    "table1": "Table 1",
    "table2": "Table 2",
    "figure3": "Figure 3",
    "midcdf": "Mid-CDF and its rivals",
}
"""The built-in studies' tables in words."""

_VERDICTS: dict[Verdict | None, tuple[str, str]] = {
    "better": ("▼", "better than the paper"),
    "worse": ("▲", "worse than the paper"),
    "within": ("≈", "within two standard errors of the paper"),
    "single": ("○", "one run: no error to judge by"),
    None: ("", ""),
}
"""A verdict as a sign (less is better wherever the paper has a number) and in words."""


@dataclass(frozen=True)
class Cell:
    """One cell: what is shown, and what sorting goes by."""

    text: str
    value: float | str | None = None
    count: int = 0
    paper: str = ""  # the published number, or a dash where the paper has one for "no convergence"
    difference: str = ""
    verdict: Verdict | None = None
    note: str = ""
    best: bool = False  # whether it is the best of its column, or cannot be told from it

    @property
    def sign(self) -> str:
        return _VERDICTS[self.verdict][0]

    @property
    def words(self) -> str:
        return _VERDICTS[self.verdict][1]


@dataclass(frozen=True)
class ReportTable:
    """A table with its title."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    labels: int = 1  # how many columns are names; the others are numbers
    choice: str = ""  # what the table shows, where several show the same settings
    repeats: str = "runs"  # what means are over
    best_among: str = "of a column"  # what the best are the best of

    @property
    def cells(self) -> list[Cell]:
        return [cell for row in self.rows for cell in row]

    @property
    def compared(self) -> bool:
        """Whether some number stands beside a published one."""
        return any(cell.paper for cell in self.cells)

    @property
    def common_count(self) -> int | None:
        """How many each number is the mean of, where they agree."""
        counts = {cell.count for cell in self.cells if cell.count}
        return counts.pop() if len(counts) == 1 else None

    @property
    def each(self) -> str:
        """The same in words."""
        if not (count := self.common_count):
            return ""
        return f", {count:,} {self.repeats[:-1] if count == 1 else self.repeats} each"

    @property
    def heading(self) -> str:
        return f"{self.title}: {self.choice}{self.each}" if self.choice else self.title

    @property
    def legend(self) -> str:
        """What ± and bold mean in it."""
        parts = []
        if any("±" in cell.text for cell in self.cells):
            parts.append("Mean ± one standard error.")
        if any(cell.best for cell in self.cells):
            parts.append(f"Bold: the best {self.best_among}, and all within two standard errors.")
        return " ".join(parts)


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
        title, heads = " · ".join(words), ("estimator", *conditions)
        tables = []
        for metric in shown:
            columns = [
                self._column([by_place.get((name, one)) for name in estimators], metric)
                for one in conditions
            ]
            rows = tuple(zip([Cell(name, name) for name in estimators], *columns, strict=True))
            made = ReportTable(title, heads, rows, 1, metric.title, self.view.repeats)
            tables.append(_turned(made, self.view.condition) if self._rows_first(own) else made)
        return tables

    def _rows_first(self, own: Sequence[Setting]) -> bool:
        """Whether the conditions are the rows by the labels of somebody's own study."""
        runs = [(one, run) for one in own for run in self.places[one]]
        rows = (run.labels.get("row") == one.condition for one, run in runs)
        return own[0].table not in TITLES and bool(runs) and all(rows)

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
        numbers: dict[Setting, list[Cell]] = {one: [self._count_cell(one)] for one in places}
        for own in blocks:
            for metric in self.metrics:
                column = self._column(own, metric, with_paper=False)
                for one, cell in zip(own, column, strict=True):
                    numbers[one].append(cell)
        heads = (*labels, view.repeats, *(metric.title for metric in self.metrics))
        if any(one.paper is not None for one in self.found.values()):
            heads = (*heads, "paper")
            for one, cells in numbers.items():
                pairs = (published(one, metric) for metric in self.metrics)
                value, text = next((pair for pair in pairs if pair[1]), (None, ""))
                cells.append(Cell(text, value))
        names = zip(*labels.values(), strict=True)
        rows = tuple(
            (*(Cell(name, name) for name in row), *numbers[one])
            for row, one in zip(names, places, strict=True)
        )
        among = "of a column" if len(blocks) == 1 else f"for the same {view.condition}"
        return ReportTable("All numbers", heads, rows, len(labels), "", view.repeats, among)

    def _column(
        self, places: Sequence[Setting | None], metric: Metric, with_paper: bool = True
    ) -> list[Cell]:
        """The cells of a metric at these places, the best of them marked."""
        known = [self.found.get((one, metric)) if one else None for one in places]
        best = best_of([summary for summary in known if summary])
        cells = []
        for one, summary in zip(places, known, strict=True):
            paper = published(one, metric)[1] if one and with_paper else ""
            if one is None:
                cells.append(Cell(""))
            elif summary is None:
                cells.append(self._absent(one, metric, paper))
            else:
                cells.append(_number(summary, paper, summary in best))
        return cells

    def _absent(self, setting: Setting, metric: Metric, paper: str) -> Cell:
        """Why there is no number."""
        states = {run.state for run in self.places[setting]}
        for state in ("failed", "damaged", "different", "running", "unfinished", "waiting"):
            if state in states:
                return Cell(state, note=state, paper=paper)
        return Cell("–", note=metric.absent, paper=paper)

    def _count_cell(self, setting: Setting) -> Cell:
        runs = self.places[setting]
        if not runs:
            count = max(one.count for one in self.found.values() if one.setting == setting)
            return Cell(f"{count:,}", count)
        done = sum(run.state == "done" for run in runs)
        return Cell(str(done) if done == len(runs) else f"{done} of {len(runs)}", done)


def _turned(table: ReportTable, corner: str) -> ReportTable:
    """Its rows as columns."""
    estimators, *columns = zip(*table.rows, strict=True)
    pairs = zip(table.columns[1:], columns, strict=True)
    return replace(
        table,
        columns=(corner, *(cell.text for cell in estimators)),
        rows=tuple((Cell(head, head), *column) for head, column in pairs),
        best_among="of a row",
    )


def _number(summary: Summary, paper: str, best: bool) -> Cell:
    """Mean ± error, and how it stands to the paper's number."""
    note = f"{summary.lost} not finite" if summary.lost else ""
    if not summary.count:
        return Cell("diverged", paper=paper, note=note)
    by = summary.difference
    difference = "" if by is None else _minus(f"{by:+,.{2 if abs(by) < 100 else 0}f}")
    text = with_error(summary.mean, summary.error, summary.metric.digits)
    verdict = summary.verdict
    return Cell(text, summary.mean, summary.count, paper, difference, verdict, note, best)


def with_error(value: float, error: float | None, digits: int | None = None) -> str:
    """A value and its standard error, to the same place: one digit of it, two if the first is 1, 2.

    Without an error, so many ``digits`` after the point, or three significant ones.

    Example:
        >>> with_error(117.4512, 0.5234), with_error(117.4512, None, 2), with_error(-0.012345, None)
        ('117.5 ± 0.5', '117.45', '−0.0123')
    """
    if error is not None and 0 < error < math.inf:
        exponent = math.floor(math.log10(error))
        digits = max(0, (1 if error < 3 * 10.0**exponent else 0) - exponent)
        return _minus(f"{round(value, digits) + 0.0:,.{digits}f} ± {error:,.{digits}f}")  # no -0.0
    if digits is None:
        return _minus(f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:.3g}")
    return _minus(f"{value:,.{digits}f}")


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _ordered(names: Sequence[str], first: Iterable[str]) -> list[str]:
    """Each once: those of ``first`` in its order, then the plan's."""
    return list(dict.fromkeys([*(name for name in first if name in names), *names]))
