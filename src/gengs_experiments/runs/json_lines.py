"""JSON Lines: records one a line, appended to, and cut back to the checkpoint on resume.

A line is one write, so a process that is killed leaves whole lines and at most one torn one. A torn
line has no newline: it is cut off when the file is opened again, and left out where it is read.

Python writes the shortest digits that give the same float, so equal numbers make equal bytes. NaN
and the infinities are the words that Python's ``json`` writes and reads.
"""

__all__ = ["JsonLines", "dumps", "loads", "write_json"]

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .atomic import why, write_atomically
from .sanitise import CONTROLS


def dumps(record: Mapping[str, Any], indent: int | None = None) -> str:
    """A record as one JSON object; zero-dimensional tensors and NumPy numbers become numbers.

    Example:
        >>> dumps({"step": 3, "loss": float("nan")})
        '{"step": 3, "loss": NaN}'
        >>> loads(dumps({"loss": float("nan")}))
        {'loss': nan}
    """
    text = json.dumps(record, default=_number, ensure_ascii=False, indent=indent)
    # JSON itself escapes no control beyond ASCII: a terminal would act on it
    return CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def loads(text: str | bytes) -> dict[str, Any]:
    """The record that :func:`dumps` wrote; ``ValueError`` for anything else."""
    try:
        record = json.loads(text)
        if not isinstance(record, dict):
            raise ValueError(f"expected a JSON object, but got {str(text)[:60]!r}.")
        return record
    except RecursionError as error:
        raise ValueError(str(error)) from error


def write_json(path: Path, record: Mapping[str, Any]) -> None:
    """Write a record as a file of its own, indented, atomically."""
    write_atomically(path, (dumps(record, indent=2) + "\n").encode())


def _number(value: Any) -> Any:
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        return value.item()
    raise TypeError(
        f"expected numbers, strings, lists and dictionaries in a record, but got a "
        f"{type(value).__name__}."
    )


class JsonLines:
    """An append-only log; the file is made if there is none."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Unbuffered: what `append` returned from is in the hands of the operating system.
        self._file = path.open("ab", buffering=0)
        self._ends: list[int] = []  # where each whole line ends
        with path.open("rb") as file:
            for line in file:
                if line.endswith(b"\n"):
                    self._ends.append(self._size + len(line))
        self._file.truncate(self._size)

    def __len__(self) -> int:
        """How many records there are."""
        return len(self._ends)

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The records, from the first on."""
        return self.read(self.path)

    def append(self, record: Mapping[str, Any]) -> None:
        """Add one record."""
        line = dumps(record).encode() + b"\n"
        try:
            written = 0
            while written < len(line):  # a raw write may take a part of it
                written += self._file.write(line[written:])
        except OSError as error:
            self._file.truncate(self._size)
            kept = f"could not add to {self.path}, all before it is kept: {why(error)}"
            raise OSError(error.errno, kept) from error
        self._ends.append(self._size + len(line))

    def rewind(self, count: int) -> None:
        """Forget all but the first ``count`` records."""
        if not 0 <= count <= len(self):
            raise ValueError(
                f"expected at least {count} records in {self.path}, but it has {len(self)}."
            )
        del self._ends[count:]
        self._file.truncate(self._size)

    def sync(self) -> None:
        """Force all records to the disk, so that they survive a power cut too."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Sync and close."""
        self.sync()
        self._file.close()

    @staticmethod
    def read(path: Path) -> Iterator[dict[str, Any]]:
        """The records of a file that a process may be writing."""
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.endswith(b"\n"):
                    try:
                        yield loads(line)
                    except ValueError as error:
                        raise ValueError(
                            f"line {number} of {path} is no record: {error}"
                        ) from error

    @property
    def _size(self) -> int:
        return self._ends[-1] if self._ends else 0
