"""Files of a study, read with suspicion: they may come from anywhere.

Only JSON and PNG are read. A file that is too large, damaged, or not what its name says raises
:class:`Unreadable` with one sentence; nothing in it is ever run.
"""

from __future__ import annotations

__all__ = ["Picture", "Unreadable", "read_json", "read_lines", "read_picture", "read_text"]

import base64
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..study.json_lines import JsonLines
from ..study.nonfinite import loads

LIMITS = {"config.json": 2**20, "plan.json": 2**26, "topics.json": 2**24, "error.txt": 2**22}
RECORDS_LIMIT = 2**28
PICTURE_LIMIT = 2**22
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


def _checked_size(path: Path, limit: int) -> None:
    try:
        size = path.stat().st_size
    except OSError as error:
        raise Unreadable(f"{path.name} cannot be read: {error.strerror}.") from error
    if not path.is_file():
        raise Unreadable(f"expected a file, but {path.name} is something else.")
    if size > limit:
        raise Unreadable(f"expected at most {limit:,} bytes in {path.name}, but it has {size:,}.")


def read_text(path: Path) -> str:
    """The text of a small file; bytes that are no text are replaced."""
    _checked_size(path, LIMITS.get(path.name, 2**20))
    return path.read_bytes().decode(errors="replace")


def read_json(path: Path) -> dict[str, Any]:
    """The JSON object in a file, NaN and infinities restored."""
    _checked_size(path, LIMITS.get(path.name, 2**20))
    try:
        return loads(path.read_bytes())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(f"{path.name} is damaged: {error}") from error


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The records in a file, without a torn last line; none if there is no file."""
    if not path.exists():
        return []
    _checked_size(path, RECORDS_LIMIT)
    try:
        return list(JsonLines.read(path))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        raise Unreadable(f"{path.name} is damaged: {error}") from error


def read_picture(path: Path) -> Picture:
    """A PNG as a data URI: its signature, its first chunk and its sides are checked."""
    _checked_size(path, PICTURE_LIMIT)
    data = path.read_bytes()
    if not data.startswith(_SIGNATURE) or data[12:16] != b"IHDR" or len(data) < 57:
        raise Unreadable(f"expected a PNG, but {path.name} is something else.")
    width, height = struct.unpack(">II", data[16:24])
    if not (0 < width <= _LARGEST_SIDE and 0 < height <= _LARGEST_SIDE):
        raise Unreadable(f"expected a PNG of a size to show, but {path.name} says {width}×{height}")
    return Picture("data:image/png;base64," + base64.b64encode(data).decode(), width, height)
