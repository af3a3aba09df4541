"""Options that many commands have, so that they are spelt alike."""

__all__ = ["OUT"]

import tyro

OUT = tyro.conf.arg(aliases=["-o"])
"""``--out``, for short ``-o``."""
