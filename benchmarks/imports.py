"""What importing costs in seconds of the processor: ``import gengs`` after torch, and commands.
Each is the best of several fresh processes: a cold cache makes a try slow, never fast.

    python -m benchmarks.imports
"""

from __future__ import annotations

import resource
import subprocess
import sys

from .timing import machine

_TRIES = 6
_ADDED = """
import time, torch
before = time.process_time()
import gengs
print(time.process_time() - before)
"""
_COMMANDS = {
    "python -c pass": ["-c", "pass"],
    "import torch": ["-c", "import torch"],
    "gengs --help": ["-m", "gengs", "--help"],
    "gengs vae --help": ["-m", "gengs", "vae", "--help"],
    "gengs estimators": ["-m", "gengs", "estimators"],
}


def added() -> float:
    """Seconds that ``import gengs`` adds to ``import torch``."""
    command = [sys.executable, "-c", _ADDED]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return float(done.stdout)


def processor_seconds(arguments: list[str]) -> float:
    """Seconds of the processor, user and system, of a whole process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main() -> None:
    print(machine())
    print(f"import gengs, after torch   {min(added() for _ in range(_TRIES)):6.2f} s")
    for name, arguments in _COMMANDS.items():
        best = min(processor_seconds(arguments) for _ in range(_TRIES))
        print(f"{name:27} {best:6.2f} s")


if __name__ == "__main__":
    main()
