"""Studies and runs as a report sees them: whatever of them is there.

A folder given to the report may be a study (``plan.json`` and ``runs/``), one run
(``config.json``), or a folder with some of either in it. A run in the plan that nobody has begun is
*waiting*; one that another process holds the lock of is *running*; one that stopped before its end
is *unfinished*, or *failed* if it left an ``error.txt``.
"""

from __future__ import annotations

__all__ = ["PROGRESS", "Run", "State", "Study", "find_studies"]

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from ..experiments.registry import EXPERIMENTS
from .reading import Unreadable, read_json, read_lines, read_text

State = Literal["done", "running", "unfinished", "failed", "damaged", "waiting"]

PROGRESS: tuple[State, ...] = get_args(State)
"""The states, the one that says most first."""
_DEPTH = 3  # a folder of folders of studies is as deep as it gets


@dataclass(frozen=True)
class Run:
    """One run, or the place of one in a plan."""

    id: str
    experiment: str
    config: Mapping[str, Any]
    labels: Mapping[str, str]
    state: State
    folder: Path | None = None
    error: str = ""
    """The last line of what went wrong."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    records: Sequence[Mapping[str, Any]] = ()
    timings: Sequence[Mapping[str, Any]] = ()

    @property
    def seed(self) -> int | None:
        """The run's seed, where its configuration has one."""
        seed = self.config.get("seed")
        return seed if isinstance(seed, int) else None


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
        loose.append(_load_run(folder, folder.name))
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
            _load_run(
                folder / "runs" / name,
                name,
                experiment=str(one.get("experiment", "")),
                config=config if isinstance(config, dict) else {},
                labels=labels if isinstance(labels, dict) else {},
            )
        )
    budget = plan.get("budget")
    return Study(
        str(plan.get("name") or folder.resolve().name),
        None if budget is None else str(budget),
        tuple(runs),
    )


def _load_run(
    folder: Path,
    name: str,
    experiment: str = "",
    config: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
) -> Run:
    texts = {str(key): str(value) for key, value in (labels or {}).items()}
    planned = Run(name, experiment, config or {}, texts, "waiting")
    error = _last_line(folder / "error.txt")
    if not (folder / "config.json").is_file():
        if error:
            return Run(name, experiment, planned.config, texts, "failed", folder, error)
        return planned
    try:
        manifest = read_json(folder / "config.json")
        records = read_lines(folder / "records.jsonl")
        timings = read_lines(folder / "timings.jsonl")
    except Unreadable as problem:
        return Run(name, experiment, planned.config, texts, "damaged", folder, str(problem))
    experiment = experiment or _experiment_name(manifest)
    own = manifest.get("config")
    run = Run(
        name,
        experiment,
        own if isinstance(own, dict) else planned.config,
        texts,
        "done",
        folder,
        manifest=manifest,
        records=records,
        timings=timings,
    )
    state: State = "done"
    if not _is_complete(run):
        state = "running" if _is_locked(folder) else "failed" if error else "unfinished"
    shown = error if state == "failed" else ""
    return Run(**{**run.__dict__, "state": state, "error": shown})


def _experiment_name(manifest: Mapping[str, Any]) -> str:
    """``VaeConfig``, the class of a configuration, is called vae."""
    return str(manifest.get("experiment", "")).removesuffix("config")


def _is_complete(run: Run) -> bool:
    if run.folder is None:
        return False
    if run.experiment in EXPERIMENTS and EXPERIMENTS[run.experiment].is_complete(run.folder):
        return True
    # Outside a study, the last thing that these two write.
    last = {"synthetic": "table.csv", "measure": "records.jsonl"}
    return (run.folder / last.get(run.experiment, "weights.safetensors")).exists()


def _is_locked(folder: Path) -> bool:
    """Whether a process on this machine writes there now; the lock is not taken."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        return False
    try:
        with (folder / ".lock").open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


def _last_line(path: Path) -> str:
    try:
        lines = read_text(path).strip().splitlines()
    except Unreadable:
        return ""
    return lines[-1].strip()[:500] if lines else "no message"


def _without_doubles(studies: Sequence[Study]) -> list[Study]:
    """The same run in two copies of a study counts once: the one that is further."""
    best: dict[tuple[str, str], Run] = {}
    merged: dict[tuple[str, str | None], list[str]] = {}
    for study in studies:
        names = merged.setdefault((study.name, study.budget), [])
        for run in study.runs:
            key = (study.name, run.id)
            if key not in best:
                names.append(run.id)
                best[key] = run
            elif PROGRESS.index(run.state) < PROGRESS.index(best[key].state):
                best[key] = run
    return [
        Study(name, budget, tuple(best[name, run] for run in names))
        for (name, budget), names in merged.items()
        if names
    ]
