"""A bar for a person, lines for a file."""

from __future__ import annotations

__all__ = ["Progress"]

import sys
import time
from datetime import timedelta

from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class Progress:
    """How far a run is: steps, rate, loss, time left; a context manager.

    In a terminal it is a live bar; elsewhere a line every few seconds, and one at the end.

    Args:
        total: The number of steps.
        start: The number of steps that are done already.
        shown: Whether to show anything at all.
        seconds: The least time between two lines.
    """

    def __init__(
        self, total: int, start: int = 0, *, shown: bool = True, seconds: float = 10.0
    ) -> None:
        self.total, self.start, self.shown, self.seconds = total, start, shown, seconds
        self._begun = self._last = time.monotonic()
        self._bar: RichProgress | None = None
        if shown and sys.stdout.isatty():
            self._bar = RichProgress(
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]:,.0f} steps/s"),
                TextColumn("loss {task.fields[loss]:.5g}"),
                TimeRemainingColumn(),
            )
            self._task = self._bar.add_task(
                "", total=total, completed=start, rate=0.0, loss=float("nan")
            )

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *exception: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def rate(self, step: int) -> float:
        """Steps per second since this process began."""
        return (step - self.start) / max(time.monotonic() - self._begun, 1e-9)

    def update(self, step: int, loss: float) -> None:
        """Show that ``step`` steps are done."""
        if self._bar is not None:
            self._bar.update(self._task, completed=step, loss=loss, rate=self.rate(step))
        elif self.shown:
            now = time.monotonic()
            if step == self.total or now - self._last >= self.seconds:
                self._last = now
                rate = self.rate(step)
                left = timedelta(seconds=round((self.total - step) / max(rate, 1e-9)))
                print(
                    f"step {step:,}/{self.total:,}  {rate:,.0f} steps/s  loss {loss:.5g}  "
                    f"time left {left}",
                    flush=True,
                )

    def say(self, text: str) -> None:
        """Print a line above the bar."""
        if self._bar is not None:
            self._bar.console.print(text, markup=False, highlight=False, soft_wrap=True)
        else:
            print(text, file=None if self.shown else sys.stderr, flush=True)
