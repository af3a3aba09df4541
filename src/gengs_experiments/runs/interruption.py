"""How a run ends early: a signal asks it to stop, or its parent dies.

Ctrl-C, a polite kill and a closed terminal are the same request. Code with a good moment to stop
asks for it with :func:`interruption`; for any other, :func:`stoppable` makes each of them a
``KeyboardInterrupt``. Whoever has saved what there is ends with :class:`Interrupted`.
"""

__all__ = ["Interrupted", "end_with_parent", "interruption", "stoppable"]

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

_SIGNALS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)
]


class Interrupted(SystemExit):
    """The run was asked to stop, saved itself, and stopped: exit code 130."""

    def __init__(self) -> None:
        super().__init__(130)


@contextmanager
def _handled(handler: Callable[..., Any]) -> Iterator[ExitStack]:
    """Handle the signals; to close what is given puts the earlier handlers back before the end."""
    with ExitStack() as earlier:
        # Python gives signals to the main thread; elsewhere there is nothing to catch.
        if threading.current_thread() is threading.main_thread():
            for number in _SIGNALS:
                if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup asks for
                    earlier.callback(signal.signal, number, signal.signal(number, handler))
        yield earlier


def stoppable() -> AbstractContextManager[object]:
    """While the context lasts, each of the signals raises ``KeyboardInterrupt``."""
    return _handled(signal.default_int_handler)


@contextmanager
def interruption(then: Callable[[], object] = bool) -> Iterator[threading.Event]:
    """An event that the first signal sets, before it calls ``then``; a second one acts as usual."""
    requested = threading.Event()

    def request(*signalled: object) -> None:
        requested.set()
        earlier.close()
        then()

    with _handled(request) as earlier:
        yield requested


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
