"""Curves with bands of two standard errors: of training, over its seeds, and of descents.

Seeds are averaged at the steps that all of them have reached, so that a curve never jumps where a
run ends; a run that is still under way shortens the curve and says so in its count.

A descent (``gengs synthetic``) has its means and errors in the records. It is smoothed by an
average over the ``window`` steps around each step, a tenth of all at most, and fewer in the
beginning, where most happens.
"""

__all__ = ["PANELS", "Band", "descent_curves", "training_curves"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce

import numpy as np
from numpy.typing import NDArray

from .record_columns import RecordColumns, as_number
from .run_results import RunResult

Array = NDArray[np.float64]

PANELS = {
    "excess": "expected loss above its minimum",
    "variance": "variance of a gradient",
    "bias": "|mean gradient − exact gradient|",
    "error": "mean distance of a single gradient from the exact one",
}
"""What is drawn of a descent. The last two are different questions: an unbiased estimator may have
the largest distance."""

TRAINING_POINTS = 200
DESCENT_POINTS = 90


@dataclass(frozen=True)
class Band:
    """A curve, and the band around it where there is one: of two seeds at least."""

    step: Array
    mean: Array
    low: Array = field(default_factory=lambda: np.empty(0))
    high: Array = field(default_factory=lambda: np.empty(0))
    count: int = 0  # the number of runs, where it is a mean over runs


def training_curves(runs: Sequence[RunResult], kind: str) -> dict[str, Band]:
    """The curve of every number in records of this kind (``train``, ``evaluation``)."""
    members: dict[str, list[tuple[Array, Array]]] = {}
    for run in runs:
        for key, pair in run.records.series(kind).items():
            members.setdefault(key, []).append(pair)
    curves = {}
    for key, pairs in members.items():
        steps = reduce(np.intersect1d, (own for own, _ in pairs))
        if not len(steps):
            continue
        kept = np.linspace(0, len(steps) - 1, min(len(steps), TRAINING_POINTS)).round()
        steps = steps[kept.astype(np.intp)]
        values = np.stack([y[np.searchsorted(x, steps)] for x, y in pairs])  # (runs, steps)
        mean, count = values.mean(0), len(pairs)
        curves[key] = Band(steps, mean, count=count)
        if count > 1:
            error = values.std(0, ddof=1) / np.sqrt(count)
            curves[key] = Band(steps, mean, mean - 2 * error, mean + 2 * error, count)
    return curves


def descent_curves(records: RecordColumns, window: int) -> dict[str, dict[str, Band]]:
    """The panels of each estimator whose descent has come to its end.

    Bands multiply and divide by ``exp(2 s.e. / mean)``, so that they stay positive on a log scale.
    The standard error of an averaged loss is at most the average of the standard errors, which is
    what is taken; biases are averaged with their sign over five times as many steps, their errors
    as independent ones, and where the mean is less than four of them from zero, it is NaN.
    """
    found = {}
    for (kind, label), last in records.last.items():
        minimum = as_number(last.get("minimum"))
        if label and last.get("last") and minimum is not None:
            panels = _panels(records.series(kind, label), window, minimum)
            found[label] = {name: _thinned(band) for name, band in panels.items()}
    return found


def _panels(
    series: Mapping[str, tuple[Array, Array]], window: float, minimum: float
) -> dict[str, Band]:
    steps = series["loss"][0]
    window = min(window, (steps[-1] - steps[0]) / 10)
    panels = {}
    for panel, name in (("excess", "loss"), ("variance", "variance"), ("error", "error")):
        if name in series:
            mean = _moving(*series[name], window) - (minimum if name == "loss" else 0.0)
            error = _moving(*series[f"{name}_se"], window)
            positive = np.maximum(mean, 1e-12)
            factor = np.exp(np.minimum(2 * error / positive, 3.0))
            panels[panel] = Band(series[name][0], positive, positive / factor, positive * factor)
    parts = [series[name] for name in series if name.startswith("bias/")]
    if parts:
        window *= 5  # it hardly moves, and much less of it than of its noise is to be seen
        steps = parts[0][0]
        bias = np.stack([_moving(steps, values, window) for _, values in parts])
        mean = np.linalg.norm(bias, axis=0)
        first, end = _ends(steps, window)
        variance = _moving(steps, series["bias_se"][1] ** 2, window) / (end - first)
        clear = mean > 4 * np.sqrt(variance)
        if clear.any():  # a panel without a curve is none
            panels["bias"] = Band(steps, np.where(clear, mean, np.nan))
    return {name: panels[name] for name in PANELS if name in panels}


def _thinned(band: Band) -> Band:
    """Fewer points, closer to each other in the beginning, where most happens."""
    last = len(band.step) - 1
    kept = np.unique(np.round(last * np.linspace(0, 1, DESCENT_POINTS) ** 2).astype(np.intp))
    low, high = (side[kept] if len(side) else side for side in (band.low, band.high))
    return Band(band.step[kept], band.mean[kept], low, high)


def _ends(steps: Array, window: float) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The first entry of the window around each step, and the one after its last.

    A window is never wider than half of the steps before it: of one of a fixed width, a curve
    that falls fast would have a kink where the window is full.
    """
    half = np.minimum(window / 2, (steps - steps[0]) / 4)
    first = np.searchsorted(steps, steps - half, side="left")
    return first, np.searchsorted(steps, steps + half, side="right")


def _moving(steps: Array, values: Array, window: float) -> Array:
    total = np.concatenate([np.zeros(1), values.cumsum()])
    first, end = _ends(steps, window)
    means: Array = (total[end] - total[first]) / (end - first)
    return means
