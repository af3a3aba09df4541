"""``python -m gengs`` is the same as ``gengs``."""

from .cli import entry

entry()
