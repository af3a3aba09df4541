r"""A setting's number over its seeds, and beside the paper's.

For R finished runs with values :math:`v_r`: the mean :math:`\bar v` and its standard error
:math:`s/\sqrt R`. The paper's tables come without errors, so a difference counts as one if it is
larger than two of our standard errors; of a single run nothing can be said.
"""

from __future__ import annotations

__all__ = ["PUBLISHED", "Summary", "Verdict", "is_dash", "published", "summarise"]

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ..study.paper import TABLE1, TABLE2, Table
from .metrics import METRICS, Metric, metrics_of
from .runs import Run
from .settings import Setting

Verdict = Literal["better", "worse", "within", "single"]

PUBLISHED: dict[str, Table] = {"table1": TABLE1, "table2": TABLE2}
"""The paper's tables, by the name of the table in a study."""


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


def summarise(settings: Mapping[Setting, Sequence[Run]]) -> list[Summary]:
    """All metrics of all settings, from the runs that are done."""
    summaries: list[Summary] = []
    for setting, runs in settings.items():
        done = [run for run in runs if run.state == "done"]
        if setting.experiment in ("synthetic", "measure"):
            summaries += _of_estimators(setting, done)
        else:
            summaries += _of_evaluations(setting, done)
    return summaries


def _of_evaluations(setting: Setting, runs: Sequence[Run]) -> list[Summary]:
    last = [found[-1] for run in runs if (found := _evaluations(run))]
    keys = [key for record in last for key in record if key not in ("kind", "step")]
    summaries = []
    for metric in metrics_of(setting.experiment, keys):
        values = [v for record in last if (v := _number(record.get(metric.key))) is not None]
        mean, error, count = _mean(values)
        paper = published(setting) if metric.published else None
        lost = len(values) - count
        if values:
            summaries.append(Summary(setting, metric, mean, error, count, lost, paper))
    return summaries


def _of_estimators(setting: Setting, runs: Sequence[Run]) -> list[Summary]:
    """Runs that measure many estimators: a column for each, with errors of its own."""
    values: dict[tuple[str, Metric], list[float]] = {}
    errors: dict[tuple[str, Metric], list[float]] = {}
    seeds: dict[str, int] = {}
    for run in runs:
        many = run.config.get("seeds")
        for record in _last_records(run):
            name = str(record["estimator"])
            repeats = record.get("replicates", many)
            seeds[name] = seeds.get(name, 0) + (repeats if isinstance(repeats, int) else 1)
            for metric in METRICS[run.experiment]:
                value = _number(_length(record.get(metric.key)))
                if value is None:
                    continue
                values.setdefault((name, metric), []).append(value)
                error = record.get(f"{metric.key}_se", record.get(f"{metric.key}_error"))
                if (error := _number(error)) is not None and math.isfinite(error):
                    errors.setdefault((name, metric), []).append(error)
    summaries = []
    for (name, metric), found in values.items():
        place = replace(setting, column=name)
        mean, spread, count = _mean(found)
        own = errors.get((name, metric))
        error = math.hypot(*own) / len(own) if own else spread
        lost = len(found) - count
        summaries.append(Summary(place, metric, mean, error, seeds[name] if count else 0, lost))
    return summaries


def _last_records(run: Run) -> Iterator[dict[str, Any]]:
    """What a run found about each estimator in the end, its time included."""
    times = {str(line.get("estimator")): line.get("milliseconds") for line in run.timings}
    for record in run.records:
        if "estimator" in record and (record.get("last") or record.get("kind") == "measurement"):
            yield {**record, "milliseconds": times.get(str(record["estimator"]))}


def published(setting: Setting) -> float | None:
    """The paper's number for a setting; ``None`` where it has none."""
    table = PUBLISHED.get(setting.table, {})
    return table.get(setting.data, {}).get(setting.row, {}).get(setting.column)


def is_dash(setting: Setting) -> bool:
    """Whether the paper has a dash there: no convergence."""
    row = PUBLISHED.get(setting.table, {}).get(setting.data, {}).get(setting.row, {})
    return setting.column in row and row[setting.column] is None


def _evaluations(run: Run) -> list[Mapping[str, Any]]:
    return [record for record in run.records if record.get("kind") == "evaluation"]


def _number(value: Any) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value is not True else None


def _length(value: Any) -> Any:
    """A bias in several parameters counts by its length, and in one by its size."""
    if not isinstance(value, list):
        return value
    numbers = [_number(item) for item in value]
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
