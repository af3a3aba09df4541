"""What a person sees while a study runs: a live table, or lines in a file."""

from __future__ import annotations

__all__ = ["Board"]

import sys
import threading
from collections.abc import Callable
from types import TracebackType
from typing import TextIO

from rich.box import SIMPLE_HEAD
from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from .estimate import Estimate, duration, known_times, time_taken
from .plan import Run
from .status import State, Status, error_line

_STYLES = {"done": "green", "running": "bold", "failed": "red", "waiting": "dim"}


class Board:
    """Shows a study's status until the context ends; a context manager.

    In a terminal it is a table that changes; elsewhere a line for each run that ends.

    Args:
        look: The status at this moment.
        workers: How many runs are done at once.
        seconds: Between two looks.
    """

    def __init__(self, look: Callable[[], Status], workers: int, seconds: float = 1.0) -> None:
        self.look, self.workers, self.seconds = look, workers, seconds
        # Runs in this process have their output redirected; the board has not.
        self._out: TextIO = sys.stdout
        self._console = Console(file=self._out)
        self._live: Live | None = None
        if self._out.isatty():
            self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False)
        self._seen: dict[str, State] = {}
        self._recent: list[str] = []
        self._times: tuple[int, Estimate] | None = None  # for so many complete runs
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._refresh, daemon=True)

    def __enter__(self) -> Board:
        self._seen = dict(self.look().states)
        if self._live is not None:
            self._live.start()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ending.set()
        self._thread.join()
        self._update()
        if self._live is not None:
            self._live.stop()

    def say(self, text: str) -> None:
        """Print a line."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)

    def _refresh(self) -> None:
        while not self._ending.wait(self.seconds):
            self._update()

    def _update(self) -> None:
        status = self.look()
        for run in status.plan.runs:
            state, before = status.states[run.id], self._seen.get(run.id)
            self._seen[run.id] = state
            if state in ("done", "failed") and before != state:
                self._recent.append(run.id)
                if self._live is None:
                    self.say(self._line(status, run, state))
        if self._live is not None:
            self._live.update(self._table(status), refresh=True)

    def _line(self, status: Status, run: Run, state: State) -> str:
        # Several may have ended since the last look: each line counts those up to its own.
        ended = sum(seen in ("done", "failed") for seen in self._seen.values())
        line = f"{ended}/{len(status.plan.runs)} {state}: {named(run)}"
        if state == "failed":
            return f"{line}: {error_line(status.folder, run)}"
        return f"{line}; {self._left(status)}"

    def _left(self, status: Status) -> str:
        runs = status.runs("running", "waiting")
        if self._times is None or self._times[0] != status.count("done"):
            times = known_times(status.folder, status.plan.runs)
            self._times = status.count("done"), times
        times = self._times[1]
        seconds = times.total(runs, self.workers)
        if seconds is None:
            return "time left unknown"
        gone = sum(
            min(status.running[run.id], times.seconds(run) or 0.0)
            for run in runs
            if run.id in status.running
        )
        return f"{duration(max(seconds - gone / self.workers, 0.0))} left"

    def _table(self, status: Status) -> Group:
        total = len(status.plan.runs)
        done, failed = status.count("done"), status.count("failed")
        head = Text.assemble((status.plan.name, "bold"), f" ({status.plan.budget})  {done}/{total}")
        head.append(f" done, {status.count('running')} running, ")
        head.append(f"{failed} failed", style="red" if failed else "")
        head.append(f", {self._left(status)}")
        table = Table(box=SIMPLE_HEAD, header_style="bold", pad_edge=False)
        for title in ("run", "state", "time"):
            table.add_column(title, no_wrap=True, justify="right" if title == "time" else "left")
        table.add_column("", no_wrap=True)
        shown = self._shown(status, room=max(3, self._console.height - 8))
        # The error has what the other columns leave.
        width = self._console.width - max((len(named(run)) for run in shown), default=0) - 28
        for run in shown:
            state = status.states[run.id]
            seconds = status.running.get(run.id) or time_taken(status.folder, run)
            time = "" if seconds is None or state == "waiting" else duration(seconds)
            why = Text(error_line(status.folder, run) if state == "failed" else "", end="")
            why.truncate(max(0, width), overflow="ellipsis")
            table.add_row(Text(named(run)), Text(state, style=_STYLES[state]), time, why)
        return Group(head, ProgressBar(total, done + failed, width=60), table)

    def _shown(self, status: Status, room: int) -> list[Run]:
        """Those in progress, some that failed, the last that were done, the next in line."""
        recent = {run_id: place for place, run_id in enumerate(self._recent)}
        done = sorted(
            (run for run in status.runs("done") if run.id in recent), key=lambda r: recent[r.id]
        )
        running = status.runs("running")
        room -= len(running)
        failed = status.runs("failed")[-max(1, room // 3) :]
        room -= len(failed)
        last = done[-max(1, room // 2) :]
        room -= len(last)
        return [*failed, *last, *running, *status.runs("waiting")[: max(0, min(room, 5))]]


def named(run: Run) -> str:
    """A run as its table names it, or by its id.

    Example:
        >>> from gengs.experiments.vae import VaeConfig
        >>> named(Run("vae", VaeConfig(), {"data": "mnist", "row": "Pois(2)", "column": "RF*"}))
        'mnist, Pois(2), RF*, seed 0'
    """
    words = [run.labels[key] for key in ("data", "row", "column") if run.labels.get(key)]
    return ", ".join([*words, f"seed {run.seed}"]) if words else run.id
