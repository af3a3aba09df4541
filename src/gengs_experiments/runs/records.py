"""The folder of a run: its configuration, records, timings and checkpoint.

====================  ==========================================================================
config.json           the experiment, its configuration, versions, seed, threads, exact command
records.jsonl         what was measured, one JSON object a line; the same bytes for the same run
timings.jsonl         wall-clock and processor times, which no two runs share
checkpoint.pt         where to continue; plain data, written atomically
weights.safetensors   the trained weights, when the run is done
complete.json         written last: the number of records, and a checksum of each file
.lock                 held by the process that writes here
====================  ==========================================================================

A run that is killed at any moment and resumed ends with the same ``records.jsonl`` and weights as
one that was left alone. For that, a checkpoint keeps the number of records at its step, and
:meth:`JsonLines.rewind` forgets the ones after it, which the resumed run makes again.
"""

from __future__ import annotations

__all__ = ["COMPLETE", "RunFolder", "checksums", "folder_lock"]

import errno
import hashlib
import os
import platform
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from .atomic import temporary_name
from .json_lines import JsonLines, loads, write_json
from .manifest import difference, manifest, read_manifest

COMPLETE = "complete.json"
"""The file that a run writes last."""

# What never changes once a run is finished; a checkpoint may, and has checksums of its own.
_RESULTS = ("config.json", "records.jsonl", "timings.jsonl", "weights.safetensors", "topics.json")


@dataclass(frozen=True)
class RunFolder:
    """The folder of one run, open for writing.

    Example:
        >>> import dataclasses, tempfile
        >>> @dataclasses.dataclass(frozen=True)
        ... class Toy:
        ...     rate: float = 0.1
        ...     seed: int = 0
        >>> folder = tempfile.TemporaryDirectory()
        >>> with RunFolder.open(f"{folder.name}/run", Toy()) as run:
        ...     run.records.append({"step": 1, "loss": 0.5})
        >>> with RunFolder.open(f"{folder.name}/run", Toy(), resume=True) as run:
        ...     run.records.append({"step": 2, "loss": float("nan")})
        ...     list(run.records)
        [{'step': 1, 'loss': 0.5}, {'step': 2, 'loss': nan}]
        >>> with RunFolder.open(f"{folder.name}/run", Toy(rate=0.2), resume=True):
        ...     pass
        Traceback (most recent call last):
        ValueError: the run in ... was made with other settings (rate: 0.1, now 0.2): ...
        >>> folder.cleanup()
    """

    path: Path
    records: JsonLines
    """Nothing that the clock decides."""
    timings: JsonLines

    @classmethod
    @contextmanager
    def open(
        cls, path: str | Path, config: Any, *, resume: bool = False, experiment: str | None = None
    ) -> Iterator[RunFolder]:
        """Begin a run in a new or empty folder, or take up again the one that is there.

        Args:
            path: The folder.
            config: A dataclass. Its ``seed``, if it has one, is noted beside it.
            resume: Continue the run in ``path``, if there is one; else begin it.
            experiment: The experiment's name; by default the class of ``config``.

        Raises:
            ValueError: If the folder holds something else, or a run with another configuration, or
                a run although ``resume`` is false.
            OSError: If another process writes there.
        """
        path, now = Path(path), manifest(config, experiment)
        _refuse_foreign(path)
        path.mkdir(parents=True, exist_ok=True)
        with folder_lock(path):
            if not (path / "config.json").exists() or not has_begun(path):
                write_json(path / "config.json", now)
            elif not resume:
                raise ValueError(
                    f"{path} already holds a run: resume it, or choose another folder."
                )
            else:
                then = read_manifest(path)
                reason = difference(then, now["experiment"], now["config"], type(config))
                reason = reason or damage(path)
                if reason:
                    raise ValueError(f"the run in {path} {reason}: choose another folder.")
                (path / COMPLETE).unlink(missing_ok=True)  # until it is finished again
            with (
                closing(JsonLines(path / "records.jsonl")) as records,
                closing(JsonLines(path / "timings.jsonl")) as timings,
            ):
                yield cls(path, records, timings)

    def finish(self) -> None:
        """Mark the run as complete: nothing is left to do, and later damage can be told."""
        self.records.sync()
        content = {"records": len(self.records), "sha256": checksums(self.path)}
        write_json(self.path / COMPLETE, content)

    @staticmethod
    def load_records(path: str | Path) -> list[dict[str, Any]]:
        """The records of a run, finished or not, also while another process writes.

        Raises:
            ValueError: If it is finished, and a file is not what it was then.
        """
        path = Path(path)
        if reason := damage(path):
            raise ValueError(f"the run in {path} {reason}: take a copy of it, or do it again.")
        file = path / "records.jsonl"
        return list(JsonLines.read(file)) if file.exists() else []


@contextmanager
def folder_lock(folder: Path) -> Iterator[None]:
    """One writer per folder. The system drops the lock when the process ends, however it ends.

    Raises:
        BlockingIOError: If another process, or this one, holds the lock; the message says which.
    """
    file = folder / ".lock"
    lock = FileLock(file, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except Timeout:
        owner = file.read_text(encoding="utf-8", errors="replace").strip()
        raise BlockingIOError(
            errno.EAGAIN, f"the run folder {folder} is in use by another process ({owner})."
        ) from None
    try:
        file.write_text(f"pid {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        lock.release()


def checksums(path: Path) -> dict[str, str]:
    """The SHA-256 of each file that makes a run's result, by name."""
    pictures = (file for file in path.glob("*.png") if file.name != "figure.png")  # drawn anew
    found = [path / name for name in _RESULTS] + sorted(pictures)
    return {f.name: hashlib.sha256(f.read_bytes()).hexdigest() for f in found if f.is_file()}


def damage(path: Path) -> str:
    """Which file of a finished run is not what it was, as the end of a sentence about the run."""
    try:
        expected = dict(loads((path / COMPLETE).read_bytes())["sha256"])
    except FileNotFoundError:  # it is not finished
        return ""
    except (ValueError, LookupError, TypeError) as error:
        return f"is damaged: its {COMPLETE} cannot be read ({error})"
    found = checksums(path)
    for name, digest in expected.items():  # a figure may have been drawn since
        if found.get(name) != digest:
            what = "has changed since the run finished" if name in found else "is missing"
            return f"is damaged: its {name} {what}"
    return "" if expected else f"is damaged: its {COMPLETE} names no file"


def has_begun(path: Path) -> bool:
    """Whether there is anything to lose: a run may stop over its settings before its first step."""
    return has_records(path) or (path / "checkpoint.pt").exists()


def has_records(path: Path) -> bool:
    """Whether there is a record."""
    records = path / "records.jsonl"
    return records.is_file() and records.stat().st_size > 0


def _refuse_foreign(path: Path) -> None:
    """Raise if ``path`` holds anything but a run, or the beginning of one."""
    if path.is_file():
        raise ValueError(f"expected a folder for the run, but {path} is a file.")
    ours = {".lock", temporary_name(path / "config.json").name}
    foreign = sorted({item.name for item in path.glob("*")} - ours)
    # Another process may just have begun a run here; then the lock decides.
    if foreign and not (path / "config.json").exists():
        raise ValueError(
            f"expected a new or empty folder for the run, but {path} is not a run and holds "
            f"{foreign[0]!r}."
        )
