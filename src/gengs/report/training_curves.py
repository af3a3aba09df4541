"""Curves of training: the seeds of a setting averaged, with a band of two standard errors.

Seeds are averaged at the steps that all of them have reached, so that a curve never jumps where a
run ends; a run that is still under way shortens the curve and says so in its count.
"""

from __future__ import annotations

__all__ = ["Curve", "training_curves"]

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .runs import Run

POINTS = 200
"""At most so many points are kept of a curve."""


@dataclass(frozen=True)
class Curve:
    """A mean over seeds, and its band where there are two at least."""

    x: list[float]
    y: list[float]
    low: list[float]
    high: list[float]
    count: int


def training_curves(runs: Sequence[Run], kind: str) -> dict[str, Curve]:
    """The curve of every number in records of this kind (``train``, ``evaluation``)."""
    series = [found for run in runs if (found := _series(run, kind))]
    curves = {}
    for key in dict.fromkeys(key for one in series for key in one):
        members = [one[key] for one in series if key in one]
        steps = sorted(set.intersection(*(set(one) for one in members)))
        if not steps:
            continue
        steps = _thinned(steps)
        columns = [[one[step] for one in members] for step in steps]
        means = [math.fsum(column) / len(column) for column in columns]
        errors = [_error(column) for column in columns]
        low, high = [], []
        if len(members) > 1:
            low = [mean - 2 * error for mean, error in zip(means, errors, strict=True)]
            high = [mean + 2 * error for mean, error in zip(means, errors, strict=True)]
        curves[key] = Curve([float(s) for s in steps], means, low, high, len(members))
    return curves


def _series(run: Run, kind: str) -> dict[str, dict[float, float]]:
    """Step → value, for each number."""
    found: dict[str, dict[float, float]] = {}
    for record in run.records:
        if record.get("kind") == kind and _is_finite(record.get("step")):
            for key, value in _numbers(record).items():
                found.setdefault(key, {})[float(record["step"])] = value
    return found


def _numbers(record: Mapping[str, Any]) -> dict[str, float]:
    return {
        key: float(value)
        for key, value in record.items()
        if key not in ("kind", "step") and _is_finite(value)
    }


def _is_finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and value is not True and math.isfinite(value)


def _thinned(steps: list[float]) -> list[float]:
    if len(steps) <= POINTS:
        return steps
    kept = {round(i * (len(steps) - 1) / (POINTS - 1)) for i in range(POINTS)}
    return [steps[i] for i in sorted(kept)]


def _error(column: Sequence[float]) -> float:
    if len(column) < 2:
        return 0.0
    mean = math.fsum(column) / len(column)
    variance = math.fsum((value - mean) ** 2 for value in column) / (len(column) - 1)
    return math.sqrt(variance / len(column))
