"""What a person sees while a study runs: a line for each run that ends, and in a terminal a bar."""

from __future__ import annotations

__all__ = ["ProgressLines"]

import sys
import threading
from collections.abc import Callable

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.text import Text

from ..runs.sanitise import ignore_closed_stdout, printable
from .status import State, Status, duration, known_times


class ProgressLines:
    """Shows a study's status, by a look every so many seconds, until the context ends.

    ``workers`` is how many runs are done at once.
    """

    def __init__(self, look: Callable[[], Status], workers: int, seconds: float = 1.0) -> None:
        self.look, self.workers, self.seconds = look, workers, seconds
        # Runs in this process have their output redirected; these lines have not.
        self._console = Console(file=sys.stdout)
        live = Live(console=self._console, auto_refresh=False, redirect_stdout=False)
        self._live = live if sys.stdout.isatty() else None
        self._seen: dict[str, State] = {}
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._refresh, daemon=True)

    def __enter__(self) -> ProgressLines:
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
            with ignore_closed_stdout():
                self._live.stop()

    def say(self, text: str) -> None:
        """Print a line, above the bar."""
        with ignore_closed_stdout():
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
                # Several may have ended since the last look: each line counts those up to its own.
                ended = sum(seen in ("done", "failed") for seen in self._seen.values())
                error = status.errors.get(run.id)
                more = f"; {self._left(status)}" if error is None else f": {error}"
                self.say(f"{ended}/{len(status.plan.runs)} {state}: {run.title}{more}")
        self._seen = dict(status.states)
        if self._live is not None:
            with ignore_closed_stdout():
                self._live.update(self._bar(status), refresh=True)

    def _left(self, status: Status) -> str:
        runs, times = status.runs("running", "waiting"), known_times(status)
        seconds = times.total(runs, self.workers)
        if seconds is None:
            return "time left unknown"
        gone = sum(min(status.running.get(run.id, 0.0), times.seconds(run) or 0.0) for run in runs)
        return f"{duration(max(seconds - gone / self.workers, 0.0))} left"

    def _bar(self, status: Status) -> Group:
        total, done, failed = len(status.plan.runs), status.count("done"), status.count("failed")
        head = Text.assemble(
            (printable(status.plan.name), "bold"),
            f" ({printable(status.plan.budget)})  {done}/{total} done, ",
            f"{status.count('running')} running, ",
            (f"{failed} failed", "red" if failed else ""),
            f", {self._left(status)}",
        )
        return Group(head, ProgressBar(total, done + failed, width=60))
