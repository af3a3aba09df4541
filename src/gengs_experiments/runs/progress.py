"""What a person watches while a model trains: a bar, or lines."""

from __future__ import annotations

__all__ = ["Progress"]

import sys
import time
from datetime import timedelta

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from .sanitise import ignore_closed_stdout, printable, say


class Progress:
    """How far a run is: steps, rate, loss, time left; a context manager.

    In a terminal it is a live bar; elsewhere a line soon, every few ``seconds``, and at the end.
    The rate counts from the step ``start``, where a run may have been resumed.
    """

    def __init__(
        self, total: int, start: int = 0, *, shown: bool = True, seconds: float = 10.0
    ) -> None:
        self.total, self.start, self.shown, self.seconds = total, start, shown, seconds
        self._begun = time.monotonic()
        self._last = self._begun - 0.8 * seconds
        pace = "{task.fields[rate]:,.0f} steps/s loss {task.fields[loss]:.5g}"
        columns = BarColumn(), MofNCompleteColumn(), TextColumn(pace), TimeRemainingColumn()
        self._bar = RichProgress(*columns, disable=not (shown and sys.stdout.isatty()))
        self._task = self._bar.add_task("", total=total, completed=start, rate=0, loss=float("nan"))

    def __enter__(self) -> Progress:
        self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        with ignore_closed_stdout():
            self._bar.stop()

    def update(self, step: int, loss: float) -> None:
        """Show that ``step`` steps are done."""
        now = time.monotonic()
        rate = (step - self.start) / max(now - self._begun, 1e-9)
        if not self._bar.disable:
            with ignore_closed_stdout():
                self._bar.update(self._task, completed=step, loss=loss, rate=rate)
        elif self.shown and (step == self.total or now - self._last >= self.seconds):
            self._last = now
            left = timedelta(seconds=round((self.total - step) / max(rate, 1e-9)))
            pace = f"{rate:,.0f} steps/s  loss {loss:.5g}  time left {left}"
            say(f"step {step:,}/{self.total:,}  {pace}")

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        if self._bar.disable:
            say(text, error=not self.shown)
        else:
            with ignore_closed_stdout():
                text = printable(text)
                self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
