"""The records of a synthetic run as curves: smoothed, with bands of two standard errors."""

from __future__ import annotations

__all__ = ["PANELS", "Band", "Curve", "curves"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .synthetic_style import place

Array = NDArray[np.float64]

PANELS = {
    "excess": "expected loss above its minimum",
    "variance": "variance of a gradient",
    "bias": "|mean gradient − exact gradient|",
    "error": "mean distance of a single gradient from the exact one",
}
"""What is drawn, and how the panels are called. The last two are different questions: an unbiased
estimator may have the largest distance."""


@dataclass(frozen=True)
class Band:
    """A curve and the band around it."""

    step: Array
    mean: Array
    low: Array
    high: Array

    @property
    def clear(self) -> NDArray[np.bool_]:
        """Where the mean is more than four standard errors from zero."""
        return self.mean < np.exp(2 / 4) * self.low


@dataclass(frozen=True)
class Curve:
    """The curves of one estimator, by panel."""

    label: str
    group: str
    panels: dict[str, Band]


def curves(records: Sequence[Mapping[str, Any]], window: int, points: int = 90) -> list[Curve]:
    """Moving averages over the last ``window`` steps (the bias: five times as many).

    Bands multiply and divide by ``exp(2 s.e. / mean)``, so that they stay positive on a log scale.
    The standard error of an averaged loss is at most the average of the standard errors, which is
    what is taken; biases are averaged with their sign, and their errors as independent ones. At
    most ``points`` points are kept of a curve.
    """
    found: dict[str, list[Mapping[str, Any]]] = {}
    for record in records:
        found.setdefault(record["estimator"], []).append(record)
    return [
        Curve(label, lines[-1]["group"], _panels(lines, window, points))
        for label, lines in sorted(found.items(), key=lambda item: place(item[0]))
        if lines[-1].get("last")
    ]


def _panels(lines: Sequence[Mapping[str, Any]], window: int, points: int) -> dict[str, Band]:
    minimum = float(lines[-1]["minimum"])
    steps = _array(lines, "step")
    loss = _moving(steps, _array(lines, "loss") - minimum, window)
    spread = _moving(steps, _array(lines, "loss_se"), window)
    panels = {"excess": _band(steps, loss, spread)}

    measured = [line for line in lines if "variance" in line]
    steps = _array(measured, "step")
    for name in ("variance", "error"):
        if name in measured[0]:
            mean = _moving(steps, _array(measured, name), window)
            panels[name] = _band(
                steps, mean, _moving(steps, _array(measured, f"{name}_se"), window)
            )
    if "bias" in measured[0]:
        window *= 5  # it hardly moves, and much less of it than of its noise is to be seen
        bias = np.array([line["bias"] for line in measured], dtype=np.float64)  # (M, parameters)
        mean = np.linalg.norm(_moving(steps, bias, window), axis=-1)
        squares = _moving(steps, _array(measured, "bias_se") ** 2, window)
        panels["bias"] = _band(steps, mean, np.sqrt(squares / _count(steps, window)))
    return {name: _thinned(band, points) for name, band in panels.items()}


def _thinned(band: Band, points: int) -> Band:
    """Fewer points, closer to each other in the beginning, where most happens."""
    last = len(band.step) - 1
    kept = np.unique(np.round(last * np.linspace(0, 1, points) ** 2).astype(np.intp))
    return Band(band.step[kept], band.mean[kept], band.low[kept], band.high[kept])


def _array(lines: Sequence[Mapping[str, Any]], name: str) -> Array:
    return np.array([line[name] for line in lines], dtype=np.float64)


def _first(steps: Array, window: int) -> NDArray[np.intp]:
    """The first entry of each window, that of the last ``window`` steps."""
    return np.searchsorted(steps, steps - window, side="right")


def _count(steps: Array, window: int) -> Array:
    return (np.arange(1, len(steps) + 1) - _first(steps, window)).astype(np.float64)


def _moving(steps: Array, values: Array, window: int) -> Array:
    total = np.concatenate([np.zeros_like(values[:1]), values.cumsum(0)])
    sums = total[1:] - total[_first(steps, window)]
    return sums / _count(steps, window).reshape(-1, *(1,) * (values.ndim - 1))


def _band(step: Array, mean: Array, error: Array) -> Band:
    positive = np.maximum(mean, 1e-12)
    factor = np.exp(np.minimum(2 * error / positive, 3.0))
    return Band(step, positive, positive / factor, positive * factor)
