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
    for settings, section in _settings(file, path):
        try:
            run = PlannedRun(file.experiment, settings)
            values = to_json(run.config)
            labels = {label: _filled(text, values) for label, text in templates.items()}
            runs.append(PlannedRun(file.experiment, run.config, labels))
        except (TypeError, ValueError) as error:
            raise type(error)(f"{path} {section}: {error}") from error
    return Plan(name, "custom", tuple(runs))


def _settings(file: _StudyFile, path: Path) -> Iterator[tuple[dict[str, Any], str]]:
    """The settings of each run, and where they come from."""
    for key, values in file.grid.items():
        if not values:
            raise ValueError(f"expected a list for {key!r} in {path} [grid], but it is empty.")
        if key in file.base:
            raise ValueError(f"{key!r} is in [base] and in [grid] of {path}.")
    if file.grid or not file.runs:
        for point in itertools.product(*file.grid.values()):
            yield {**file.base, **dict(zip(file.grid, point, strict=True))}, "[base] and [grid]"
    for number, settings in enumerate(file.runs, 1):
        yield {**file.base, **settings}, f"[[runs]] {number}"


def _templates(file: _StudyFile) -> dict[str, str]:
    """The labels, with ``{setting}`` where a setting's value belongs."""
    names = itertools.chain(file.grid, *file.runs)
    varied = dict.fromkeys(name for name in names if name not in ("seed", "data"))
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
