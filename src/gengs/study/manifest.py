"""What ``config.json`` says: which experiment, with which settings, made by what.

The configuration decides the result, so a resumed run must have the same. Versions and threads
should not, but may change the last bits: they are noted, not refused.
"""

from __future__ import annotations

__all__ = ["command", "compare", "experiment_of", "manifest", "read_manifest"]

import os
import platform
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from .. import __version__
from .config import changes, from_json, nearest, to_json
from .nonfinite import loads

_KEYS = ("experiment", "config", "seed", "threads", "versions", "command")
_OPTIONAL = ("machine",)  # runs of before it was noted can be read too


def command() -> str:
    """The command line of this process, ready to be typed again."""
    program = Path(sys.argv[0])
    if program.suffix == ".py" or program.name == "-c":
        return shlex.join(["python", *sys.orig_argv[1:]])
    return shlex.join([program.name, *sys.argv[1:]])


def experiment_of(config: Any) -> str:
    """The experiment's name in ``config.json``, unless told otherwise."""
    return type(config).__name__.lower()


def manifest(config: Any, experiment: str | None = None) -> dict[str, Any]:
    """The content of ``config.json`` for a run that begins now."""
    return {
        "experiment": experiment or experiment_of(config),
        "config": to_json(config),
        "seed": getattr(config, "seed", None),
        "threads": torch.get_num_threads(),
        "versions": {
            "gengs": __version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
        },
        "machine": {"system": platform.platform(), "processor": _processor(), "cores": _cores()},
        "command": command(),
    }


def _cores() -> int | None:
    """Those that this process may use, where the system says so."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.machine()


def read_manifest(path: Path) -> dict[str, Any]:
    """The content of the ``config.json`` in the folder ``path``."""
    file = path / "config.json"
    try:
        content = loads(file.read_bytes())
    except FileNotFoundError:
        raise ValueError(f"{path} is not the folder of a run: no config.json.") from None
    except (ValueError, LookupError) as error:
        raise ValueError(f"{file} is damaged: {error}") from error
    for key in content:
        if key not in (*_KEYS, *_OPTIONAL):
            raise ValueError(f"unknown key {key!r} in {file}{nearest(key, _KEYS)}")
    for key in _KEYS:
        if key not in content:
            raise ValueError(f"{file} lacks the key {key!r}.")
    return content


def compare(path: Path, config: Any, now: Mapping[str, Any]) -> tuple[str, ...]:
    """Refuse a run in ``path`` that is not the same one; note what else is different."""
    then = read_manifest(path)
    if then["experiment"] != now["experiment"]:
        raise ValueError(
            f"the run in {path} is of the experiment {then['experiment']!r}, not "
            f"{now['experiment']!r}."
        )
    before = from_json(type(config), then["config"], str(path / "config.json"))
    different = changes(before, config)
    if different:
        raise ValueError(
            f"the run in {path} has another configuration: {'; '.join(different)}; "
            "resume it as it was, or choose another folder."
        )
    pairs = {"threads": (then["threads"], now["threads"])}
    for name, version in now["versions"].items():
        pairs[name] = (then["versions"].get(name), version)
    return tuple(f"{key} {b} instead of {a}" for key, (a, b) in pairs.items() if a != b)
