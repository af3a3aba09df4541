r"""A setting's number over its seeds, and beside the paper's.

For R finished runs with values :math:`v_r`: the mean :math:`\bar v` and its standard error
:math:`s/\sqrt R`. Wherever the report writes ±, it is this one standard error. A difference counts
as one if it is larger than two standard errors: of ours alone beside the paper's tables, which
come without errors; of the difference, :math:`\sqrt{e_1^2 + e_2^2}`, between two of ours.
"""

from __future__ import annotations

__all__ = ["PUBLISHED", "Summary", "Verdict", "best_of", "published", "summarise"]

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..study.paper import TABLE1, TABLE2, Table
from .metric_catalogue import Metric, metrics_of, view_of
from .record_columns import as_number
from .run_results import RunResult
from .seed_groups import SeedGroups, Setting

Verdict = Literal["better", "worse", "within", "single"]


def _transposed(rows: Mapping[str, Mapping[str, float | None]]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for row, columns in rows.items():
        for column, number in columns.items():
            found.setdefault(column, {})[row] = number
    return found


PUBLISHED: dict[str, Table] = {
    "table1": TABLE1,
    "table2": {data: _transposed(rows) for data, rows in TABLE2.items()},
}
"""The paper's numbers by table (as studies call it), data, condition and estimator."""


@dataclass(frozen=True)
class Summary:
    """One metric of one setting."""

    setting: Setting
    metric: Metric
    mean: float
    """Over the finite values; NaN if there are none."""
    error: float | None
    """The mean's standard error, where there are two values at least."""
    count: int
    """How many runs it is the mean of (or seeds, or gradients, within one run)."""
    lost: int = 0
    """How many more were NaN or infinite."""
    paper: float | None = None
    """The published number, where there is one to compare with."""

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.paper is None or not self.count else self.mean - self.paper

    @property
    def verdict(self) -> Verdict | None:
        """How ours compares with the paper's."""
        if self.difference is None:
            return None
        if self.error is None:
            return "single"
        if abs(self.difference) <= 2 * self.error:
            return "within"
        return "better" if self.difference * self.metric.better > 0 else "worse"


def summarise(groups: SeedGroups) -> list[Summary]:
    """All metrics of all settings, from the runs that are done."""
    summaries: list[Summary] = []
    for setting, runs in groups.items():
        done = [run for run in runs if run.state == "done"]
        many = view_of(setting.experiment).many_estimators
        summaries += (_of_estimators if many else _of_evaluations)(setting, done)
    return summaries


def best_of(summaries: Sequence[Summary]) -> list[Summary]:
    """The best of a column and all that cannot be told from it; none among fewer than two."""
    known = [one for one in summaries if one.count]
    if len(known) < 2:
        return []
    metric = known[0].metric
    if metric.ideal is not None:
        return [one for one in known if abs(one.mean - metric.ideal) <= 2 * (one.error or 0.0)]
    if not metric.better:
        return []
    best = max(known, key=lambda one: one.mean * metric.better)
    return [one for one in known if abs(one.mean - best.mean) <= 2 * _joint_error(one, best)]


def published(setting: Setting, metric: Metric) -> tuple[float | None, str]:
    """The paper's number and how it is written; a dash is "no convergence", nothing no number."""
    row = PUBLISHED.get(setting.table, {}).get(setting.data, {}).get(setting.condition, {})
    if not metric.published or setting.estimator not in row:
        return None, ""
    number = row[setting.estimator]
    return number, "—" if number is None else f"{number:,.{metric.digits or 0}f}"


def _of_evaluations(setting: Setting, runs: Sequence[RunResult]) -> Iterator[Summary]:
    series = ("evaluation", "")
    last = [run.records.last[series] for run in runs if series in run.records.last]
    keys = [key for record in last for key in record if key not in ("kind", "step")]
    for metric in metrics_of(setting.experiment, keys):
        values = [v for record in last if (v := as_number(record.get(metric.key))) is not None]
        mean, error, count = _mean(values)
        paper, _ = published(setting, metric)
        if values:
            yield Summary(setting, metric, mean, error, count, len(values) - count, paper)


def _of_estimators(setting: Setting, runs: Sequence[RunResult]) -> Iterator[Summary]:
    """Runs that measure many estimators: a column for each, with errors of its own."""
    values: dict[tuple[str, Metric], list[float]] = {}
    errors: dict[tuple[str, Metric], list[float]] = {}
    repeats: dict[str, int] = {}
    for run in runs:
        for (kind, name), record in run.records.last.items():
            if "estimator" not in record or not (record.get("last") or kind == "measurement"):
                continue
            many = record.get("replicates", run.config.get("seeds"))
            repeats[name] = repeats.get(name, 0) + (many if isinstance(many, int) else 1)
            found = {**record, "milliseconds": run.times.milliseconds.get(name)}
            for metric in view_of(run.experiment).metrics:
                value = as_number(_length(found.get(metric.key)))
                if value is None:
                    continue
                values.setdefault((name, metric), []).append(value)
                error = found.get(f"{metric.key}_se", found.get(f"{metric.key}_error"))
                if (error := as_number(error)) is not None and math.isfinite(error):
                    errors.setdefault((name, metric), []).append(error)
    for (name, metric), numbers in values.items():
        mean, spread, count = _mean(numbers)
        own = errors.get((name, metric))
        error = math.hypot(*own) / len(own) if own else spread
        many = repeats[name] if count else 0
        place = replace(setting, estimator=name)
        yield Summary(place, metric, mean, error, many, len(numbers) - count)


def _joint_error(one: Summary, other: Summary) -> float:
    return math.hypot(one.error or 0.0, other.error or 0.0)


def _length(value: Any) -> Any:
    """A bias in several parameters counts by its length, and in one by its size."""
    if not isinstance(value, list):
        return value
    numbers = [as_number(item) for item in value]
    return None if None in numbers else math.hypot(*(x for x in numbers if x is not None))


def _mean(values: Sequence[float]) -> tuple[float, float | None, int]:
    finite = [value for value in values if math.isfinite(value)]
    if not finite:
        return math.nan, None, 0
    mean = math.fsum(finite) / len(finite)
    if len(finite) < 2:
        return mean, None, 1
    variance = math.fsum((value - mean) ** 2 for value in finite) / (len(finite) - 1)
    return mean, math.sqrt(variance / len(finite)), len(finite)
