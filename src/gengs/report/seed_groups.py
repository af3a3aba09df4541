"""Runs that differ in their seed alone are one setting: one cell of a table, one curve.

In a study, labels say where a run belongs: table, data, row and column, of which one is the
estimator. Runs outside a study are labelled by their configuration: the estimator, and what else
differs among them.
"""

from __future__ import annotations

__all__ = ["SeedGroups", "Setting", "group_runs", "mixed_settings"]

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..lab.palette import kind_of
from ..runs.run_status import STATES
from .metric_catalogue import view_of
from .run_results import RunResult, StudyResults, settings_that_differ

_PLACED = {"seed", "data", "corpus", "estimator", "estimators"}


@dataclass(frozen=True)
class Setting:
    """Where a number belongs."""

    experiment: str
    table: str
    data: str
    condition: str
    """What estimators are compared on: a prior, a law, a number of layers."""
    estimator: str


SeedGroups = Mapping[Setting, Sequence[RunResult]]

_Place = tuple[tuple[str, str], str, tuple[str, str]]
"""Experiment and table, data, row and column."""


def group_runs(studies: Sequence[StudyResults]) -> dict[Setting, list[RunResult]]:
    """The runs of each setting, in the order of the plans."""
    found: dict[_Place, list[RunResult]] = {}
    for study in studies:
        loose = [run for run in study.runs if not run.labels]
        differing = {name: _differing(loose, name) for name in {run.experiment for run in loose}}
        for run in study.runs:
            if run.labels:
                places = [run.labels.get(key, "") for key in ("table", "data", "row", "column")]
                places[0] = places[0] or study.name
            else:
                places = _described(run, study.name, differing[run.experiment])
            key = (run.experiment, places[0])
            found.setdefault((key, places[1], (places[2], places[3])), []).append(run)
    sides = {
        key: _estimator_side({p: runs for p, runs in found.items() if p[0] == key})
        for key in {place[0] for place in found}
    }
    return {
        Setting(*key, data, pair[1 - sides[key]], pair[sides[key]]): _distinct(runs)
        for (key, data, pair), runs in found.items()
    }


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


def _estimator_side(table: Mapping[_Place, Sequence[RunResult]]) -> int:
    """Whether the rows (0) or the columns (1) of a table are its estimators.

    The side on which the estimator varies along the other one's labels; where neither or both do,
    the side whose labels are names of estimators, and else the columns.
    """
    rows_vary, columns_vary = (_varies(table, side) for side in (0, 1))
    if rows_vary != columns_vary:
        return 0 if columns_vary else 1
    rows, columns = ({kind_of(pair[side]) for _, _, pair in table} for side in (0, 1))
    return 0 if columns == {"other"} != rows else 1


def _varies(table: Mapping[_Place, Sequence[RunResult]], side: int) -> bool:
    """Whether runs with the same label on this side have different estimators."""
    kinds: dict[str, set[str]] = {}
    for (_, _, pair), runs in table.items():
        found = {str(run.config["estimator"]) for run in runs if "estimator" in run.config}
        kinds.setdefault(pair[side], set()).update(found)
    return any(len(found) > 1 for found in kinds.values())


def _described(run: RunResult, name: str, differing: Sequence[str]) -> list[str]:
    """Table, data, row and column from the configuration."""
    key = view_of(run.experiment).row_setting
    extra = [f"{k.replace('_', ' ')} {_short(run.config.get(k))}" for k in differing if k != key]
    row = _short(run.config.get(key, "")) if key else ""
    if run.experiment == "nvpdef":
        layers = run.config.get("super_topics")
        row = "2 layers" if layers else "1 layer"
        if isinstance(layers, list) and len(layers) > 1:
            row = f"{len(layers) + 1} layers"
    if "estimator" not in run.config:  # it has several
        return [name, "", ", ".join([row, *extra]), "all estimators"]
    column = str(run.config["estimator"])
    data = run.config.get("data", run.config.get("corpus", ""))
    return [name, str(data), row, ", ".join([column, *extra])]


def _differing(runs: Sequence[RunResult], experiment: str) -> list[str]:
    values: dict[str, set[str]] = {}
    for run in runs:
        if run.experiment == experiment:
            for key, value in run.config.items():
                values.setdefault(key, set()).add(json.dumps(value, sort_keys=True, default=str))
    return [key for key, seen in values.items() if len(seen) > 1 and key not in _PLACED]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:39] + "…"
