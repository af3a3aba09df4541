"""Charts as plain data: the page's own script hands them to Plotly in light or dark colours.

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
from .metric_catalogue import metrics_of
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
    data: dict[str, Any]
    if experiment == "measure":
        title = "Bias, variance and cost"
        note = (
            "Bars: two standard errors. A hollow point is a bias within them of zero. "
            "The area of a point is the time of one gradient."
        )
        data = {"type": "points", "views": _points(summaries)}
    elif experiment == "synthetic":
        title = "Descents"
        note = (
            "Moving averages of means over seeds; bands: two standard errors. "
            "A bias is drawn where it is more than four standard errors from zero."
        )
        data = {"type": "curves", "views": _descents(groups), "x": "step"}
        data |= {"menus": ["law", "shows"], "log": True}
    else:
        title, note = "Training curves", "Means over the seeds; bands: two standard errors."
        data = {"type": "curves", "views": _trainings(experiment, groups), "x": "step"}
        data |= {"menus": ["setting", "shows"]}
    return Chart(f"chart-{experiment}", title, note, data) if data["views"] else None


def _trainings(experiment: str, groups: SeedGroups) -> Views:
    """Training curves by estimator."""
    views: Views = {}
    for label, look in looks(setting.estimator for setting in groups).items():
        for setting, runs in groups.items():
            for title, band in _titled(experiment, runs if setting.estimator == label else ()):
                if len(band.step) > 1:
                    view = views.setdefault(_panel(setting, groups), {})
                    view.setdefault(title, []).append(_line(label, look, band))
    return views


def _titled(experiment: str, runs: Sequence[RunResult]) -> Iterable[tuple[str, Band]]:
    """Evaluations under their titles in the order of the tables, then the training loss."""
    evaluations = training_curves(runs, "evaluation")
    for metric in metrics_of(experiment, evaluations):
        yield metric.title, evaluations[metric.key]
    train = training_curves(runs, "train")
    for key, title in (("loss", "training loss"), ("gradient_norm", "gradient norm")):
        if key in train:
            yield title, train[key]


def _descents(groups: SeedGroups) -> Views:
    """Loss, variance and both kinds of bias over the descents, by law."""
    views: Views = {}
    for setting, runs in groups.items():
        drawn: dict[str, dict[str, Band]] = {}
        for run in runs:
            window = run.config.get("window")
            drawn |= descent_curves(run.records, window if isinstance(window, int) else 100)
        for label, look in looks(drawn).items():
            for panel, band in drawn[label].items():
                view = views.setdefault(_panel(setting, groups), {})
                view.setdefault(PANELS[panel], []).append(_line(label, look, band))
    return {
        place: {title: view[title] for title in PANELS.values() if title in view}
        for place, view in views.items()
    }


def _points(summaries: Sequence[Summary]) -> dict[str, list[dict[str, Any]]]:
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
    return {
        row: [members[label] for label in found if label in members]
        for row, members in points.items()
    }


def _panel(setting: Setting, groups: SeedGroups) -> str:
    """The name of a view: what of table, data and condition varies."""
    varying = [
        key
        for key in ("table", "data", "condition")
        if len({getattr(one, key) for one in groups}) > 1
    ]
    words = [table_title(getattr(setting, key)) for key in varying]
    return " · ".join(filter(None, words)) or setting.data or setting.table


def _appearance(label: str, look: Look) -> dict[str, Any]:
    return {"label": label, "kindTitle": KINDS[look.kind], **asdict(look)}


def _line(label: str, look: Look, band: Band) -> dict[str, Any]:
    curves = {"x": band.step, "y": band.mean, "low": band.low, "high": band.high}
    numbers = {name: [_round(value) for value in values] for name, values in curves.items()}
    return {**_appearance(label, look), "count": band.count, **numbers}


def _round(value: float) -> float | None:
    """Five digits: the page stays small."""
    return float(f"{value:.5g}") if math.isfinite(value) else None
