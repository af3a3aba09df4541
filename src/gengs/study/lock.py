"""One writer per folder.

The lock belongs to the process, not to the file: the operating system drops it when the process
ends, however it ends, so nothing has to be cleaned up after a crash.
"""

from __future__ import annotations

__all__ = ["take_lock"]

import os
import platform
from pathlib import Path
from typing import IO


def take_lock(folder: Path) -> IO[bytes]:
    """Lock ``folder`` until the returned file is closed.

    Raises:
        OSError: If another process, or this one, holds the lock; the message says which.
    """
    import fcntl  # not on Windows

    file = (folder / ".lock").open("a+b")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        file.seek(0)
        owner = file.read().decode(errors="replace").strip()
        file.close()
        raise OSError(
            error.errno, f"the run folder {folder} is in use by another process ({owner})."
        ) from error
    file.truncate(0)
    file.write(f"pid {os.getpid()} on {platform.node()}".encode())
    file.flush()
    return file
