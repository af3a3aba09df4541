"""A study as a TOML file: one of your own, or one of ours in ``tables/``.

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

Only ``experiment`` is needed. Of the settings that no label names, the first of the grid makes the
columns and the others the rows, where there is no label for them. A larger table names its rows and
columns, as ours do (copy one to begin with):

.. code-block:: toml

    [rows]                       # the settings of each; `row` and `column` are their names
    "Pois(2)" = { prior = "poisson(2)" }
    "Geom(.5)" = { prior = "geometric(0.5)" }

    [columns]                    # where a column and a row disagree, the column is right
    GenGS = { like = "short", estimator = "GenGS" }
    EAT = { estimator = "ArrivalTimes", level = 0, only = ["Pois(2)"] }  # not in other rows

    [like.short]                 # settings that others build on
    epochs = 2

    [[runs]]                     # all rows and columns that an entry or a grid does not choose
    row = "Pois(2)"
    grid = { seed = [0, 1] }

    [budgets.smoke]              # what is different with --budget smoke
    base = { epochs = 1 }

``[repeat]`` is a grid around everything: all runs with its first values, then all with the second.
"""

__all__ = ["STUDIES", "read_study"]

import itertools
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..runs.config import from_json, nearest, to_json
from .plan import Plan, PlannedRun

STUDIES = ("figure3", "table1", "table2", "midcdf")
"""Ours: the paper's figure and tables, and the mid-CDF estimator against its rivals in a VAE."""

Settings = dict[str, Any]
_BRACES = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class _Labels:
    table: str | None = None
    row: str | None = None
    column: str | None = None
    data: str | None = None

    def given(self) -> dict[str, str]:
        return {label: text for label, text in vars(self).items() if text is not None}


@dataclass(frozen=True)
class _StudyFile:
    experiment: str
    name: str | None = None
    base: Settings = field(default_factory=dict)
    grid: dict[str, list[Any]] = field(default_factory=dict)
    runs: list[Settings] = field(default_factory=list)
    labels: _Labels = field(default_factory=_Labels)
    like: dict[str, Settings] = field(default_factory=dict)
    rows: dict[str, Settings] = field(default_factory=dict)
    columns: dict[str, Settings] = field(default_factory=dict)
    repeat: dict[str, list[Any]] = field(default_factory=dict)
    budgets: dict[str, Settings] = field(default_factory=dict)

    @property
    def axes(self) -> dict[str, dict[str, Settings]]:
        """The names that ``row`` and ``column`` stand for, as far as there are any."""
        both = {"row": self.rows, "column": self.columns}
        return {axis: known for axis, known in both.items() if known}

    def named(self, names: Mapping[str, str], where: str) -> Settings | None:
        """The settings of a row and a column; ``None`` where they do not go together."""
        settings: Settings = {}
        for axis, name in names.items():
            found = self.expanded(_known(self.axes[axis], name, f"{axis} in {where}"), where)
            only = found.pop("only", [*names.values()])
            if not isinstance(only, list):
                raise TypeError(f"expected a list for `only` of {name!r}, but got {only!r}.")
            if not set(only) & set(names.values()):
                return None
            settings |= found
        return settings

    def expanded(self, settings: Settings, where: str) -> Settings:
        """Settings on top of those that they are like."""
        own = dict(settings)
        like = own.pop("like", None)
        return own if like is None else {**_known(self.like, like, f"`like` in {where}"), **own}


def read_study(study: str | Path, budget: str | None = None) -> Plan:
    """Read a file, or one of :data:`STUDIES`; with budgets and without a word, the small one.

    The ``ValueError`` or ``TypeError`` for a mistake names the file and the nearest key.
    """
    path = Path(study)
    if path.suffix != ".toml":
        if study not in STUDIES:
            raise ValueError(f"there is no study {study!r}{nearest(str(study), STUDIES)}")
        path = Path(__file__).with_name("tables") / f"{study}.toml"
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ValueError(f"there is no file {path}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} is not TOML: {error}") from error
    if "experiment" not in content:
        raise ValueError(f'{path} does not say which experiment, such as experiment = "vae".')
    file = from_json(_StudyFile, content, str(path))
    if file.budgets:
        budget = budget or "small"
        changes = _known(file.budgets, budget, f"budget in {path}")
        file = from_json(_StudyFile, _merged(content, changes), f"{path} [budgets.{budget}]")
    elif budget is not None:
        raise ValueError("a budget is for the built-in studies: a file says all itself.")
    name = path.stem if file.name is None else file.name
    if not re.fullmatch(r"[\w.-]+", name):
        raise ValueError(f"expected a name of letters, digits, '.', '_', '-', but got {name!r}.")
    runs = tuple(_runs(file, str(path), {"table": name, **_templates(file)}))
    return Plan(name, budget or "custom", runs)


def _merged(content: Settings, changes: Settings) -> Settings:
    """Sections and their parts as they are changed; anything else is replaced."""
    merged = dict(content)
    for key, value in changes.items():
        both = isinstance(value, dict) and isinstance(content.get(key), dict)
        merged[key] = _merged(content[key], value) if both else value
    return merged


def _runs(file: _StudyFile, path: str, templates: dict[str, str]) -> Iterator[PlannedRun]:
    """All runs, in order, with their labels filled in."""
    entries = [(f"[[runs]] {number}", entry) for number, entry in enumerate(file.runs, 1)]
    if file.grid or not file.runs:
        _check_grid(file.grid, file.base, f"{path} [grid]")
        entries.insert(0, ("[base] and [grid]", {"grid": file.grid}))
    base = file.expanded(file.base, f"{path} [base]")
    for repeated in _points(file.repeat):
        for section, given in entries:
            where = f"{path} {section}"
            own = dict(given)
            parts: Settings = {key: own.pop(key) for key in ("grid", "labels") if key in own}
            entry = from_json(_StudyFile, {"experiment": file.experiment, **parts}, where)
            _check_grid(entry.grid, own, f"{where} grid")
            own = file.expanded(own, where)
            grid = dict(entry.grid)
            for axis, known in file.axes.items():
                if axis not in own:
                    grid.setdefault(axis, list(known))  # all of them, where none is chosen
            for point in _points(grid):
                chosen = {**own, **point, **repeated}
                names = {axis: str(chosen.pop(axis)) for axis in file.axes}
                named = file.named(names, where)
                if named is None:
                    continue
                try:
                    run = PlannedRun(file.experiment, {**base, **named, **chosen})
                    values, texts = to_json(run.config) | names, templates | entry.labels.given()
                    labels = {label: _filled(text, values) for label, text in texts.items()}
                    yield replace(run, labels=labels)
                except (TypeError, ValueError) as error:
                    raise type(error)(f"{where}: {error}") from error


def _known(section: Mapping[str, Settings], name: str, what: str) -> Settings:
    if name not in section:
        raise ValueError(f"unknown {what}: {name!r}{nearest(str(name), section)}")
    return section[name]


def _check_grid(grid: Mapping[str, list[Any]], fixed: Settings, where: str) -> None:
    for key, values in grid.items():
        if not values:
            raise ValueError(f"expected a list for {key!r} in {where}, but it is empty.")
        if key in fixed:
            raise ValueError(f"{key!r} has one value, and a list of them in {where}.")


def _points(grid: Mapping[str, list[Any]]) -> Iterator[Settings]:
    for point in itertools.product(*grid.values()):
        yield dict(zip(grid, point, strict=True))


def _templates(file: _StudyFile) -> dict[str, str]:
    """The labels, with ``{setting}`` where a setting's value belongs."""
    names = itertools.chain(file.grid, *file.runs)
    apart = {"seed", "data", "grid", "labels", "like", "row", "column"}
    apart |= {name for text in file.labels.given().values() for name in _BRACES.findall(text)}
    varied = [f"{{{name}}}" for name in dict.fromkeys(names) if name not in apart]
    usual = {"column": "{column}"}
    if not file.columns and file.labels.column is None:
        usual["column"] = varied.pop(0) if varied else "{seed}"
    if file.rows or varied:
        usual["row"] = "{row}" if file.rows else ", ".join(varied)
    if "data" in file.base or "data" in file.grid:
        usual["data"] = "{data}"
    return usual | file.labels.given()


def _filled(template: str, values: Mapping[str, Any]) -> str:
    """``{prior}`` as the prior; nothing else is special."""

    def filled(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise ValueError(f"unknown setting {match[1]!r} in [labels]{nearest(match[1], values)}")
        value = values[match[1]]
        return ", ".join(map(str, value)) if isinstance(value, list) else str(value)

    return _BRACES.sub(filled, template)
