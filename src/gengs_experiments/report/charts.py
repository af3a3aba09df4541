"""Charts as plain data: the page's own script hands them to Plotly in light or dark colours.

A chart has *views*, one for each condition and metric, of which two menus choose one. Nothing here
is markup: labels stay text, and are escaped where they are shown.
"""

__all__ = ["Chart", "make_chart"]

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

from gengs.lab.palette import KINDS, Look, looks

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
    data: dict[str, Any] = {"type": "curves", "x": "step"}
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
        data |= {"views": _descents(groups), "menus": ["law", "shows"], "log": True}
    else:
        title, note = "Training curves", "Means over the seeds; bands: two standard errors."
        data |= {"views": _trainings(experiment, groups), "menus": ["setting", "shows"]}
    return Chart(f"chart-{experiment}", title, note, data) if data["views"] else None


def _trainings(experiment: str, groups: SeedGroups) -> Views:
    """Training curves by estimator, in the order of a legend."""
    views: Views = defaultdict(lambda: defaultdict(list))
    found = looks(setting.estimator for setting in groups)
    order = list(found)
    for setting in sorted(groups, key=lambda one: order.index(one.estimator)):
        label = setting.estimator
        for title, band in _titled(experiment, groups[setting]):
            if len(band.step) > 1:
                views[_panel(setting, groups)][title].append(_line(label, found[label], band))
    return views


def _titled(experiment: str, runs: Sequence[RunResult]) -> Iterator[tuple[str, Band]]:
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
    views: Views = defaultdict(lambda: defaultdict(list))
    for setting, runs in groups.items():
        drawn: dict[str, dict[str, Band]] = {}
        for run in runs:
            window = run.config.get("window")
            drawn |= descent_curves(run.records, window if isinstance(window, int) else 100)
        for (panel, title), (label, look) in product(PANELS.items(), looks(drawn).items()):
            if panel in drawn[label]:
                line = _line(label, look, drawn[label][panel])
                views[_panel(setting, groups)][title].append(line)
    return views


def _points(summaries: Sequence[Summary]) -> dict[str, list[dict[str, Any]]]:
    """Bias, variance and cost of each estimator: a point each, on axes to choose."""
    found = looks(one.setting.estimator for one in summaries)
    points: dict[str, dict[str, dict[str, Any]]] = defaultdict(dict)
    for one in summaries:
        label, key = one.setting.estimator, one.metric.key
        look = _appearance(label, found[label])
        point = points[one.setting.condition].setdefault(label, look)
        if math.isfinite(one.mean):
            point[key] = _round(abs(one.mean) if key == "bias" else one.mean)
            if one.error is not None:
                point[f"{key}_error"] = _round(one.error)
    return {
        row: [members[label] for label in found if label in members]
        for row, members in points.items()
    }


def _panel(setting: Setting, groups: SeedGroups) -> str:
    """The name of a view: what of table, data and condition varies."""
    words = [
        table_title(getattr(setting, key))
        for key in ("table", "data", "condition")
        if len({getattr(one, key) for one in groups}) > 1
    ]
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
