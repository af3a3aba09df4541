"""Charts as plain data: the page's own script hands them to Plotly in the colours of the hour.

A chart has *views*, one for each condition and metric, of which two menus choose one. Nothing here
is markup: labels stay text, and are escaped where they are shown.
"""

from __future__ import annotations

__all__ = ["Chart", "make_chart"]

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..lab.palette import KINDS, Look, looks
from .curves import PANELS, Band, descent_curves, training_curves
from .metric_catalogue import view_of
from .run_results import RunResult
from .seed_groups import SeedGroups, Setting
from .summaries import Summary
from .tables import table_title

Views = dict[str, dict[str, list[dict[str, Any]]]]


@dataclass(frozen=True)
class Chart:
    """One chart of the page."""

    id: str
    title: str
    note: str
    data: dict[str, Any]
    """What the script draws: the kind of chart, its menus, and its curves or points."""


def make_chart(experiment: str, groups: SeedGroups, summaries: Sequence[Summary]) -> Chart | None:
    """The chart of an experiment; nothing if no run has got anywhere."""
    if experiment == "measure":
        return _laboratory_chart(summaries)
    if experiment == "synthetic":
        return _descent_chart(groups)
    return _training_chart(experiment, groups)


def _training_chart(experiment: str, groups: SeedGroups) -> Chart | None:
    """Training curves by estimator."""
    views: Views = {}
    for label, look in looks(setting.estimator for setting in groups).items():
        for setting, runs in groups.items():
            if setting.estimator != label:
                continue
            panel = _panel(setting, groups)
            for title, band in _titled_curves(experiment, runs).items():
                if len(band.step) > 1:
                    views.setdefault(panel, {}).setdefault(title, []).append(
                        _line(label, look, band)
                    )
    if not views:
        return None
    note = "Means over the seeds; bands: two standard errors."
    data = {"type": "curves", "views": views, "x": "step", "menus": ["setting", "shows"]}
    return Chart(f"chart-{experiment}", "Training curves", note, data)


def _titled_curves(experiment: str, runs: Sequence[RunResult]) -> dict[str, Band]:
    """Evaluations under their titles in the order of the tables, then the training loss."""
    evaluations = training_curves(runs, "evaluation")
    known = {metric.key: metric.title for metric in view_of(experiment).metrics}
    order = [key for key in known if key in evaluations]
    order += [key for key in evaluations if key not in known]
    shown = {known.get(key, key.replace("_", " ")): evaluations[key] for key in order}
    train = training_curves(runs, "train")
    for key, title in (("loss", "training loss"), ("gradient_norm", "gradient norm")):
        if key in train:
            shown[title] = train[key]
    return shown


def _descent_chart(groups: SeedGroups) -> Chart | None:
    """Loss, variance and both kinds of bias over the descents, by law."""
    views: Views = {}
    for setting, runs in groups.items():
        drawn: dict[str, dict[str, Band]] = {}
        for run in runs:
            window = run.config.get("window")
            drawn |= descent_curves(run.records, window if isinstance(window, int) else 100)
        place = _panel(setting, groups)
        found = looks(drawn)
        for panel, title in PANELS.items():
            lines = [
                _line(label, look, drawn[label][panel], with_band=panel != "bias")
                for label, look in found.items()
                if panel in drawn[label]
            ]
            if lines:
                views.setdefault(place, {})[title] = lines
    if not views:
        return None
    note = (
        "Moving averages of means over seeds; bands: two standard errors. "
        "A bias is drawn where it is more than four standard errors from zero."
    )
    data = {"type": "curves", "views": views, "x": "step", "menus": ["law", "shows"], "log": True}
    return Chart("chart-synthetic", "Descents", note, data)


def _laboratory_chart(summaries: Sequence[Summary]) -> Chart | None:
    """Bias, variance and cost of each estimator: a point each, on axes to choose."""
    found = looks(one.setting.estimator for one in summaries)
    points: dict[str, dict[str, dict[str, Any]]] = {}
    for one in summaries:
        label = one.setting.estimator
        place = points.setdefault(one.setting.condition, {})
        point = place.setdefault(label, _appearance(label, found[label]))
        if math.isfinite(one.mean):
            value = abs(one.mean) if one.metric.key == "bias" else one.mean
            point[one.metric.key] = _round(value)
            if one.error is not None:
                point[f"{one.metric.key}_error"] = _round(one.error)
    if not points:
        return None
    views = {
        row: [members[label] for label in found if label in members]
        for row, members in points.items()
    }
    note = (
        "Bars: two standard errors. A hollow point is a bias within them of zero. "
        "The area of a point is the time of one gradient."
    )
    data = {"type": "points", "views": views}
    return Chart("chart-measure", "Bias, variance and cost", note, data)


def _panel(setting: Setting, groups: SeedGroups) -> str:
    """The name of a view: what of table, data and condition varies."""
    words = [
        table_title(getattr(setting, key)) if key == "table" else getattr(setting, key)
        for key in ("table", "data", "condition")
        if len({getattr(one, key) for one in groups}) > 1
    ]
    return " · ".join(word for word in words if word) or setting.data or setting.table


def _appearance(label: str, look: Look) -> dict[str, Any]:
    return {"label": label, "kindTitle": KINDS[look.kind], **asdict(look)}


def _line(label: str, look: Look, band: Band, with_band: bool = True) -> dict[str, Any]:
    return {
        **_appearance(label, look),
        "count": band.count,
        "x": _rounded(band.step),
        "y": _rounded(band.mean),
        "low": _rounded(band.low) if with_band else [],
        "high": _rounded(band.high) if with_band else [],
    }


def _rounded(values: Iterable[float]) -> list[float | None]:
    return [_round(value) for value in values]


def _round(value: float) -> float | None:
    """Five digits: the page stays small."""
    return float(f"{value:.5g}") if math.isfinite(value) else None
