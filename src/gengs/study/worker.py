"""One run of a study, in whichever process it landed.

The run's folder is all that matters: a complete one is left alone, a half-done one is resumed, one
that fails keeps the traceback in ``error.txt``. Nothing a run does stops the study.

A worker process saves its run and stops when the study is asked to, or when the process that began
it is gone: no run goes on behind anyone's back.
"""

from __future__ import annotations

__all__ = ["Job", "NotSharedError", "Outcome", "execute"]

import contextlib
import io
import os
import platform
import signal
import threading
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Literal

import torch

from ..experiments.interruption import Interrupted
from ..experiments.machine import Machine
from ..experiments.registry import EXPERIMENTS
from .atomic import write_atomically
from .finished import is_done
from .nonfinite import dumps, loads
from .plan import Run
from .session import Session

Outcome = Literal["done", "failed", "stopped", "busy"]

# A worker that was killed may hold its lock for a moment longer.
_PATIENCE = 15.0


class NotSharedError(OSError):
    """A worker cannot see the study's folder."""


@dataclass(frozen=True)
class Job:
    """What all runs of a session have in common."""

    folder: Path
    """The study's folder, absolute."""
    session: Session
    data_dir: Path | None
    machine: Machine
    threads: int
    """Of torch, for one run."""
    pid: int
    """The process that began the study."""
    host: str
    """And its machine."""

    def folder_of(self, run: Run) -> Path:
        """The folder of a run."""
        return self.folder / "runs" / run.id


def execute(run: Run, job: Job) -> Outcome:
    """Do what is left to do of a run; never raises for what the run itself does."""
    if not (job.folder / "plan.json").exists():
        raise NotSharedError(
            f"the machine {platform.node()} does not see {job.folder}: expected a folder that all "
            "machines of the cluster share."
        )
    ours = (os.getpid(), platform.node()) == (job.pid, job.host)
    if not ours:
        _watch(job)
    path = job.folder_of(run)
    if is_done(path, run):
        return "done"
    if job.session.stopping or _abandoned.is_set():
        return "stopped"
    job.session.started(run.id)
    begin = time.monotonic()
    try:
        with _threads(job.threads), _stoppable():
            outcome = _attempt(run, job, path)
    except (SystemExit, KeyboardInterrupt):  # Interrupted is one
        outcome = "stopped"
        if ours:
            job.session.stop()  # the signal was for the study
    finally:
        job.session.ended(run.id)
    if outcome != "busy":
        _note_time(path, time.monotonic() - begin, job.threads)
    return outcome


def _attempt(run: Run, job: Job, path: Path) -> Outcome:
    experiment, patience = EXPERIMENTS[run.experiment], time.monotonic() + _PATIENCE
    (path / "error.txt").unlink(missing_ok=True)
    while True:
        said = io.StringIO()
        try:
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                experiment.run(run.config, path, job.data_dir, job.machine)
            if not experiment.is_complete(path):
                raise RuntimeError(f"the run ended, but {path} is not complete.")
            return "done"
        except BlockingIOError:  # the folder is locked
            if time.monotonic() > patience:
                return "busy"
            if job.session.stopping:
                return "stopped"
            time.sleep(0.5)
        except Exception:
            _keep_error(path, traceback.format_exc(), said.getvalue())
            return "failed"


def _keep_error(path: Path, error: str, output: str) -> None:
    path.mkdir(parents=True, exist_ok=True)
    if output.strip():
        error += f"\nIts last output:\n{output[-4000:]}"
    write_atomically(path / "error.txt", error.encode())


def _note_time(path: Path, seconds: float, threads: int) -> None:
    """Add to the time that the run has taken so far, kept for estimates."""
    if not path.exists():
        return
    file = path / "timing.json"
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        seconds += float(loads(file.read_bytes())["seconds"])
    content = {"seconds": round(seconds, 3), "threads": threads}
    write_atomically(file, (dumps(content) + "\n").encode())


@contextlib.contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


# Held while a signal is sent or its handlers change: none must meet a process without handlers.
_signals = threading.Lock()
_in_progress = threading.Event()
_abandoned = threading.Event()
_watched: set[Path] = set()


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """Let a signal end a run that does not catch it to save itself first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def stop(number: int, frame: FrameType | None) -> None:
        raise Interrupted

    with _signals:
        before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        _in_progress.set()
    try:
        yield
    finally:
        with _signals:
            _in_progress.clear()
            for number, handler in before.items():
                signal.signal(number, handler)


def _watch(job: Job) -> None:
    """From now on, end this process's runs when the study is asked to stop or its parent dies."""
    session, parent = job.session, os.getppid()
    if session.path in _watched:
        return
    _watched.add(session.path)
    if parent == job.pid:
        with contextlib.suppress(OSError):
            # Ctrl-C is for the command, which then asks all workers, wherever they are, to stop.
            os.setpgid(0, 0)

    def watch() -> None:
        while not session.stopping and os.getppid() == parent:
            time.sleep(0.5)
        if os.getppid() != parent:
            _abandoned.set()
        with _signals:
            if _in_progress.is_set():
                os.kill(os.getpid(), signal.SIGTERM)
        while _abandoned.is_set():
            time.sleep(0.5)
            if not _in_progress.is_set():
                os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
