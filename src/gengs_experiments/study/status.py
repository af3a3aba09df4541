"""How far a study is, and how long the rest will take: read from its folder, by anyone.

The time is best known from runs of the same kind (the same but for the seed) that are complete in
this folder, or else from complete runs in the same column of the table. Where there are none, a few
steps of each kind are timed and multiplied, for some seconds altogether; kinds for which there was
no time are taken to be as slow as the others of their column. What each run does before its first
step, loading the data and building the model, is timed with it.
"""

__all__ = [
    *("Estimate", "State", "Status", "duration", "known_times", "look_at", "refuse_conflicts"),
    *("estimated_times", "time_taken"),
]

import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path
from statistics import mean
from typing import Literal

from ..data.archive import offline
from ..experiments.registry import EXPERIMENTS
from ..runs.config import to_json
from ..runs.json_lines import loads
from ..runs.machine import limited_threads
from ..runs.run_status import CONFLICTS, RunStatus, inspect_run
from .plan import Plan, PlannedRun

State = Literal["done", "running", "failed", "waiting"]


def look_at(folder: Path, run: PlannedRun, *, verify: bool = False) -> RunStatus:
    """What the folder of a study holds of a run."""
    path, kind = folder / "runs" / run.id, type(run.config)
    return inspect_run(path, run.experiment, to_json(run.config), kind, verify=verify)


def time_taken(path: Path) -> float | None:
    """The seconds that the run in a folder has taken so far, if a study did it."""
    try:
        return float(loads((path / "timing.json").read_bytes())["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Status:
    """The ``states`` of all runs of a study by id, and the ``errors`` of those that failed.

    ``running`` has the runs in progress, with the seconds since they were started.
    """

    def __init__(
        self, plan: Plan, folder: Path, running: Mapping[str, float] | None = None
    ) -> None:
        self.plan, self.folder, self.running = plan, folder, running or {}
        self.states: dict[str, State] = {}
        self.errors: dict[str, str] = {}
        for run in plan.runs:
            found = look_at(folder, run)
            if found.state == "done":
                self.states[run.id] = "done"
            elif run.id in self.running:
                self.states[run.id] = "running"
            elif found.state == "failed":
                self.states[run.id], self.errors[run.id] = "failed", found.reason
            else:
                self.states[run.id] = "waiting"  # also what another command works on

    def runs(self, *states: State) -> list[PlannedRun]:
        """The runs in any of these states, in the order of the plan."""
        return [run for run in self.plan.runs if self.states[run.id] in states]

    def count(self, state: State) -> int:
        """How many runs are in a state."""
        return len(self.runs(state))


def refuse_conflicts(folder: Path, runs: Iterable[PlannedRun]) -> None:
    """Raise ``ValueError`` for the first run whose folder is damaged or holds another run."""
    looks = [(run, look_at(folder, run, verify=True)) for run in runs]
    found = [(run, look) for run, look in looks if look.state in CONFLICTS]
    if found:
        run, look = found[0]
        more = f" ({len(found) - 1} more runs are like it)" if len(found) > 1 else ""
        raise ValueError(
            f"the run {run.id} in {folder / 'runs' / run.id} {look.reason.rstrip('.')}{more}: "
            "delete that folder to do the run again, or choose another folder for the study."
        )


class Estimate(defaultdict[str, list[float]]):
    """Seconds of runs, from those of runs like them; empty, where nothing is known."""

    def __init__(self, times: Iterable[tuple[PlannedRun, float]]) -> None:
        super().__init__(list)
        for run, seconds in times:
            for likeness in _likenesses(run):
                self[likeness].append(seconds)

    def seconds(self, run: PlannedRun) -> float | None:
        """How long a run takes, if anything is known."""
        return next((mean(self[key]) for key in _likenesses(run) if key in self), None)

    def total(self, runs: Sequence[PlannedRun], workers: int) -> float | None:
        """How long runs take, ``workers`` at a time."""
        known = [seconds for run in runs if (seconds := self.seconds(run)) is not None]
        if len(known) < len(runs):
            return None
        return max(sum(known) / workers, max(known, default=0.0))


def known_times(status: Status) -> Estimate:
    """From the complete runs of a study."""
    times = ((run, time_taken(status.folder / "runs" / run.id)) for run in status.runs("done"))
    return Estimate((run, seconds) for run, seconds in times if seconds is not None)


def estimated_times(
    runs: Iterable[PlannedRun], data_dir: Path | None, threads: int, seconds: float = 20.0
) -> tuple[Estimate, str]:
    """From a few steps of each kind, and where from, in words; nothing is downloaded for it.

    Raises:
        ValueError: If a run's settings cannot be used; the message names the run and the setting.
    """
    kinds = {_likenesses(run)[0]: run for run in runs}
    columns: defaultdict[str, list[PlannedRun]] = defaultdict(list)
    for run in kinds.values():
        columns[_likenesses(run)[1]].append(run)
    ranks = zip_longest(*columns.values())  # one of each column first
    times, absent, end = [], 0, time.monotonic() + seconds
    with limited_threads(threads), offline():
        for run in filter(None, chain(*ranks)):
            estimate_runtime = EXPERIMENTS[run.experiment].estimate_runtime
            if estimate_runtime is not None and time.monotonic() < end:
                try:
                    times.append((run, estimate_runtime(run.config, data_dir)))
                except FileNotFoundError:
                    absent += 1
                except (TypeError, ValueError) as error:
                    raise ValueError(f"the run {run.id}{_blamed(run, error)}: {error}") from error
    source = f"from a few steps of {len(times)} of {len(kinds)} kinds of runs; evaluations, "
    source += f"the download of the data of {absent} kinds, " if absent else ""
    source += "and some seconds in which each worker starts, left out"
    return Estimate(times), source


def duration(seconds: float | None) -> str:
    """A time as people say it.

    Example:
        >>> duration(42), duration(600), duration(100_000), duration(None), duration(0.0078)
        ('42 s', '10 min', '1 d 3 h 47 min', 'unknown', 'under 1 s')
    """
    if seconds is None:
        return "unknown"
    if seconds < 100:
        return "under 1 s" if 0 < seconds < 1 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    parts = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def _likenesses(run: PlannedRun) -> tuple[str, str, str]:
    """What other runs share with this one: all but the seed, the column, nothing."""
    config = {**to_json(run.config), "seed": None}
    kind = json.dumps([run.experiment, config], sort_keys=True)
    return kind, f"{run.experiment} {run.labels.get('column', '')}", ""


def _blamed(run: PlannedRun, error: Exception) -> str:
    """The settings that an error quotes: whoever raised it knew the value, but not whose it is."""
    # A law or an estimator is also quoted without what stands in brackets.
    quoted = [
        f"{name} {value!r}"
        for name, value in to_json(run.config).items()
        if isinstance(value, str)
        and any(repr(text) in str(error) for text in (value, value.partition("(")[0]))
    ]
    return f" with {' and '.join(quoted)}" if quoted else ""
