"""What the processes of one ``gengs study`` tell each other, through files in the study's folder.

====================  ==========================================================================
.study/<session>/     made by the command, removed when it ends
  <run id>            this run is in progress; the process that works on it
  stop                all processes are asked to save their runs and stop
====================  ==========================================================================

Files reach every machine that shares the folder, and survive whoever wrote them.
"""

from __future__ import annotations

__all__ = ["Session"]

import os
import platform
import shutil
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Session:
    """One command's folder for notes."""

    path: Path

    @classmethod
    def begin(cls, folder: Path) -> Session:
        """A new session in a study's folder; what dead ones left behind is removed."""
        root = folder / ".study"
        root.mkdir(parents=True, exist_ok=True)
        for old in root.iterdir():
            host, _, pid = old.name.rpartition("-")
            if host == platform.node() and pid.isdigit() and not _alive(int(pid)):
                shutil.rmtree(old, ignore_errors=True)
        path = root / f"{platform.node()}-{os.getpid()}"
        path.mkdir(exist_ok=True)
        return cls(path)

    def end(self) -> None:
        """Remove all notes."""
        shutil.rmtree(self.path, ignore_errors=True)
        with suppress(OSError):  # another session is in progress
            self.path.parent.rmdir()

    @property
    def stopping(self) -> bool:
        """Whether all processes are asked to stop, or the command that began them is gone."""
        return (self.path / "stop").exists() or not self.path.exists()

    def stop(self) -> None:
        """Ask all processes to save their runs and stop."""
        with suppress(FileNotFoundError):
            (self.path / "stop").touch()

    def started(self, run_id: str) -> None:
        """Note that this process works on a run."""
        note = f"pid {os.getpid()} on {platform.node()}\n"
        with suppress(FileNotFoundError):
            (self.path / run_id).write_text(note, encoding="utf-8")

    def ended(self, run_id: str) -> None:
        """Note that nobody works on it any more."""
        (self.path / run_id).unlink(missing_ok=True)

    def running(self) -> dict[str, float]:
        """The runs in progress, each with the seconds since it was started."""
        found, now = {}, time.time()
        with suppress(FileNotFoundError):
            for note in self.path.iterdir():
                with suppress(FileNotFoundError):
                    found[note.name] = now - note.stat().st_mtime
        found.pop("stop", None)
        return found


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
