"""Studies as a report sees them.

A folder given to the report may be a study (``plan.json`` and ``runs/``), one run
(``config.json``), or a folder with some of either in it.
"""

from __future__ import annotations

__all__ = ["PROGRESS", "Run", "State", "Study", "find_studies"]

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from .doubts import other_settings
from .one_run import PROGRESS, Run, State, load_run
from .reading import Unreadable, read_json

_DEPTH = 3  # a folder of folders of studies is as deep as it gets


@dataclass(frozen=True)
class Study:
    """Runs that belong together."""

    name: str
    budget: str | None
    runs: tuple[Run, ...]

    def count(self, state: State) -> int:
        """How many of its runs are in this state."""
        return sum(run.state == state for run in self.runs)


def find_studies(folders: Iterable[Path]) -> list[Study]:
    """All studies in these folders; runs outside any study make one, named after the folder.

    Raises:
        ValueError: If a folder does not exist, or nothing in them is a study or a run.
    """
    studies: list[Study] = []
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"expected the folder of a study or of runs, but {folder} is none.")
        loose: list[Run] = []
        _collect(folder, studies, loose, _DEPTH)
        if loose:
            studies.append(Study(folder.resolve().name, None, tuple(loose)))
    if not studies:
        raise ValueError(
            "expected a study (plan.json) or runs (config.json), but found neither in "
            f"{', '.join(map(str, folders))}."
        )
    return _without_doubles(studies)


def _collect(folder: Path, studies: list[Study], loose: list[Run], depth: int) -> None:
    if (folder / "plan.json").is_file():
        studies.append(_study(folder))
    elif (folder / "config.json").is_file():
        loose.append(load_run(folder, folder.name))
    elif depth > 0:
        for child in sorted(folder.iterdir()):
            if child.is_dir() and not child.name.startswith(".") and not child.is_symlink():
                _collect(child, studies, loose, depth - 1)


def _study(folder: Path) -> Study:
    plan = read_json(folder / "plan.json")  # without the plan there is nothing to report
    planned = plan.get("runs")
    if not isinstance(planned, list) or not all(isinstance(one, dict) for one in planned):
        raise Unreadable(f"expected a list of runs in {folder / 'plan.json'}.")
    runs = []
    for one in planned:
        name = str(one.get("id", ""))
        if Path(name).name != name or name in ("", ".", ".."):
            raise Unreadable(f"expected the name of a folder as a run's id, but got {name!r}.")
        config = one.get("config")
        labels = one.get("labels")
        runs.append(
            load_run(
                folder / "runs" / name,
                name,
                experiment=str(one.get("experiment", "")),
                config=config if isinstance(config, dict) else None,
                labels=labels if isinstance(labels, dict) else {},
            )
        )
    budget = plan.get("budget")
    return Study(
        str(plan.get("name") or folder.resolve().name),
        None if budget is None else str(budget),
        tuple(runs),
    )


def _without_doubles(studies: Sequence[Study]) -> list[Study]:
    """The same run in several copies of a study counts once."""
    copies: dict[tuple[str, str], list[Run]] = {}
    merged: dict[tuple[str, str | None], list[str]] = {}
    for study in studies:
        names = merged.setdefault((study.name, study.budget), [])
        for run in study.runs:
            key = (study.name, run.id)
            if key not in copies:
                names.append(run.id)
            copies.setdefault(key, []).append(run)
    return [
        Study(name, budget, tuple(_one_of(copies[name, run]) for run in names))
        for (name, budget), names in merged.items()
        if names
    ]


def _one_of(copies: Sequence[Run]) -> Run:
    """The one that is furthest; if several are done, they must agree, or nobody can say which."""
    run = min(copies, key=lambda copy: PROGRESS.index(copy.state))
    for copy in copies:
        if copy.state == run.state == "done":
            doubt = other_settings(run.experiment, run.config, copy.config, f"in {copy.folder}")
            if not doubt and repr(run.records) != repr(copy.records):
                doubt = f"its copy in {copy.folder} has other records"
            if doubt:
                return Run(run.id, run.experiment, run.config, run.labels, "different", error=doubt)
    return run
