"""What ``config.json`` says: which experiment, with which settings, made by what.

The configuration decides the result, so a resumed run must have the same. Versions and threads
should not, but may change the last bits: those of the process that began the run are recorded.
"""

__all__ = ["command", "read_manifest", "resume_command"]

import os
import platform
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from gengs import __version__

from .config import differences, in_words, to_json
from .json_lines import loads

_LARGEST = 2**20  # bytes: a file from elsewhere may be anything


def command() -> str:
    """The command line of this process, ready to be typed again."""
    program = Path(sys.argv[0])
    if program.suffix == ".py" or program.name == "-c":
        return shlex.join(["python", *sys.orig_argv[1:]])
    return shlex.join([program.name, *sys.argv[1:]])


def resume_command(folder: Path | None = None) -> str:
    """What to type to go on with the run of this process; in a folder that it chose itself."""
    words = command()
    told = set(words.split())
    if folder is not None and not told & {"--out", "-o"}:
        words += f" --out {shlex.quote(str(folder))}"
    return words if "--resume" in told else f"{words} --resume"


def manifest(config: Any, experiment: str | None = None) -> dict[str, Any]:
    """The content of ``config.json`` for a run that begins now; ``VaeConfig`` makes a ``vae``."""
    import torch

    name = type(config).__name__.lower()
    # those that this process may use, where the system says so
    asked = getattr(os, "sched_getaffinity", None)
    return {
        "experiment": experiment or name.removesuffix("config") or name,
        "config": to_json(config),
        "seed": getattr(config, "seed", None),
        "threads": torch.get_num_threads(),
        "versions": {
            "gengs": __version__,
            "torch": str(torch.__version__),
            "python": platform.python_version(),
        },
        "machine": {
            "system": platform.platform(),
            "processor": _processor(),
            "cores": len(asked(0)) if asked else os.cpu_count(),
        },
        "command": command(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # not Linux
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.machine()


def read_manifest(path: Path) -> dict[str, Any]:
    """The ``config.json`` of a folder; ``ValueError`` if there is none, or it is damaged."""
    file = path / "config.json"
    try:
        if file.stat().st_size > _LARGEST:
            raise ValueError(f"more than {_LARGEST:,} bytes.")
        return loads(file.read_bytes())
    except FileNotFoundError:
        raise ValueError(f"{path} is not the folder of a run: no config.json.") from None
    except ValueError as error:
        raise ValueError(f"{file} is damaged: {error}") from error


def difference(
    then: Mapping[str, Any],
    experiment: str,
    settings: Mapping[str, Any],
    config_class: type[Any] | None,
    now: str = "now",
) -> str:
    """What a run was made with instead, as the end of a sentence about it; or nothing."""
    made_by, config = str(then.get("experiment", "")), then.get("config")
    if not isinstance(config, dict):
        return "has no settings in its config.json"
    if experiment and made_by != experiment:
        return f"was made by the experiment {made_by!r}, not {experiment!r}"
    found = differences(config_class, config, settings)
    return f"was made with other settings ({in_words(found, now)})" if found else ""
