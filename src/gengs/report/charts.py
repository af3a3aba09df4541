"""Charts as plain data: the page's own script hands them to Plotly in the colours of the hour.

A chart has *views*, one for each condition and metric, of which two menus choose one. Nothing here
is markup: labels stay text, and are escaped where they are shown.
"""

from __future__ import annotations

__all__ = ["Chart", "laboratory_chart", "synthetic_chart", "training_chart"]

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .metrics import METRICS
from .palette import KINDS, Look, looks
from .runs import Run
from .settings import Setting, orientation
from .summaries import Summary
from .synthetic_curves import PANELS, Band, curves
from .tables import table_title
from .training_curves import Curve, training_curves


@dataclass(frozen=True)
class Chart:
    """One chart of the page."""

    id: str
    title: str
    note: str
    data: dict[str, Any]
    """What the script draws: the kind of chart, its menus, and its curves or points."""


def training_chart(
    experiment: str, settings: Mapping[Setting, Sequence[Run]], number: int = 1
) -> Chart | None:
    """Training curves by estimator; nothing if no run has got anywhere."""
    views: dict[str, dict[str, list[dict[str, Any]]]] = {}
    sides = orientation(settings)
    labels = {setting: getattr(setting, sides[setting.table]) for setting in settings}
    for label, look in looks(labels.values()).items():
        for setting, runs in settings.items():
            if labels[setting] != label:
                continue
            across = "column" if sides[setting.table] == "row" else "row"
            panel = _panel(setting, across, settings)
            for title, curve in _titled_curves(experiment, runs).items():
                if len(curve.x) > 1:
                    line = _line(label, look, curve.x, curve.y, curve.low, curve.high)
                    line["count"] = curve.count
                    views.setdefault(panel, {}).setdefault(title, []).append(line)
    if not views:
        return None
    note = "Means over the seeds; bands: two standard errors."
    return Chart(
        f"chart-{experiment}-{number}",
        "Training curves",
        note,
        {"type": "curves", "views": views, "x": "step", "menus": ["setting", "shows"]},
    )


def _titled_curves(experiment: str, runs: Sequence[Run]) -> dict[str, Curve]:
    """Evaluations under their titles, then the training loss."""
    names = {metric.key: metric.title for metric in METRICS.get(experiment, ())}
    evaluations = training_curves(runs, "evaluation")
    shown = {names.get(key, key.replace("_", " ")): evaluations[key] for key in evaluations}
    train = training_curves(runs, "train")
    for key, title in (("loss", "training loss"), ("gradient_norm", "gradient norm")):
        if key in train:
            shown[title] = train[key]
    return shown


def _panel(setting: Setting, across: str, settings: Mapping[Setting, Sequence[Run]]) -> str:
    """The name of a view: what of table, data and condition varies."""
    words = [
        table_title(getattr(setting, key)) if key == "table" else getattr(setting, key)
        for key in ("table", "data", across)
        if len({getattr(one, key) for one in settings}) > 1
    ]
    return " · ".join(word for word in words if word) or setting.data or setting.table


def synthetic_chart(settings: Mapping[Setting, Sequence[Run]]) -> Chart | None:
    """Loss, variance and both kinds of bias over the descents, by law."""
    views: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for setting, runs in settings.items():
        drawn = {}
        for run in runs:
            window = run.config.get("window")
            for curve in curves(run.records, window if isinstance(window, int) else 100):
                drawn[curve.label] = curve
        for label, look in looks(drawn).items():
            for panel, title in PANELS.items():
                band = drawn[label].panels.get(panel)
                if band is not None:
                    line = _band_line(label, look, band, panel)
                    panel_name = _panel(setting, "row", settings)
                    views.setdefault(panel_name, {}).setdefault(title, []).append(line)
    if not views:
        return None
    note = (
        "Moving averages of means over seeds; bands: two standard errors. "
        "A bias is drawn where it is more than four standard errors from zero."
    )
    data = {"type": "curves", "views": views, "x": "step", "menus": ["law", "shows"], "log": True}
    return Chart("chart-synthetic", "Descents", note, data)


def _band_line(label: str, look: Look, band: Band, panel: str) -> dict[str, Any]:
    if panel == "bias":
        mean = [m if clear else None for m, clear in zip(band.mean, band.clear, strict=True)]
        return _line(label, look, band.step, mean, [], [])
    return _line(label, look, band.step, band.mean, band.low, band.high)


def laboratory_chart(summaries: Sequence[Summary]) -> Chart | None:
    """Bias, variance and cost of each estimator: a point each, on axes to choose."""
    points: dict[str, dict[str, dict[str, Any]]] = {}
    found = looks(one.setting.column for one in summaries)
    for one in summaries:
        place = points.setdefault(one.setting.row, {})
        look = found[one.setting.column]
        point = place.setdefault(
            one.setting.column,
            {"label": one.setting.column, **asdict(look), "kindTitle": KINDS[look.kind]},
        )
        if math.isfinite(one.mean):
            value = abs(one.mean) if one.metric.key == "bias" else one.mean
            point[one.metric.key] = _round(value)
            if one.error is not None:
                point[f"{one.metric.key}_error"] = _round(one.error)
    if not points:
        return None
    order = list(found)
    views = {
        row: sorted(members.values(), key=lambda point: order.index(point["label"]))
        for row, members in points.items()
    }
    note = (
        "Bars: two standard errors. A hollow point is a bias that cannot be told from zero. "
        "The area of a point is the time of one gradient."
    )
    return Chart(
        "chart-measure", "Bias, variance and cost", note, {"type": "points", "views": views}
    )


def _line(label: str, look: Look, x: Any, y: Any, low: Any, high: Any) -> dict[str, Any]:
    return {
        "label": label,
        "kindTitle": KINDS[look.kind],
        **asdict(look),
        "x": [_round(v) for v in x],
        "y": [None if v is None else _round(v) for v in y],
        "low": [_round(v) for v in low],
        "high": [_round(v) for v in high],
    }


def _round(value: float) -> float | None:
    """Five digits: the page stays small."""
    return float(f"{value:.5g}") if math.isfinite(value) else None
