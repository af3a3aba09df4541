"""One run of a study, in whichever process it landed.

The run's folder is all that matters: a complete one is left alone, a half-done one is resumed, one
that fails keeps the traceback in ``error.txt``. Nothing a run does stops the study.

A worker process saves its run and stops when the study is asked to, or when the command that began
it is gone: no run goes on behind anyone's back. The processes know of each other by files, which
reach every machine that shares the study's folder, and survive whoever wrote them:

====================  ==========================================================================
.study/<session>/     made by the command, removed when it ends
  <run id>            this run is in progress; the process that works on it
  stop                all processes are asked to save their runs and stop
====================  ==========================================================================
"""

from __future__ import annotations

__all__ = ["NotSharedError", "Session", "execute", "watch", "write_error"]

import _thread
import io
import os
import platform
import shutil
import signal
import threading
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..experiments.registry import EXPERIMENTS
from ..runs.atomic import write_atomically
from ..runs.interruption import stoppable
from ..runs.json_lines import write_json
from ..runs.machine import Machine, limited_threads
from .plan import PlannedRun
from .status import look_at, time_taken

# A worker that was killed may hold its lock for a moment longer.
_PATIENCE = 15.0


class NotSharedError(OSError):
    """A worker cannot see the study's folder."""


@dataclass(frozen=True)
class Session:
    """What all runs of one ``gengs study`` have in common; a context manager in its process."""

    folder: Path
    """Of the study."""
    machine: Machine
    """For each run; it should resume and be silent."""
    threads: int = 1
    """Of torch, for one run."""
    data_dir: Path | None = None
    children: bool = False
    """Whether the workers are children of the command, and end with it."""
    pid: int = field(default_factory=os.getpid)
    host: str = field(default_factory=platform.node)

    @property
    def notes(self) -> Path:
        """The session's own folder."""
        return self.folder / ".study" / f"{self.host}-{self.pid}"

    def __enter__(self) -> Session:
        """Begin; what dead sessions left behind is removed."""
        self.notes.mkdir(parents=True, exist_ok=True)
        for old in self.notes.parent.iterdir():
            host, _, pid = old.name.rpartition("-")
            if host == self.host and pid.isdigit():
                try:
                    os.kill(int(pid), 0)
                except PermissionError:  # it lives, and is somebody else's
                    continue
                except OSError:
                    shutil.rmtree(old, ignore_errors=True)
        return self

    def __exit__(self, *exception: object) -> None:
        shutil.rmtree(self.notes, ignore_errors=True)
        with suppress(OSError):  # another session is in progress
            self.notes.parent.rmdir()

    @property
    def is_here(self) -> bool:
        """Whether this process is the command's own."""
        return (os.getpid(), platform.node()) == (self.pid, self.host)

    @property
    def is_orphaned(self) -> bool:
        """Whether the command is gone, whose child this process was."""
        return self.children and not self.is_here and os.getppid() != self.pid

    @property
    def is_stopping(self) -> bool:
        """Whether all processes are asked to stop, or the session is over."""
        return (self.notes / "stop").exists() or not self.notes.exists()

    def stop(self) -> None:
        """Ask all processes to save their runs and stop."""
        with suppress(FileNotFoundError):
            (self.notes / "stop").touch()

    def folder_of(self, run: PlannedRun) -> Path:
        """The folder of a run."""
        return self.folder / "runs" / run.id

    def started(self, run: PlannedRun) -> None:
        """Note that this process works on a run."""
        note = f"pid {os.getpid()} on {platform.node()}\n"
        with suppress(FileNotFoundError):
            (self.notes / run.id).write_text(note, encoding="utf-8")

    def ended(self, run: PlannedRun) -> None:
        """Note that nobody works on it any more."""
        (self.notes / run.id).unlink(missing_ok=True)

    def running(self) -> dict[str, float]:
        """The runs in progress by id, each with the seconds since it was started."""
        found, now = {}, time.time()
        for note in self.notes.glob("*"):
            with suppress(FileNotFoundError):
                found[note.name] = now - note.stat().st_mtime
        found.pop("stop", None)
        return found


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
            with redirect_stdout(said), redirect_stderr(said):
                experiment = EXPERIMENTS[run.experiment]
                experiment.run(run.config, path, session.data_dir, session.machine)
            if look_at(session.folder, run).state != "done":
                raise RuntimeError(f"the run ended, but {path} is not complete.")
            break
        except BlockingIOError:  # the folder is locked, maybe by one who only looks
            if time.monotonic() > patience:
                return False
            time.sleep(0.5)
        except Exception:
            error, output = traceback.format_exc(), said.getvalue()
            if output.strip():
                error += f"\nIts last output:\n{output[-4000:]}"
            write_error(path, error)
            break
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
        with suppress(OSError):
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
