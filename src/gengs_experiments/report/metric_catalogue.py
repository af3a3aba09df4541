"""What the report knows of each experiment: its metrics, which way is better, and its words.

They stand in ``experiments.toml``; of an experiment that it does not list, all numbers are shown
under their own names.
"""

__all__ = ["EXPERIMENT_VIEWS", "ExperimentView", "Metric", "metrics_of", "view_of"]

import tomllib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files

from ..runs.config import from_json


@dataclass(frozen=True)
class Metric:
    """One number of an evaluation."""

    key: str  # its name in the records
    title: str  # its name for people
    better: int = 0  # which way is better: -1 for less, 1 for more, 0 for neither
    published: bool = False  # whether the paper's tables can be compared with it
    digits: int | None = None  # after the point, where no error says how many
    tabulated: bool = True  # whether it has a table of its own, estimators by conditions
    ideal: float | None = None  # the best possible value, where there is one
    absent: str = ""  # why an estimator may not have it


@dataclass(frozen=True)
class ExperimentView:
    """How an experiment is shown."""

    title: str
    metrics: tuple[Metric, ...] = ()  # as in a table; the section opens on the first one
    intro: str = ""
    condition: str = "condition"  # what estimators are compared on
    row_setting: str = ""  # the setting that names a condition, where a run has no labels
    repeats: str = "runs"  # what a mean is over
    headline: str = ""  # what the first metric is called in a sentence about the best
    many_estimators: bool = False  # whether one run compares several


_WORDS = tomllib.loads((files(__package__) / "experiments.toml").read_text("utf-8"))

EXPERIMENT_VIEWS = {
    name: from_json(ExperimentView, words, f"experiments.toml [{name}]")
    for name, words in _WORDS.items()
}
"""The experiments in the order of the page."""


def view_of(experiment: str) -> ExperimentView:
    """How an experiment is shown, be it known or not."""
    return EXPERIMENT_VIEWS.get(experiment, ExperimentView(experiment))


def metrics_of(experiment: str, found: Iterable[str]) -> list[Metric]:
    """The metrics that were found, the known ones first and the rest under their own names."""
    keys = list(dict.fromkeys(found))
    known = [metric for metric in view_of(experiment).metrics if metric.key in keys]
    named = {metric.key for metric in known}
    return known + [Metric(key, key.replace("_", " ")) for key in keys if key not in named]
