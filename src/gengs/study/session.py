"""One ``gengs study`` at work, as all its processes know it, on all machines that share the folder.

====================  ==========================================================================
.study/<session>/     made by the command, removed when it ends
  <run id>            this run is in progress; the process that works on it
  stop                all processes are asked to save their runs and stop
====================  ==========================================================================

Files reach every machine, and survive whoever wrote them.
"""

from __future__ import annotations

__all__ = ["Session"]

import os
import platform
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from ..runs.machine import Machine
from .plan import PlannedRun


@dataclass(frozen=True)
class Session:
    """What all runs of one command have in common; a context manager in its process."""

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
            if host == self.host and pid.isdigit() and not _alive(int(pid)):
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
        with suppress(FileNotFoundError):
            for note in self.notes.iterdir():
                with suppress(FileNotFoundError):
                    found[note.name] = now - note.stat().st_mtime
        found.pop("stop", None)
        return found


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True
