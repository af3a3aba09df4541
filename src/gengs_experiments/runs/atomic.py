"""Files that are either the old one or the new one, never half of either.

The bytes go to a temporary file in the same folder (a rename does not cross file systems), are
forced to the disk, and take the name in one step; forcing the folder makes the new name last. A
process that is killed, or a disk that is full, leaves the old file as it was.
"""

__all__ = ["temporary_name", "why", "write_atomically"]

import errno
import os
from pathlib import Path


def temporary_name(path: Path) -> Path:
    """Where the bytes are before they are whole: one fixed name, so leftovers do not pile up."""
    return path.with_name(f".{path.name}.partial")


def write_atomically(path: Path, data: bytes) -> None:
    """Replace the file ``path`` by ``data``, or raise ``OSError`` and leave it as it was."""
    temporary = temporary_name(path)
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        if os.name != "nt":  # Windows cannot open a folder, and has its own journal
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except OSError as error:
        # Room for what comes next, such as a shorter message in the records.
        temporary.unlink(missing_ok=True)
        kept = "the previous one is kept" if path.exists() else "nothing was written"
        raise OSError(error.errno, f"could not write {path}, {kept}: {why(error)}") from error


def why(error: OSError) -> str:
    """What the system refused, in words."""
    full = error.errno == errno.ENOSPC
    return "the disk is full" if full else error.strerror or str(error)
