"""Files of a study, read with suspicion: they may come from anywhere.

Only JSON and PNG are read. A file that is too large, damaged, or not what its name says raises
:class:`Unreadable` with one sentence; nothing in it is ever run.
"""

__all__ = ["Picture", "Unreadable", "read_json", "read_picture", "saved_records"]

import base64
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..runs.json_lines import JsonLines, loads

LIMITS = {
    "plan.json": 2**26,
    "topics.json": 2**24,
    "records.jsonl": 2**28,
    "timings.jsonl": 2**28,
    ".png": 2**22,
}
"""Bytes of a file of this name or suffix; a mebibyte of any other."""
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_LARGEST_SIDE = 8192


class Unreadable(ValueError):
    """A file that is there and cannot be used; the message says why."""


@dataclass(frozen=True)
class Picture:
    """A checked PNG."""

    uri: str
    width: int
    height: int


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file, NaN and infinities restored."""
    _check_size(path)
    try:
        return loads(path.read_bytes())
    except ValueError as error:
        raise Unreadable(f"{path.name} is damaged: {error}") from error


def saved_records(path: Path) -> Iterator[dict[str, Any]]:
    """The records in a file; none if there is no file."""
    if path.exists():
        _check_size(path)
        try:
            yield from JsonLines.read(path)
        except ValueError as error:
            raise Unreadable(f"{path.name} is damaged: {error}") from error


def read_picture(path: Path) -> Picture:
    """A PNG as a data URI: its signature, its first chunk and its sides are checked."""
    _check_size(path)
    data = path.read_bytes()
    if not data.startswith(_SIGNATURE) or data[12:16] != b"IHDR" or len(data) < 57:
        raise Unreadable(f"expected a PNG, but {path.name} is something else.")
    width, height = struct.unpack(">II", data[16:24])
    if not (0 < width <= _LARGEST_SIDE and 0 < height <= _LARGEST_SIDE):
        raise Unreadable(f"expected a PNG of a size to show, but {path.name} says {width}×{height}")
    return Picture("data:image/png;base64," + base64.b64encode(data).decode(), width, height)


def _check_size(path: Path) -> None:
    limit = LIMITS.get(path.name) or LIMITS.get(path.suffix, 2**20)
    try:
        size = path.stat().st_size
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}.") from error
    if not path.is_file():
        raise Unreadable(f"expected a file, but {path.name} is something else.")
    if size > limit:
        raise Unreadable(f"expected at most {limit:,} bytes in {path.name}, but it has {size:,}.")
