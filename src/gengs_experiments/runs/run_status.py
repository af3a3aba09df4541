"""What a run folder holds: the one answer for studies and reports.

===========  ====================================================================================
done         the run came to its end, and its records are there
running      another process holds its lock
unfinished   it stopped before its end; it can be resumed
failed       the same, and ``error.txt`` says why
damaged      its files cannot be used, or are not what they were when it finished
different    it was made by another experiment, or with other settings than it should have been
waiting      nobody has begun it
===========  ====================================================================================

A folder that is *damaged* or *different* is never run over and enters no mean. ``reason`` is the
end of a sentence about the run: ``was made with other settings (rate: 1, now 2)``.

All of it is read from the folder: any process may ask, at any time, on any machine.
"""

__all__ = ["CONFLICTS", "STATES", "RunStatus", "State", "inspect_run"]

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, get_args

from filelock import FileLock, Timeout

from .manifest import difference, read_manifest
from .records import COMPLETE, damage, has_begun, has_records

State = Literal["done", "running", "unfinished", "failed", "damaged", "different", "waiting"]

STATES: tuple[State, ...] = get_args(State)
"""All states, the one that says most first."""

CONFLICTS: tuple[State, ...] = ("damaged", "different")
"""Those of a folder that is not to be used, nor written to."""


@dataclass(frozen=True)
class RunStatus:
    """What a folder holds."""

    state: State
    reason: str = ""
    """Why it failed, is damaged or is different; empty otherwise."""
    manifest: Mapping[str, Any] = field(default_factory=dict)
    """The content of its ``config.json``, as far as there is one."""

    @property
    def experiment(self) -> str:
        """The experiment that the folder itself names."""
        return str(self.manifest.get("experiment", ""))

    @property
    def settings(self) -> Mapping[str, Any]:
        """The settings that the folder itself records."""
        own = self.manifest.get("config")
        return own if isinstance(own, dict) else {}


def inspect_run(
    folder: Path,
    experiment: str = "",
    settings: Mapping[str, Any] | None = None,
    config_class: type[Any] | None = None,
    *,
    now: str = "now",
    verify: bool = False,
) -> RunStatus:
    """The state of the run in a folder, and whether it is the one that belongs there.

    Args:
        folder: Of the run; it may not exist.
        experiment: The one that should have made it; by default any.
        settings: What it should have been made with, as JSON; by default anything.
        config_class: Knows the defaults of settings that one side lacks.
        now: What to call those settings: ``now 30``, ``in the plan 30``.
        verify: Also compare a finished run's files with their checksums.
    """
    ended, error = (folder / COMPLETE).exists(), _error_line(folder)
    if not (folder / "config.json").is_file():
        if ended:
            return RunStatus("damaged", "is finished, but has no config.json")
        return RunStatus("failed", error) if error else RunStatus("waiting")
    try:
        manifest = read_manifest(folder)
    except ValueError as problem:
        return RunStatus("damaged", f"cannot be read: {problem}")
    if ended and not has_records(folder):
        reason = "is finished, but its records.jsonl is missing or empty"
        return RunStatus("damaged", reason, manifest)
    if settings is not None and (ended or has_begun(folder)):
        reason = difference(manifest, experiment, settings, config_class, now)
        if reason:
            return RunStatus("different", reason, manifest)
    if ended:
        reason = damage(folder) if verify else ""
        return RunStatus("damaged" if reason else "done", reason, manifest)
    if _is_locked(folder):
        return RunStatus("running", manifest=manifest)
    return RunStatus("failed" if error else "unfinished", error, manifest)


def _error_line(folder: Path) -> str:
    """The sentence that says why a run failed: the last one of the error in ``error.txt``."""
    try:
        with (folder / "error.txt").open("rb") as file:
            text = file.read(2**22).decode(errors="replace")  # from elsewhere it may be anything
    except OSError:
        return ""
    lines = text.partition("\nIts last output:\n")[0].strip().splitlines()
    return lines[-1].strip()[:500] if lines else "no message"


def _is_locked(folder: Path) -> bool:
    """Whether a process on this machine writes there now."""
    if (folder / ".lock").exists():
        try:
            FileLock(folder / ".lock", timeout=0).acquire().lock.release()
        except Timeout:
            return True
        except OSError:  # a folder that we may only read
            return False
    return False
