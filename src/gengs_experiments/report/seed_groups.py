"""Runs that differ in their seed alone are one setting: one cell of a table, one curve.

In a study, labels say where a run belongs: table, data, row and column, of which one is the
estimator. Runs outside a study are labelled by their configuration: the estimator, and what else
differs among them.
"""

__all__ = ["SeedGroups", "Setting", "group_runs", "grouped", "mixed_settings"]

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, TypeVar

from gengs.lab.palette import kind_of

from ..runs.run_status import STATES
from .metric_catalogue import view_of
from .run_results import RunResult, StudyResults, settings_that_differ

T = TypeVar("T")
_PLACED = {"seed", "data", "corpus", "estimator", "estimators"}


@dataclass(frozen=True)
class Setting:
    """Where a number belongs."""

    experiment: str
    table: str
    data: str
    condition: str  # what estimators are compared on: a prior, a law, a number of layers
    estimator: str


SeedGroups = Mapping[Setting, Sequence[RunResult]]


def grouped(members: Iterable[T], *names: str) -> list[list[T]]:
    """Those together that are alike in these of their attributes."""
    groups: dict[Any, list[T]] = {}
    for one in members:
        groups.setdefault(attrgetter(*names)(one), []).append(one)
    return list(groups.values())


def group_runs(studies: Sequence[StudyResults]) -> dict[Setting, list[RunResult]]:
    """The runs of each setting, in the order of the plans."""
    found: dict[Setting, list[RunResult]] = {}  # as if columns were the estimators everywhere
    # runs outside of a study are compared with one another, whichever folder they came from
    every = (run for study in studies for run in study.runs)
    loose = grouped((run for run in every if not run.labels), "experiment")
    differing = {runs[0].experiment: _differing(runs) for runs in loose}
    for study in studies:
        for run in study.runs:
            if run.labels:
                table, *place = (run.labels.get(k, "") for k in ("table", "data", "row", "column"))
                table = table or study.name
            else:
                table, place = "", _described(run, differing[run.experiment])
            found.setdefault(Setting(run.experiment, table, *place), []).append(run)
    places = {one: one for one in found}
    for own in grouped(found, "experiment", "table"):
        if _rows_are_estimators({one: found[one] for one in own}):
            turn = {o: replace(o, condition=o.estimator, estimator=o.condition) for o in own}
            places.update(turn)
    return {places[one]: _distinct(runs) for one, runs in found.items()}


def mixed_settings(groups: SeedGroups) -> list[str]:
    """A sentence for each mean over runs that differ in more than their seed."""
    sentences = []
    for place, runs in groups.items():
        done = [run for run in runs if run.state == "done"]
        names = {name for run in done[1:] for name in settings_that_differ(done[0], run)} - {"seed"}
        if names:
            labels = (place.table, place.data, place.condition, place.estimator)
            cell = ", ".join(label for label in labels if label)
            sentences.append(
                f"{cell}: a mean over runs that differ in {', '.join(sorted(names))}, not only in "
                "their seed"
            )
    return sentences


def _distinct(runs: Sequence[RunResult]) -> list[RunResult]:
    """The same configuration with the same seed, in two studies, is one run: no second opinion."""
    best: dict[str, RunResult] = {}
    for run in runs:
        key = json.dumps(run.config, sort_keys=True, default=str)
        if key not in best or STATES.index(run.state) < STATES.index(best[key].state):
            best[key] = run
    return list(best.values())


def _rows_are_estimators(table: SeedGroups) -> bool:
    """Whether the conditions of a table are its estimators, and the other way round.

    The estimator varies along the labels of the other side; where it does so on neither side or on
    both, the side with names of estimators has them, and else the columns.
    """
    rows_vary, columns_vary = (_varies(table, side) for side in ("condition", "estimator"))
    if rows_vary != columns_vary:
        return columns_vary
    named = any(kind_of(one.condition) != "other" for one in table)
    return named and all(kind_of(one.estimator) == "other" for one in table)


def _varies(table: SeedGroups, side: str) -> bool:
    """Whether runs with the same label on this side have different estimators."""
    kinds: dict[str, set[str]] = {}
    for setting, runs in table.items():
        found = {str(run.config["estimator"]) for run in runs if "estimator" in run.config}
        kinds.setdefault(getattr(setting, side), set()).update(found)
    return any(len(found) > 1 for found in kinds.values())


def _described(run: RunResult, differing: Sequence[str]) -> list[str]:
    """Data, row and column from the configuration."""
    key = view_of(run.experiment).row_setting
    extra = [f"{k.replace('_', ' ')} {_short(run.config.get(k))}" for k in differing if k != key]
    row = _short(run.config.get(key, "")) if key else ""
    if run.experiment == "nvpdef":
        above = run.config.get("super_topics")
        layers = 1 + (len(above) if isinstance(above, list) else bool(above))
        row = f"{layers} layers" if layers > 1 else "1 layer"
    if "estimator" not in run.config:  # it has several
        return ["", ", ".join([row, *extra]), "all estimators"]
    column = str(run.config["estimator"])
    data = run.config.get("data", run.config.get("corpus", ""))
    return [str(data), row, ", ".join([column, *extra])]


def _differing(runs: Sequence[RunResult]) -> list[str]:
    """The settings in which runs of an experiment differ, but those that have a place."""
    values: dict[str, set[str]] = {}
    for run in runs:
        for key, value in run.config.items():
            values.setdefault(key, set()).add(json.dumps(value, sort_keys=True, default=str))
    return [key for key, seen in values.items() if len(seen) > 1 and key not in _PLACED]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:39] + "…"
