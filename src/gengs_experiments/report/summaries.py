r"""A setting's number over its seeds, and beside the paper's.

For R finished runs with values :math:`v_r`: the mean :math:`\bar v` and its standard error
:math:`s/\sqrt R`. Wherever the report writes ±, it is this one standard error. A difference counts
as one if it is larger than two standard errors: of ours alone beside the paper's tables, which
come without errors; of the difference, :math:`\sqrt{e_1^2 + e_2^2}`, between two of ours.
"""

__all__ = ["PUBLISHED", "Summary", "Verdict", "best_of", "published", "summarise"]

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..study.published import TABLE1, TABLE2, Table
from .metric_catalogue import Metric, metrics_of, view_of
from .record_columns import as_number
from .run_results import RunResult
from .seed_groups import SeedGroups, Setting, grouped

Verdict = Literal["better", "worse", "within", "single"]


def _transposed(rows: Mapping[str, Mapping[str, float | None]]) -> dict[str, dict[str, Any]]:
    columns = dict.fromkeys(column for row in rows.values() for column in row)
    return {c: {name: row[c] for name, row in rows.items() if c in row} for c in columns}


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
    mean: float  # over the finite values; NaN if there are none
    error: float | None = None  # the mean's standard error, where there are two values at least
    count: int = 1  # how many runs it is the mean of (or seeds, or gradients, within one run)
    lost: int = 0  # how many more were NaN or infinite

    @property
    def paper(self) -> float | None:
        """The published number, where there is one to compare with."""
        return published(self.setting, self.metric)[0]

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
    single: list[Summary] = []
    for setting, runs in groups.items():
        read = _of_estimators if view_of(setting.experiment).many_estimators else _of_evaluation
        for run in runs:
            single += read(setting, run) if run.state == "done" else ()
    return [_pooled(own) for own in grouped(single, "setting", "metric")]


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
    errors = [math.hypot(one.error or 0.0, best.error or 0.0) for one in known]
    return [o for o, e in zip(known, errors, strict=True) if abs(o.mean - best.mean) <= 2 * e]


def published(setting: Setting, metric: Metric) -> tuple[float | None, str]:
    """The paper's number and how it is written; a dash is "no convergence", nothing no number."""
    row = PUBLISHED.get(setting.table, {}).get(setting.data, {}).get(setting.condition, {})
    if not metric.published or setting.estimator not in row:
        return None, ""
    number = row[setting.estimator]
    return number, "—" if number is None else f"{number:,.{metric.digits or 0}f}"


def _of_evaluation(setting: Setting, run: RunResult) -> Iterator[Summary]:
    record = run.records.last.get(("evaluation", ""), {})
    for metric in metrics_of(setting.experiment, record):
        if metric.key != "step" and (value := as_number(record[metric.key])) is not None:
            yield Summary(setting, metric, value)


def _of_estimators(setting: Setting, run: RunResult) -> Iterator[Summary]:
    """A run that measures many estimators: a setting for each."""
    for (kind, name), record in run.records.last.items():
        if "estimator" not in record or not (record.get("last") or kind == "measurement"):
            continue
        many = record.get("gradients", run.config.get("seeds"))
        count = many if isinstance(many, int) else 1
        numbers = {**record, "milliseconds": run.milliseconds.get(name)}
        for metric in view_of(setting.experiment).metrics:
            if (value := _length(numbers.get(metric.key))) is not None:
                error = numbers.get(f"{metric.key}_se", numbers.get(f"{metric.key}_error"))
                place = replace(setting, estimator=name)
                yield Summary(place, metric, value, as_number(error), count)


def _length(value: Any) -> float | None:
    """A bias in several parameters counts by its length, and in one by its size."""
    parts = [as_number(part) for part in (value if isinstance(value, list) else [value])]
    numbers = [part for part in parts if part is not None]
    if len(numbers) < len(parts):
        return None
    return math.hypot(*numbers) if isinstance(value, list) else numbers[0]


def _pooled(runs: Sequence[Summary]) -> Summary:
    """Single runs as one: their own errors count, where they have some, or else their spread."""
    finite = [one for one in runs if math.isfinite(one.mean)]
    values = [one.mean for one in finite] or [math.nan]
    errors = [one.error for one in finite if one.error is not None and math.isfinite(one.error)]
    error = math.hypot(*errors) / len(errors) if errors else None
    if not errors and len(values) > 1:
        error = math.sqrt(statistics.variance(values) / len(values))
    return replace(
        runs[0],
        mean=statistics.fmean(values),
        error=error,
        count=sum(one.count for one in finite),
        lost=len(runs) - len(finite),
    )
