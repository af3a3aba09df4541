"""A study is a list of runs: which experiment, with which settings, and where it stands in a table.

A run's id is readable and stable: a few settings that a person would name it by, and a hash of the
experiment and all settings that are not the default. A new setting with a default changes no id;
nor does a new default, which is why an id alone does not say what was run
(:mod:`gengs_experiments.runs.run_status`).

A study is a folder:

====================  ==========================================================================
plan.json             the study's name, budget and runs
runs/<id>/            a run folder each (``runs/records.py``); ``error.txt`` if it failed
====================  ==========================================================================

Example:
    >>> from gengs_experiments.experiments.vae_settings import VaeConfig
    >>> run = PlannedRun("vae", VaeConfig(prior="poisson(3)", seed=2), {"row": "Pois(3)"})
    >>> run.id
    'digits-poisson-3-tilted-midcdf-2-antithetic-true-seed2-...'
    >>> run.title
    'Pois(3), seed 2'
"""

__all__ = ["Plan", "PlannedRun", "check_folder", "read_plan", "select", "write_plan"]

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..experiments.registry import EXPERIMENTS
from ..runs.config import defaults, from_json, nearest, to_json
from ..runs.json_lines import loads, write_json

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,119}")


@dataclass(frozen=True)
class PlannedRun:
    """One run of a study."""

    experiment: str
    config: Any
    """The experiment's configuration; or its settings as JSON, which become one."""
    labels: dict[str, str] = field(default_factory=dict)
    """Where its result belongs: ``table``, ``row``, ``column``, ``data``."""
    id: str = ""
    """The name of its folder; by default made from the experiment and the configuration."""

    def __post_init__(self) -> None:
        name, config = self.experiment, self.config
        if name not in EXPERIMENTS:
            hint = nearest(self.experiment, EXPERIMENTS)
            raise ValueError(f"unknown experiment {self.experiment!r}{hint}")
        if isinstance(config, Mapping):
            config = from_json(EXPERIMENTS[name].config_class, config, self.id or "config")
        vars(self).update(config=config, id=self.id or _id(name, config))
        if self.seed < 0:  # some generators refuse it, after the others have begun
            raise ValueError(
                f"expected a `seed` of at least 0 for the run {self.id}, but got {self.seed}."
            )
        # It becomes a path, and may come from a file.
        if not _ID.fullmatch(self.id):
            raise ValueError(f"expected a run's id of a-z, 0-9, '.', '_', '-', but got {self.id!r}")

    @property
    def seed(self) -> int:
        """The seed of the run."""
        return int(self.config.seed)

    @property
    def title(self) -> str:
        """The run as its table names it, ``mnist, Pois(2), RF*, seed 0``, or by its id."""
        words = [self.labels[key] for key in ("data", "row", "column") if self.labels.get(key)]
        return ", ".join([*words, f"seed {self.seed}"]) if words else self.id


@dataclass(frozen=True)
class Plan:
    """A study: its name, its budget, and its runs, no two alike."""

    name: str
    budget: str
    runs: tuple[PlannedRun, ...]

    def __post_init__(self) -> None:
        for id, count in Counter(run.id for run in self.runs).items():
            if count > 1:
                raise ValueError(f"the study {self.name!r} has the run {id} twice.")


def write_plan(folder: str | Path, plan: Plan) -> None:
    """Write ``plan.json``, atomically."""
    Path(folder).mkdir(parents=True, exist_ok=True)
    write_json(Path(folder) / "plan.json", to_json(plan))


def read_plan(folder: str | Path) -> Plan:
    """Read the plan of a study folder; ``ValueError`` if there is none, or it is damaged."""
    file = Path(folder) / "plan.json"
    try:
        return from_json(Plan, loads(file.read_bytes()), "it")
    except FileNotFoundError:
        raise ValueError(f"{folder} is not the folder of a study: no plan.json.") from None
    except (ValueError, LookupError, TypeError) as error:
        raise ValueError(f"{file} is damaged: {error}") from error


def check_folder(folder: Path, plan: Plan) -> None:
    """Raise ``ValueError`` for a folder with another study, or no study but something else."""
    if (folder / "plan.json").exists():
        known = read_plan(folder)
        if (known.name, known.budget) != (plan.name, plan.budget):
            raise ValueError(
                f"{folder} holds the study {known.name} ({known.budget}), not {plan.name} "
                f"({plan.budget}): choose another folder with --out."
            )
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"expected a new folder or a study, but {folder} holds something else.")


def select(runs: Sequence[PlannedRun], only: Iterable[str]) -> list[PlannedRun]:
    """The runs whose labels (or seed) have the values of ``label=value`` texts.

    Several values of one label are alternatives; ``ValueError`` if no run has one.
    """
    labelled = [(run, {**run.labels, "seed": str(run.seed)}) for run in runs]
    wanted: dict[str, set[str]] = {}
    for text in only:
        label, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"expected label=value for --only, but got {text!r}.")
        values = {labels[label] for _, labels in labelled if label in labels}
        if not values:
            names = {name for _, labels in labelled for name in labels}
            raise ValueError(f"no run has a label {label!r}{nearest(label, names)}")
        if value not in values:
            raise ValueError(f"no run has {label} {value!r}{nearest(value, values)}")
        wanted.setdefault(label, set()).add(value)
    return [
        run
        for run, labels in labelled
        if all(labels.get(label) in values for label, values in wanted.items())
    ]


def _id(experiment: str, config: Any) -> str:
    settings = to_json(config)
    usual = defaults(type(config)) | {"kl_warm_up": 0}  # ids outlive a new default
    unusual = {k: v for k, v in settings.items() if k not in usual or repr(v) != repr(usual[k])}
    text = json.dumps([experiment, unusual], sort_keys=True)
    named = [settings[name] for name in EXPERIMENTS[experiment].named_by]
    words = re.sub(r"[^a-z0-9.]+", "-", "-".join(map(str, named)).lower()).strip("-.")
    return f"{words[:80]}-seed{config.seed}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"
