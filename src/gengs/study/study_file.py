"""A study of your own, as a TOML file.

.. code-block:: toml

    experiment = "vae"

    [base]                       # settings of all runs
    data = "digits"
    epochs = 5

    [grid]                       # a run for each combination
    prior = ["poisson(2)", "geometric(0.5)"]
    estimator = ["GenGS", "MidCDF"]
    seed = [0, 1, 2]

    [[runs]]                     # more runs, each on top of [base]
    estimator = "RLOO(4)"
    grid = { seed = [0, 1] }     # a run for each combination, here too
    labels = { column = "ours" } # in place of those below

    [labels]                     # the table: words in braces are settings
    row = "{prior}"
    column = "{estimator}"

Only ``experiment`` is needed. Without ``[labels]``, the first setting of the grid makes the columns
and the others the rows.
"""

from __future__ import annotations

__all__ = ["read_study"]

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..runs.config import from_json, nearest, to_json
from .plan import Plan, PlannedRun


@dataclass(frozen=True)
class _Labels:
    table: str | None = None
    row: str | None = None
    column: str | None = None
    data: str | None = None


@dataclass(frozen=True)
class _Entry:
    """What an entry of ``[[runs]]`` has beside its settings."""

    grid: dict[str, list[Any]] = field(default_factory=dict)
    labels: _Labels = field(default_factory=_Labels)


@dataclass(frozen=True)
class _StudyFile:
    experiment: str
    name: str | None = None
    base: dict[str, Any] = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    runs: list[dict[str, Any]] = field(default_factory=list)
    labels: _Labels = field(default_factory=_Labels)


def read_study(path: str | Path) -> Plan:
    """Read a study; the ``ValueError`` or ``TypeError`` names the file and the nearest key."""
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from error
    if "experiment" not in content:
        raise ValueError(f'{path} does not say which experiment, such as experiment = "vae".')
    file = from_json(_StudyFile, content, str(path))
    name = path.stem if file.name is None else file.name
    if not re.fullmatch(r"[\w.-]+", name):
        raise ValueError(f"expected a name of letters, digits, '.', '_', '-', but got {name!r}.")
    templates = {"table": name, **_templates(file)}
    runs = []
    for settings, own, section in _settings(file, path):
        try:
            run = PlannedRun(file.experiment, settings)
            values = to_json(run.config)
            labels = {label: _filled(text, values) for label, text in (templates | own).items()}
            runs.append(PlannedRun(file.experiment, run.config, labels))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{path} {section}: {error}") from error
    return Plan(name, "custom", tuple(runs))


def _settings(file: _StudyFile, path: Path) -> Iterator[tuple[dict[str, Any], dict[str, str], str]]:
    """The settings of each run, its own labels, and where they come from."""
    if file.grid or not file.runs:
        for settings in _combinations(file.base, file.grid, f"{path} [grid]"):
            yield settings, {}, "[base] and [grid]"
    for number, given in enumerate(file.runs, 1):
        section = f"[[runs]] {number}"
        own = {key: given[key] for key in ("grid", "labels") if key in given}
        entry = from_json(_Entry, own, f"{path} {section}")
        fixed = {key: value for key, value in given.items() if key not in own}
        labels = {label: text for label, text in vars(entry.labels).items() if text is not None}
        for settings in _combinations(fixed, entry.grid, f"{path} {section} grid"):
            yield {**file.base, **settings}, labels, section


def _combinations(
    base: dict[str, Any], grid: dict[str, list[Any]], where: str
) -> Iterator[dict[str, Any]]:
    for key, values in grid.items():
        if not values:
            raise ValueError(f"expected a list for {key!r} in {where}, but it is empty.")
        if key in base:
            raise ValueError(f"{key!r} has one value, and a list of them in {where}.")
    for point in itertools.product(*grid.values()):
        yield {**base, **dict(zip(grid, point, strict=True))}


def _templates(file: _StudyFile) -> dict[str, str]:
    """The labels, with ``{setting}`` where a setting's value belongs."""
    names = itertools.chain(file.grid, *file.runs)
    varied = dict.fromkeys(n for n in names if n not in ("seed", "data", "grid", "labels"))
    column, *rows = varied or ("seed",)
    usual = {"column": f"{{{column}}}"}
    if rows:
        usual["row"] = ", ".join(f"{{{key}}}" for key in rows)
    if "data" in file.base or "data" in file.grid:
        usual["data"] = "{data}"
    return usual | {label: text for label, text in vars(file.labels).items() if text is not None}


def _filled(template: str, values: Mapping[str, Any]) -> str:
    """``{prior}`` as the prior; nothing else is special."""

    def filled(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise ValueError(f"unknown setting {match[1]!r} in [labels]{nearest(match[1], values)}")
        value = values[match[1]]
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    return re.sub(r"\{(\w+)\}", filled, template)
