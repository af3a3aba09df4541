"""How a run ends early: a signal asks it to stop, or its parent dies.

Ctrl-C, a polite kill and a closed terminal are the same request. Code with a good moment to stop
asks for it with :class:`Interruption`; for any other, :func:`stoppable` makes each of them a
``KeyboardInterrupt``. Whoever has saved what there is ends with :class:`Interrupted`.
"""

from __future__ import annotations

__all__ = ["Interrupted", "Interruption", "end_with_parent", "stoppable"]

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Interrupted(SystemExit):
    """The run was asked to stop, saved itself, and stopped: exit code 130."""

    def __init__(self) -> None:
        super().__init__(130)


@contextmanager
def _handled(handler: Callable[[int, FrameType | None], object]) -> Iterator[Callable[[], None]]:
    """Handle the signals; the function given puts the earlier handlers back before the end."""
    before = {}
    # Python gives signals to the main thread; elsewhere there is nothing to catch.
    if threading.current_thread() is threading.main_thread():
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks for
                before[number] = signal.signal(number, handler)

    def restore() -> None:
        while before:
            signal.signal(*before.popitem())

    try:
        yield restore
    finally:
        restore()


@contextmanager
def stoppable() -> Iterator[None]:
    """While the context lasts, each of the signals raises ``KeyboardInterrupt``."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    with _handled(stop):
        yield


class Interruption:
    """While the context lasts, the first signal sets ``requested``; a second one acts as usual.

    Args:
        then: Called when it is set.
    """

    def __init__(self, then: Callable[[], object] = bool) -> None:
        self.requested, self._then = False, then

    def __enter__(self) -> Interruption:
        self._context = _handled(self._request)
        self._restore = self._context.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self._restore()

    def _request(self, number: int, frame: FrameType | None) -> None:
        self.requested = True
        self._restore()
        self._then()


def end_with_parent(parent: int, seconds: float = 1.0) -> None:
    """End this process when it is no longer a child of ``parent``, which may have been killed.

    The parent says its own number, by an environment variable or an argument: a child that asks for
    it may already belong to the process that adopts orphans.
    """
    name = f"watch of the process {parent}"
    if any(thread.name == name for thread in threading.enumerate()):
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(seconds)
        os._exit(1)

    threading.Thread(target=watch, daemon=True, name=name).start()
