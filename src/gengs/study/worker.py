"""One run of a study, in whichever process it landed.

The run's folder is all that matters: a complete one is left alone, a half-done one is resumed, one
that fails keeps the traceback in ``error.txt``. Nothing a run does stops the study.

A worker process saves its run and stops when the study is asked to, or when the command that began
it is gone: no run goes on behind anyone's back.
"""

from __future__ import annotations

__all__ = ["NotSharedError", "execute", "watch", "write_error"]

import _thread
import contextlib
import io
import os
import platform
import signal
import threading
import time
import traceback
from pathlib import Path

from ..experiments.registry import EXPERIMENTS
from ..runs.atomic import write_atomically
from ..runs.interruption import stoppable
from ..runs.json_lines import write_json
from ..runs.machine import limited_threads
from .plan import PlannedRun
from .session import Session
from .status import look_at, time_taken

# A worker that was killed may hold its lock for a moment longer.
_PATIENCE = 15.0


class NotSharedError(OSError):
    """A worker cannot see the study's folder."""


def execute(run: PlannedRun, session: Session) -> None:
    """Do what is left to do of a run; never raises for what the run itself does."""
    if not (session.folder / "plan.json").exists():
        raise NotSharedError(
            f"the machine {platform.node()} does not see {session.folder}: expected a folder that "
            "all machines of the cluster share."
        )
    if not session.is_here:
        watch(session)
    if look_at(session.folder, run).state == "done":
        return
    path, begin, ours = session.folder_of(run), time.monotonic(), True
    session.started(run)
    try:
        with limited_threads(session.threads), _in_progress, stoppable():
            ours = _attempt(run, session)
    except (SystemExit, KeyboardInterrupt):  # the first, where it could save itself
        if session.is_here:
            session.stop()  # the signal was for the study
    finally:
        session.ended(run)
    if ours and path.exists():
        seconds = (time_taken(path) or 0.0) + time.monotonic() - begin
        write_json(path / "timing.json", {"seconds": round(seconds, 3), "threads": session.threads})


def _attempt(run: PlannedRun, session: Session) -> bool:
    """Whether the run was ours to do: not in the hands of another process."""
    path, patience = session.folder_of(run), time.monotonic() + _PATIENCE
    (path / "error.txt").unlink(missing_ok=True)
    # Asked once the watch can see that a run is in progress: one of the two sees the other.
    while not (session.is_stopping or session.is_orphaned):
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                experiment = EXPERIMENTS[run.experiment]
                experiment.run(run.config, path, session.data_dir, session.machine)
            if look_at(session.folder, run).state != "done":
                raise RuntimeError(f"the run ended, but {path} is not complete.")
            return True
        except BlockingIOError:  # the folder is locked, maybe by one who only looks
            if time.monotonic() > patience:
                return False
            time.sleep(0.5)
        except Exception:
            error, output = traceback.format_exc(), said.getvalue()
            if output.strip():
                error += f"\nIts last output:\n{output[-4000:]}"
            write_error(path, error)
            return True
    return True


def write_error(path: Path, text: str) -> None:
    """Say in the folder of a run why it failed."""
    path.mkdir(parents=True, exist_ok=True)
    write_atomically(path / "error.txt", text.encode())


_in_progress = threading.Lock()
_watched: set[Path] = set()


def watch(session: Session) -> None:
    """From now on, end this process's run when the study is asked to stop, or its command dies."""
    if session.notes in _watched:
        return
    _watched.add(session.notes)
    if session.children:
        with contextlib.suppress(OSError):
            # Ctrl-C is for the command, which then asks all workers, wherever they are, to stop.
            os.setpgid(0, 0)

    def wait() -> None:
        while not (session.is_stopping or session.is_orphaned):
            time.sleep(0.5)
        if _in_progress.locked():
            _thread.interrupt_main(signal.SIGTERM)
        while not session.is_orphaned or _in_progress.locked():
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()
