"""Runs that differ in their seed alone are one setting: one cell of a table, one curve.

In a study, labels say where a run belongs: table, data, row and column. Runs outside a study are
labelled by their configuration: the estimator, and what else differs among them.
"""

from __future__ import annotations

__all__ = ["Setting", "Side", "group_runs", "orientation"]

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from .palette import kind_of
from .runs import PROGRESS, Run, Study

Side = Literal["row", "column"]

_ROWS = {"vae": "prior", "topics": "super_topics", "measure": "law", "synthetic": "law"}
_PLACED = {"seed", "data", "corpus", "estimator", "estimators"}


@dataclass(frozen=True)
class Setting:
    """Where a number belongs."""

    experiment: str
    table: str
    data: str
    row: str
    column: str


def group_runs(studies: Sequence[Study]) -> dict[Setting, list[Run]]:
    """The runs of each setting, in the order of the plans."""
    found: dict[Setting, list[Run]] = {}
    for study in studies:
        loose = [run for run in study.runs if not run.labels]
        differing = {name: _differing(loose, name) for name in {run.experiment for run in loose}}
        for run in study.runs:
            if run.labels:
                places = [run.labels.get(key, "") for key in ("table", "data", "row", "column")]
                places[0] = places[0] or study.name
            else:
                places = _described(run, study.name, differing[run.experiment])
            found.setdefault(Setting(run.experiment, *places), []).append(run)
    return {setting: _different(runs) for setting, runs in found.items()}


def _different(runs: Sequence[Run]) -> list[Run]:
    """The same configuration with the same seed, in two studies, is one run: no second opinion."""
    best: dict[str, Run] = {}
    for run in runs:
        key = json.dumps(run.config, sort_keys=True, default=str)
        if key not in best or PROGRESS.index(run.state) < PROGRESS.index(best[key].state):
            best[key] = run
    return list(best.values())


def orientation(settings: Mapping[Setting, Sequence[Run]]) -> dict[str, Side]:
    """For each table, whether its rows or its columns are the estimators.

    The side on which the estimator varies along the other one's labels; where neither or both do,
    the side whose labels are names of estimators, and else the columns.
    """
    tables: dict[str, dict[Setting, Sequence[Run]]] = {}
    for setting, runs in settings.items():
        tables.setdefault(setting.table, {})[setting] = runs
    return {table: _estimator_side(members) for table, members in tables.items()}


def _estimator_side(settings: Mapping[Setting, Sequence[Run]]) -> Side:
    varies = {side: _varies(settings, side) for side in ("row", "column")}
    if varies["row"] != varies["column"]:
        return "row" if varies["column"] else "column"
    named = {side: {kind_of(getattr(one, side)) for one in settings} for side in varies}
    return "row" if named["column"] == {"other"} != named["row"] else "column"


def _varies(settings: Mapping[Setting, Sequence[Run]], side: str) -> bool:
    """Whether runs with the same label on this side have different estimators."""
    kinds: dict[str, set[str]] = {}
    for setting, runs in settings.items():
        found = {str(run.config["estimator"]) for run in runs if "estimator" in run.config}
        kinds.setdefault(getattr(setting, side), set()).update(found)
    return any(len(found) > 1 for found in kinds.values())


def _described(run: Run, name: str, differing: Sequence[str]) -> list[str]:
    """Table, data, row and column from the configuration."""
    key = _ROWS.get(run.experiment, "")
    extra = [f"{k.replace('_', ' ')} {_short(run.config.get(k))}" for k in differing if k != key]
    row = _short(run.config.get(key, "")) if key else ""
    if run.experiment == "topics":
        layers = run.config.get("super_topics")
        row = "2 layers" if layers else "1 layer"
        if isinstance(layers, list) and len(layers) > 1:
            row = f"{len(layers) + 1} layers"
    if "estimator" not in run.config:  # it has several
        return [name, "", ", ".join([row, *extra]), "all estimators"]
    column = str(run.config["estimator"])
    data = run.config.get("data", run.config.get("corpus", ""))
    return [name, str(data), row, ", ".join([column, *extra])]


def _differing(runs: Sequence[Run], experiment: str) -> list[str]:
    values: dict[str, set[str]] = {}
    for run in runs:
        if run.experiment == experiment:
            for key, value in run.config.items():
                values.setdefault(key, set()).add(json.dumps(value, sort_keys=True, default=str))
    return [key for key, seen in values.items() if len(seen) > 1 and key not in _PLACED]


def _short(value: Any) -> str:
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    return text if len(text) <= 40 else text[:39] + "…"
