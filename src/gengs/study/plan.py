"""A study is a list of runs: which experiment, with which settings, and where it stands in a table.

A run's id is readable and stable: a few settings that a person would name it by, and a hash of the
experiment and all settings that are not the default. A new setting with a default changes no id;
nor does a new default, which is why an id alone does not say what was run (:mod:`.finished`).

A study is a folder:

====================  ==========================================================================
plan.json             the study's name, budget and runs
runs/<id>/            a run folder each (:mod:`gengs.study.records`); ``error.txt`` if it failed
====================  ==========================================================================

Example:
    >>> from gengs.experiments.vae import VaeConfig
    >>> run = Run("vae", VaeConfig(prior="poisson(3)", seed=2), {"row": "Pois(3)"})
    >>> run.id
    'digits-poisson-3-implicit-midcdf-seed2-...'
"""

from __future__ import annotations

__all__ = ["Plan", "Run", "read_plan", "write_plan"]

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..experiments.registry import EXPERIMENTS, Experiment
from .atomic import write_atomically
from .config import defaults, from_json, nearest, to_json
from .nonfinite import dumps, loads

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,119}")


@dataclass(frozen=True)
class Run:
    """One run of a study.

    Args:
        experiment: The name of an experiment.
        config: Its configuration.
        labels: Where its result belongs: ``table``, ``row``, ``column``, ``data``.
        id: The name of its folder; by default made from the experiment and the configuration.
    """

    experiment: str
    config: Any
    labels: Mapping[str, str] = field(default_factory=dict)
    id: str = ""

    def __post_init__(self) -> None:
        kind = experiment_named(self.experiment, "a run").config_class
        if not isinstance(self.config, kind):
            raise TypeError(
                f"expected a {kind.__name__} for the experiment {self.experiment!r}, but got a "
                f"{type(self.config).__name__}."
            )
        if self.seed < 0:  # some generators refuse it, after the others have begun
            name = self.id or _id(self.experiment, self.config)
            raise ValueError(
                f"expected a `seed` of at least 0 for the run {name}, but got {self.seed}."
            )
        if not self.id:
            object.__setattr__(self, "id", _id(self.experiment, self.config))
        # It becomes a path, and may come from a file.
        if not _ID.fullmatch(self.id):
            raise ValueError(f"expected a run's id of a-z, 0-9, '.', '_', '-', but got {self.id!r}")

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.config.seed)


@dataclass(frozen=True)
class Plan:
    """A study: its name, its budget, and its runs, no two alike."""

    name: str
    budget: str
    runs: tuple[Run, ...]

    def __post_init__(self) -> None:
        seen: set[str] = set()
        for run in self.runs:
            if run.id in seen:
                raise ValueError(f"the study {self.name!r} has the run {run.id} twice.")
            seen.add(run.id)


def experiment_named(name: str, where: str) -> Experiment:
    """The experiment of this name.

    Raises:
        ValueError: If there is none; the message names the nearest one.
    """
    if name not in EXPERIMENTS:
        raise ValueError(f"unknown experiment {name!r} in {where}{nearest(name, EXPERIMENTS)}")
    return EXPERIMENTS[name]


def write_plan(folder: str | Path, plan: Plan) -> None:
    """Write ``plan.json``, atomically."""
    runs = [
        {
            "id": run.id,
            "experiment": run.experiment,
            "config": to_json(run.config),
            "labels": dict(run.labels),
        }
        for run in plan.runs
    ]
    content = {"name": plan.name, "budget": plan.budget, "runs": runs}
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / "plan.json", (dumps(content, indent=2) + "\n").encode())


def read_plan(folder: str | Path) -> Plan:
    """Read the plan of a study folder.

    Raises:
        ValueError: If there is none, or it is damaged.
    """
    file = Path(folder) / "plan.json"
    try:
        content = loads(file.read_bytes())
    except FileNotFoundError:
        raise ValueError(f"{folder} is not the folder of a study: no plan.json.") from None
    except (ValueError, LookupError) as error:
        raise ValueError(f"{file} is damaged: {error}") from error
    try:
        _check_keys(content, ("name", "budget", "runs"), file)
        runs = []
        for number, entry in enumerate(content["runs"]):
            where = f"{file}, runs[{number}]"
            _check_keys(entry, ("id", "experiment", "config", "labels"), where)
            kind = experiment_named(entry["experiment"], where).config_class
            config = from_json(kind, entry["config"], where)
            labels = {str(key): str(value) for key, value in entry["labels"].items()}
            runs.append(Run(entry["experiment"], config, labels, str(entry["id"])))
        return Plan(str(content["name"]), str(content["budget"]), tuple(runs))
    except (AttributeError, TypeError) as error:
        raise ValueError(f"{file} is damaged: {error}") from error


def _check_keys(content: Mapping[str, Any], keys: tuple[str, ...], where: object) -> None:
    for key in content:
        if key not in keys:
            raise ValueError(f"unknown key {key!r} in {where}{nearest(key, keys)}")
    for key in keys:
        if key not in content:
            raise ValueError(f"{where} lacks the key {key!r}.")


def _id(experiment: str, config: Any) -> str:
    usual = defaults(type(config))
    settings = {
        name: value
        for name, value in to_json(config).items()
        if name not in usual or json.dumps(value, default=str) != json.dumps(usual[name])
    }
    text = json.dumps([experiment, settings], sort_keys=True, default=str)
    named = [to_json(config)[name] for name in EXPERIMENTS[experiment].named_by]
    words = re.sub(r"[^a-z0-9.]+", "-", "-".join(map(str, named)).lower()).strip("-.")
    return f"{words[:80]}-seed{config.seed}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
