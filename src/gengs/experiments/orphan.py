"""No process outlives the one that started it.

With several devices the first process starts the others and ends them. Killed outright it cannot,
and they would wait for it in a collective operation, for half an hour and deaf to SIGTERM. So each
of them looks now and then whether it still has its parent. Nothing is lost with them: checkpoints
are the first process's.
"""

from __future__ import annotations

__all__ = ["launch"]

import os
import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lightning_fabric import Fabric

_PARENT = "GENGS_PARENT"
_SECONDS = 1.0

_was_started = "LOCAL_RANK" in os.environ
"""By torchrun or by another process of this run, and not by the user, who may log out."""


def launch(fabric: Fabric) -> None:
    """Start the other processes; in one of these, watch the one that started it."""
    global _was_started
    parent = os.environ.pop(_PARENT, None)
    if _was_started:
        # torchrun leaves no number: a parent that died before this line is not noticed there
        if parent is None or "TORCHELASTIC_RUN_ID" in os.environ:
            parent = str(os.getppid())
        threading.Thread(
            target=_watch, args=(int(parent),), daemon=True, name="parent watch"
        ).start()
        _was_started = False  # one watch will do
    os.environ[_PARENT] = str(os.getpid())
    try:
        fabric.launch()
    finally:
        del os.environ[_PARENT]  # for the processes of this run alone


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_SECONDS)
    os._exit(1)
