"""No process outlives the one that started it.

With several devices the first process starts the others and ends them. Killed outright it cannot,
and they would wait for it in a collective operation, for half an hour and deaf to SIGTERM. So each
of them looks now and then whether it still has its parent. Nothing is lost with them: checkpoints
are the first process's.
"""

from __future__ import annotations

__all__ = ["end_with_parent"]

import os
import threading
import time

_PARENT = "GENGS_PARENT"
_SECONDS = 1.0


def end_with_parent() -> None:
    """To call before processes are launched, and so by each of those that are."""
    parent, this = os.environ.get(_PARENT), str(os.getpid())
    os.environ[_PARENT] = this
    if "LOCAL_RANK" not in os.environ or parent == this:
        return  # nobody's child but the user's, who may log out; or watched already
    # under torchrun nobody left a number; a parent that died before this line is not noticed there
    watched = int(parent) if parent is not None else os.getppid()
    threading.Thread(target=_watch, args=(watched,), daemon=True, name="parent watch").start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS)
    os._exit(1)
