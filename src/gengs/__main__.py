"""``python -m gengs`` is the same as ``gengs``."""

from importlib import import_module

import_module("gengs_experiments.cli").entry()
