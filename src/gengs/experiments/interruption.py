"""Ctrl-C and SIGTERM as a request to stop at the next good moment."""

from __future__ import annotations

__all__ = ["Interrupted", "Interruption"]

import signal
import threading
from types import FrameType
from typing import Any


class Interrupted(SystemExit):
    """The run was asked to stop, saved itself, and stopped: exit code 130."""

    def __init__(self) -> None:
        super().__init__(130)


class Interruption:
    """While the context lasts, the first signal sets ``requested``; a second one acts as usual."""

    def __init__(self) -> None:
        self.requested = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> Interruption:
        # Python gives signals to the main thread; elsewhere there is nothing to catch.
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._request)
        return self

    def __exit__(self, *exception: object) -> None:
        self._restore()

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self._restore()

    def _restore(self) -> None:
        while self._previous:
            number, handler = self._previous.popitem()
            signal.signal(number, handler)
