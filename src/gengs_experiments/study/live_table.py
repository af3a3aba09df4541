"""What a person sees while a study runs: a live table, or lines in a file."""

from __future__ import annotations

__all__ = ["LiveTable"]

import sys
import threading
from collections.abc import Callable

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from ..runs.sanitise import printable, unheard
from .plan import PlannedRun
from .status import State, Status, duration, known_times, time_taken

_STYLES = {"done": "green", "running": "bold", "failed": "red", "waiting": "dim"}


class LiveTable:
    """Shows a study's status, by a look every so many seconds, until the context ends.

    In a terminal it is a table that changes; elsewhere a line for each run that ends. ``workers``
    is how many runs are done at once.
    """

    def __init__(self, look: Callable[[], Status], workers: int, seconds: float = 1.0) -> None:
        self.look, self.workers, self.seconds = look, workers, seconds
        # Runs in this process have their output redirected; the table has not.
        self._console = Console(file=sys.stdout)
        live = Live(console=self._console, auto_refresh=False, redirect_stdout=False)
        self._live = live if sys.stdout.isatty() else None
        self._seen: dict[str, State] = {}
        self._ended: list[PlannedRun] = []  # since the table is there, in that order
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._refresh, daemon=True)

    def __enter__(self) -> LiveTable:
        self._seen = dict(self.look().states)
        if self._live is not None:
            self._live.start()
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._closing.set()
        self._thread.join()
        self._update()
        if self._live is not None:
            with unheard():
                self._live.stop()

    def say(self, text: str) -> None:
        """Print a line."""
        with unheard():
            self._console.print(printable(text), markup=False, highlight=False, soft_wrap=True)

    def _refresh(self) -> None:
        while not self._closing.wait(self.seconds):
            self._update()

    def _update(self) -> None:
        status = self.look()
        for run in status.runs("done", "failed"):
            state = status.states[run.id]
            before, self._seen[run.id] = self._seen.get(run.id), state
            if before != state:
                self._ended.append(run)
            if before != state and self._live is None:
                # Several may have ended since the last look: each line counts those up to its own.
                ended = sum(seen in ("done", "failed") for seen in self._seen.values())
                error = status.errors.get(run.id)
                more = f"; {self._left(status)}" if error is None else f": {error}"
                self.say(f"{ended}/{len(status.plan.runs)} {state}: {run.title}{more}")
        self._seen = dict(status.states)
        if self._live is not None:
            with unheard():
                self._live.update(self._table(status), refresh=True)

    def _left(self, status: Status) -> str:
        runs, times = status.runs("running", "waiting"), known_times(status)
        seconds = times.total(runs, self.workers)
        if seconds is None:
            return "time left unknown"
        gone = sum(min(status.running.get(run.id, 0.0), times.seconds(run) or 0.0) for run in runs)
        return f"{duration(max(seconds - gone / self.workers, 0.0))} left"

    def _table(self, status: Status) -> Group:
        total = len(status.plan.runs)
        done, failed = status.count("done"), status.count("failed")
        head = Text.assemble(
            (status.plan.name, "bold"),
            f" ({status.plan.budget})  {done}/{total} done, {status.count('running')} running, ",
            (f"{failed} failed", "red" if failed else ""),
            f", {self._left(status)}",
        )
        table = Table("run", "state", "time", "", box=SIMPLE_HEAD, pad_edge=False)
        for column in table.columns:
            column.no_wrap = True
        table.columns[2].justify = "right"
        for run in self._shown(status, room=max(3, self._console.height - 8)):
            state = status.states[run.id]
            seconds = status.running.get(run.id) or time_taken(status.folder / "runs" / run.id)
            time = "" if seconds is None or state == "waiting" else duration(seconds)
            why = Text(printable(status.errors.get(run.id, "")))
            table.add_row(Text(printable(run.title)), Text(state, style=_STYLES[state]), time, why)
        return Group(head, ProgressBar(total, done + failed, width=60), table)

    def _shown(self, status: Status, room: int) -> list[PlannedRun]:
        """Those in progress, some that failed, the last that were done, the next in line."""
        running = status.runs("running")
        room -= len(running)
        failed = status.runs("failed")[-max(1, room // 3) :]
        room -= len(failed)
        done = [run for run in self._ended if status.states[run.id] == "done"][-max(1, room // 2) :]
        room -= len(done)
        return [*failed, *done, *running, *status.runs("waiting")[: max(0, min(room, 5))]]
