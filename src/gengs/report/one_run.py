"""One run as a report sees it: whatever of it is there.

A run in the plan that nobody has begun is *waiting*; one that another process holds the lock of is
*running*; one that stopped before its end is *unfinished*, or *failed* if it left an ``error.txt``.
One whose files cannot be used is *damaged*, one that was made with other settings than its plan's
*different*: neither enters a mean.
"""

from __future__ import annotations

__all__ = ["PROGRESS", "Run", "State", "load_run"]

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from ..experiments.registry import EXPERIMENTS
from .doubts import lost_records, other_settings
from .reading import Unreadable, read_json, read_lines, read_text

State = Literal["done", "running", "unfinished", "failed", "damaged", "different", "waiting"]

PROGRESS: tuple[State, ...] = get_args(State)
"""The states, the one that says most first."""


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


def load_run(
    folder: Path,
    name: str,
    experiment: str = "",
    config: Mapping[str, Any] | None = None,
    labels: Mapping[str, Any] | None = None,
) -> Run:
    """The run in a folder, as far as it is there.

    Args:
        folder: Of the run.
        name: Its id.
        experiment: What the plan says, like the rest; outside a study, what the folder says.
        config: Its planned settings.
        labels: Where its result belongs.
    """
    texts = {str(key): str(value) for key, value in (labels or {}).items()}
    planned = Run(name, experiment, config or {}, texts, "waiting")
    error = _last_line(folder / "error.txt")
    if not (folder / "config.json").is_file():
        if error:
            return Run(name, experiment, planned.config, texts, "failed", folder, error)
        if experiment and _is_complete(folder, experiment):
            lost = "finished, but config.json is missing"
            return Run(name, experiment, planned.config, texts, "damaged", folder, lost)
        return planned
    try:
        manifest = read_json(folder / "config.json")
        records = read_lines(folder / "records.jsonl")
        timings = read_lines(folder / "timings.jsonl")
    except Unreadable as problem:
        return Run(name, experiment, planned.config, texts, "damaged", folder, str(problem))
    experiment = experiment or _experiment_name(manifest)
    own = manifest.get("config")
    settings = own if isinstance(own, dict) else planned.config
    if config is not None and (records or _is_complete(folder, experiment)):
        doubt = other_settings(experiment, settings, config, "in the plan")
        if not isinstance(own, dict):
            doubt = "without settings in its config.json"
        elif _experiment_name(manifest) != experiment:
            doubt = f"made by the experiment {_experiment_name(manifest)!r}"
        if doubt:  # without its folder: no picture and no topic of it is shown either
            return replace(planned, state="different", error=doubt)
    if lost_records(experiment, folder):
        lost = "finished, but records.jsonl is missing or empty"
        return Run(name, experiment, settings, texts, "damaged", folder, lost)
    run = Run(
        name,
        experiment,
        settings,
        texts,
        "done",
        folder,
        manifest=manifest,
        records=records,
        timings=timings,
    )
    state: State = "done"
    if not records or not _is_complete(folder, experiment):
        state = "running" if _is_locked(folder) else "failed" if error else "unfinished"
    shown = error if state == "failed" else ""
    return replace(run, state=state, error=shown)


def _experiment_name(manifest: Mapping[str, Any]) -> str:
    """``VaeConfig``, the class of a configuration, is called vae."""
    return str(manifest.get("experiment", "")).removesuffix("config")


def _is_complete(folder: Path, experiment: str) -> bool:
    if experiment in EXPERIMENTS and EXPERIMENTS[experiment].has_ended(folder):
        return True
    # Outside a study, the last thing that these two write.
    last = {"synthetic": "table.csv", "measure": "records.jsonl"}
    return (folder / last.get(experiment, "weights.safetensors")).exists()


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
