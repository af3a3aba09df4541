"""How long runs will take.

Best known from runs of the same kind (the same but for the seed) that are complete in this folder,
or else from complete runs in the same column of the table. Where there are none, a rehearsal: a few
steps of each kind of run, timed and multiplied, for some seconds altogether; kinds for which there
was no time are taken to be as slow as the others of their column. What each run does before its
first step, loading the data and building the model, is timed with it.
"""

from __future__ import annotations

__all__ = ["Estimate", "duration", "known_times", "rehearsed_times", "time_taken"]

import dataclasses
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from statistics import mean

from ..experiments.registry import EXPERIMENTS
from .config import to_json
from .nonfinite import loads
from .plan import Run


@dataclasses.dataclass(frozen=True)
class Estimate:
    """Seconds by kind of run, by column, and overall."""

    kinds: Mapping[str, float]
    columns: Mapping[str, float]
    overall: float | None

    def seconds(self, run: Run) -> float | None:
        """How long a run takes, if anything is known."""
        for known, key in ((self.kinds, _kind(run)), (self.columns, _column(run))):
            if key in known:
                return known[key]
        return self.overall

    def total(self, runs: Iterable[Run], workers: int) -> float | None:
        """How long runs take, ``workers`` at a time."""
        seconds = [self.seconds(run) for run in runs]
        if not seconds:
            return 0.0
        known = [second for second in seconds if second is not None]
        return max(sum(known) / workers, max(known)) if len(known) == len(seconds) else None


def known_times(folder: Path, runs: Iterable[Run]) -> Estimate:
    """From the complete runs in a folder."""
    complete = (r for r in runs if EXPERIMENTS[r.experiment].is_complete(folder / "runs" / r.id))
    times = ((run, time_taken(folder, run)) for run in complete)
    return _estimate((run, seconds) for run, seconds in times if seconds is not None)


def time_taken(folder: Path, run: Run) -> float | None:
    """The seconds that a run has taken so far, if a study did it."""
    try:
        return float(loads((folder / "runs" / run.id / "timing.json").read_bytes())["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def rehearsed_times(
    runs: Iterable[Run], data_dir: Path | None, threads: int, seconds: float = 20.0
) -> tuple[Estimate, int, int]:
    """From a few steps of each kind; also how many kinds were rehearsed, and of how many.

    Raises:
        ValueError: If a run's settings cannot be used; the message names the run and the setting.
    """
    import torch

    kinds = {_kind(run): run for run in runs}
    times, end = [], time.monotonic() + seconds
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        for run in _one_of_each_column_first(kinds.values()):
            rehearse: Callable[..., float] | None = EXPERIMENTS[run.experiment].rehearse
            if rehearse is not None and time.monotonic() < end:
                try:
                    times.append((run, rehearse(run.config, data_dir)))
                except (TypeError, ValueError) as error:
                    raise ValueError(f"the run {run.id}{_blamed(run, error)}: {error}") from error
    finally:
        torch.set_num_threads(before)
    return _estimate(times), len(times), len(kinds)


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


def _estimate(times: Iterable[tuple[Run, float]]) -> Estimate:
    kinds, columns = defaultdict(list), defaultdict(list)
    overall = []
    for run, seconds in times:
        kinds[_kind(run)].append(seconds)
        columns[_column(run)].append(seconds)
        overall.append(seconds)
    return Estimate(
        {kind: mean(values) for kind, values in kinds.items()},
        {column: mean(values) for column, values in columns.items()},
        mean(overall) if overall else None,
    )


def _blamed(run: Run, error: Exception) -> str:
    """The settings that an error quotes: whoever raised it knew the value, but not whose it is."""
    # A law or an estimator is also quoted without what stands in brackets.
    quoted = [
        f"{name} {value!r}"
        for name, value in to_json(run.config).items()
        if isinstance(value, str)
        and any(repr(text) in str(error) for text in (value, value.partition("(")[0]))
    ]
    return f" with {' and '.join(quoted)}" if quoted else ""


def _one_of_each_column_first(runs: Iterable[Run]) -> list[Run]:
    seen: dict[str, int] = defaultdict(int)
    ranked = []
    for run in runs:
        seen[_column(run)] += 1
        ranked.append((seen[_column(run)], run))
    return [run for _, run in sorted(ranked, key=lambda pair: pair[0])]


def _kind(run: Run) -> str:
    config = {**to_json(run.config), "seed": None}
    return json.dumps([run.experiment, config], sort_keys=True, default=str)


def _column(run: Run) -> str:
    return f"{run.experiment} {run.labels.get('column', '')}"
