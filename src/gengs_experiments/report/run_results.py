"""The runs in any folder, each as far as it is there, and the studies that they belong to.

A folder given to the report may be a study (``plan.json`` and ``runs/``), one run
(``config.json``), or a folder with some of either in it. What state a run is in is told by
:mod:`gengs_experiments.runs.run_status`; of one that is *damaged* or *different* nothing else is
shown.
"""

__all__ = ["RunResult", "StudyResults", "find_studies", "load_run", "settings_that_differ"]

import filecmp
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..experiments.registry import EXPERIMENTS
from ..runs.config import differences, in_words
from ..runs.run_status import CONFLICTS, STATES, State, inspect_run
from .record_columns import RecordColumns, read_records, read_times
from .untrusted_files import Unreadable, read_json

_DEPTH = 3  # a folder of folders of studies is as deep as it gets


@dataclass(frozen=True)
class RunResult:
    """One run, or the place of one in a plan."""

    id: str
    experiment: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    state: State = "waiting"
    folder: Path | None = None
    error: str = ""  # why it failed or is left out
    manifest: Mapping[str, Any] = field(default_factory=dict)
    records: RecordColumns = field(default_factory=RecordColumns)
    seconds: float | None = None  # how long it took
    milliseconds: Mapping[str, Any] = field(default_factory=dict)  # of one gradient, by estimator

    @property
    def seed(self) -> int | None:
        """The run's seed, where its configuration has one."""
        seed = self.config.get("seed")
        return seed if isinstance(seed, int) else None


@dataclass(frozen=True)
class StudyResults:
    """Runs that belong together."""

    name: str
    budget: str | None
    runs: tuple[RunResult, ...]

    def count(self, state: State) -> int:
        """How many of its runs are in this state."""
        return sum(run.state == state for run in self.runs)


def find_studies(folders: Iterable[Path]) -> list[StudyResults]:
    """All studies in these folders; runs outside any study make one, named after the folder.

    Copies of a study are one: the same run in several of them counts once.

    Raises:
        ValueError: If a folder does not exist, or nothing in them is a study or a run.
    """
    copies: dict[tuple[str, str | None], dict[str, list[RunResult]]] = {}
    for folder in folders:
        if not folder.is_dir():
            raise ValueError(f"expected the folder of a study or of runs, but {folder} is none.")
        for study in _inside(folder, folder.resolve().name):
            runs = copies.setdefault((study.name, study.budget), {})
            for run in study.runs:
                runs.setdefault(run.id, []).append(run)
    if not copies:
        raise ValueError(
            "expected a study (plan.json) or runs (config.json), but found neither in "
            f"{', '.join(map(str, folders))}."
        )
    return [
        StudyResults(name, budget, tuple(map(_furthest, runs.values())))
        for (name, budget), runs in copies.items()
        if runs
    ]


def load_run(folder: Path, planned: RunResult | None = None) -> RunResult:
    """The run in a folder, as far as it is there; the rest is what a plan says of it."""
    run = planned or RunResult(folder.name)
    kind, settings = _config_class(run.experiment), run.config or None
    status = inspect_run(folder, run.experiment, settings, kind, now="in the plan", verify=True)
    run = replace(run, state=status.state, error=status.reason)
    if status.state in CONFLICTS or not status.manifest:
        return run  # without its folder: no picture and no topic of it is shown either
    try:
        seconds, milliseconds = read_times(folder / "timings.jsonl")
        return replace(
            run,
            experiment=run.experiment or status.experiment,
            config=status.settings or run.config,
            folder=folder,
            manifest=status.manifest,
            records=read_records(folder / "records.jsonl"),
            seconds=seconds,
            milliseconds=milliseconds,
        )
    except Unreadable as problem:
        return replace(run, state="damaged", error=str(problem))


def settings_that_differ(run: RunResult, other: RunResult) -> dict[str, tuple[Any, Any]]:
    """The settings in which two runs of an experiment differ, with both values."""
    return differences(_config_class(run.experiment), run.config, other.config)


def _config_class(experiment: str) -> type[Any] | None:
    return EXPERIMENTS[experiment].config_class if experiment in EXPERIMENTS else None


def _inside(folder: Path, name: str, depth: int = _DEPTH) -> Iterator[StudyResults]:
    """The studies in a folder; a run outside any is a study of this name."""
    if (folder / "plan.json").is_file():
        yield _study(folder)
    elif (folder / "config.json").is_file():
        yield StudyResults(name, None, (load_run(folder),))
    elif depth > 0:
        for child in sorted(folder.iterdir()):
            if child.is_dir() and not child.name.startswith(".") and not child.is_symlink():
                yield from _inside(child, name, depth - 1)


def _study(folder: Path) -> StudyResults:
    plan = read_json(folder / "plan.json")  # without the plan there is nothing to report
    planned = plan.get("runs")
    if not isinstance(planned, list) or not all(isinstance(one, dict) for one in planned):
        raise Unreadable(f"expected a list of runs in {folder / 'plan.json'}.")
    runs = []
    for one in planned:
        name = str(one.get("id", ""))
        if Path(name).name != name or name in ("", ".", ".."):
            raise Unreadable(f"expected the name of a folder as a run's id, but got {name!r}.")
        config, labels = (
            v if isinstance(v := one.get(k), dict) else {} for k in ("config", "labels")
        )
        texts = {str(key): str(value) for key, value in labels.items()}
        run = RunResult(name, str(one.get("experiment", "")), config, texts)
        runs.append(load_run(folder / "runs" / name, run))
    budget = plan.get("budget")
    name = str(plan.get("name") or folder.resolve().name)
    return StudyResults(name, None if budget is None else str(budget), tuple(runs))


def _furthest(copies: Sequence[RunResult]) -> RunResult:
    """The one that says most; if several are done, they must agree, or nobody can say which."""
    run = min(copies, key=lambda copy: STATES.index(copy.state))
    for copy in copies:
        if run.folder is None or copy.folder is None or not copy.state == run.state == "done":
            continue
        ours, theirs = (folder / "records.jsonl" for folder in (run.folder, copy.folder))
        if found := settings_that_differ(run, copy):
            doubt = f"was made with other settings ({in_words(found, f'in {copy.folder}')})"
        elif not filecmp.cmp(ours, theirs, shallow=False):
            doubt = f"has other records than its copy in {copy.folder}"
        else:
            continue
        return RunResult(run.id, run.experiment, run.config, run.labels, "different", error=doubt)
    return run
