"""Options that many commands have, so that they are spelt, and checked, alike."""

__all__ = ["OUT", "require_out"]

from pathlib import Path

import tyro

OUT = tyro.conf.arg(aliases=["-o"])
"""``--out``, for short ``-o``."""


def require_out(out: Path | None, resume: bool) -> None:
    """Raise where a run is to go on, and nobody says which."""
    if resume and out is None:
        raise ValueError("--resume goes on with a folder: name it by --out.")
