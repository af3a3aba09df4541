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
from pathlib import Path
from typing import Any

from .config import from_json, nearest, to_json
from .plan import Plan, Run, experiment_named

_KEYS = ("name", "experiment", "base", "grid", "runs", "labels")
_LABELS = ("table", "row", "column", "data")


def read_study(path: str | Path) -> Plan:
    """Read a study.

    Raises:
        ValueError: If the file is not as above; the message names the file and the nearest key.
        TypeError: If a setting has the wrong type.
    """
    path = Path(path)
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from error
    for key in content:
        if key not in _KEYS:
            raise ValueError(f"unknown key {key!r} in {path}{nearest(key, _KEYS)}")
    if "experiment" not in content:
        raise ValueError(f'{path} does not say which experiment, such as experiment = "vae".')
    name = content.get("name", path.stem)
    if not isinstance(name, str) or not re.fullmatch(r"[\w.-]+", name):
        raise ValueError(f"expected a name of letters, digits, '.', '_', '-', but got {name!r}.")
    experiment = experiment_named(str(content["experiment"]), str(path))
    templates = _templates(path, content)
    runs = []
    for settings, where in _settings(path, content):
        config = from_json(experiment.config_class, settings, where)
        values = to_json(config)
        labels = {"table": name} | {
            label: _filled(template, values, f"{path} [labels]")
            for label, template in templates.items()
        }
        runs.append(Run(experiment.name, config, labels))
    return Plan(name, "custom", tuple(runs))


def _settings(path: Path, content: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], str]]:
    """The settings of each run, and where they come from."""
    base, grid = _section(path, content, "base"), _section(path, content, "grid")
    extra = _extra(path, content)
    for key, values in grid.items():
        if not isinstance(values, list) or not values:
            raise ValueError(f"expected a list for {key!r} in {path} [grid], but got {values!r}.")
        if key in base:
            raise ValueError(f"{key!r} is in [base] and in [grid] of {path}.")
    if grid or not extra:
        for values in itertools.product(*grid.values()):
            yield {**base, **dict(zip(grid, values, strict=True))}, f"{path} [base] and [grid]"
    for number, settings in enumerate(extra, 1):
        yield {**base, **settings}, f"{path} [[runs]] {number}"


def _templates(path: Path, content: Mapping[str, Any]) -> dict[str, str]:
    templates = _section(path, content, "labels")
    for label, template in templates.items():
        if label not in _LABELS:
            raise ValueError(f"unknown label {label!r} in {path}{nearest(label, _LABELS)}")
        if not isinstance(template, str):
            raise ValueError(f"expected text for the label {label!r} in {path}.")
    varied = [key for key in _section(path, content, "grid") if key not in ("seed", "data")]
    varied += [key for one in _extra(path, content) for key in one if key not in ("seed", "data")]
    column, *rows = dict.fromkeys(varied) or ("seed",)
    default = {"column": f"{{{column}}}"}
    if rows:
        default["row"] = ", ".join(f"{{{key}}}" for key in rows)
    if "data" in _section(path, content, "base") or "data" in _section(path, content, "grid"):
        default["data"] = "{data}"
    return default | templates


def _extra(path: Path, content: Mapping[str, Any]) -> list[dict[str, Any]]:
    extra = content.get("runs", [])
    if not isinstance(extra, list) or not all(isinstance(one, dict) for one in extra):
        raise ValueError(f"expected [[runs]] in {path} to be tables of settings.")
    return extra


def _section(path: Path, content: Mapping[str, Any], key: str) -> dict[str, Any]:
    section = content.get(key, {})
    if not isinstance(section, dict):
        raise ValueError(f"expected [{key}] in {path} to be a table, but got {section!r}.")
    return section


def _filled(template: str, values: Mapping[str, Any], where: str) -> str:
    """``{prior}`` as the prior; nothing else is special."""

    def filled(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise ValueError(f"unknown setting {match[1]!r} in {where}{nearest(match[1], values)}")
        value = values[match[1]]
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    return re.sub(r"\{(\w+)\}", filled, template)
