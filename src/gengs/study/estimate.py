"""How long runs will take.

Best known from runs of the same kind (the same but for the seed) that are complete in this folder,
or else from complete runs in the same column of the table. Where there are none, a rehearsal: a few
steps of each kind of run, timed and multiplied, for some seconds altogether; kinds for which there
was no time are taken to be as slow as the others of their column. What each run does before its
first step, loading the data and building the model, is timed with it.
"""

from __future__ import annotations

__all__ = ["Estimate", "duration", "known_times", "rehearsed_times"]

import json
import time
from collections import defaultdict
from collections.abc import Iterable
from itertools import chain, zip_longest
from pathlib import Path
from statistics import mean

from ..data.archive import offline
from ..experiments.registry import EXPERIMENTS
from ..runs.config import to_json
from ..runs.machine import limited_threads
from .plan import PlannedRun
from .status import Status, time_taken


class Estimate:
    """Seconds of runs, from those of runs like them."""

    def __init__(self, times: Iterable[tuple[PlannedRun, float]]) -> None:
        self._times: defaultdict[str, list[float]] = defaultdict(list)
        for run, seconds in times:
            for likeness in _likenesses(run):
                self._times[likeness].append(seconds)

    def __bool__(self) -> bool:
        """Whether anything is known."""
        return bool(self._times)

    def seconds(self, run: PlannedRun) -> float | None:
        """How long a run takes, if anything is known."""
        known = (self._times[likeness] for likeness in _likenesses(run) if likeness in self._times)
        return next(map(mean, known), None)

    def total(self, runs: Iterable[PlannedRun], workers: int) -> float | None:
        """How long runs take, ``workers`` at a time."""
        known = []
        for run in runs:
            if (seconds := self.seconds(run)) is None:
                return None
            known.append(seconds)
        return max(sum(known) / workers, max(known, default=0.0))


def known_times(status: Status) -> Estimate:
    """From the complete runs of a study."""
    times = ((run, time_taken(status.folder / "runs" / run.id)) for run in status.runs("done"))
    return Estimate((run, seconds) for run, seconds in times if seconds is not None)


def rehearsed_times(
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
            rehearse = EXPERIMENTS[run.experiment].rehearse
            if rehearse is not None and time.monotonic() < end:
                try:
                    times.append((run, rehearse(run.config, data_dir)))
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
        >>> duration(42), duration(600), duration(100_000), duration(None)
        ('42 s', '10 min', '1 d 3 h 47 min', 'unknown')
        >>> duration(0.0078)
        'under 1 s'
    """
    if seconds is None:
        return "unknown"
    if 0 < seconds < 1:
        return "under 1 s"
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    parts = ((minutes // 1440, "d"), (minutes // 60 % 24, "h"), (minutes % 60, "min"))
    return " ".join(f"{number} {unit}" for number, unit in parts if number)


def _likenesses(run: PlannedRun) -> tuple[str, str, str]:
    """What other runs share with this one: all but the seed, the column, nothing."""
    config = {**to_json(run.config), "seed": None}
    kind = json.dumps([run.experiment, config], sort_keys=True, default=str)
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
