"""What made the numbers: versions, threads, machines, and the exact commands."""

from __future__ import annotations

__all__ = ["Fact", "commands", "environment"]

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .runs import Run


@dataclass(frozen=True)
class Fact:
    """Something about the runs, with the number of runs it is true of."""

    name: str
    values: tuple[tuple[str, int], ...]


def environment(runs: Sequence[Run]) -> list[Fact]:
    """Versions, threads and machines of the runs that have begun."""
    counters: dict[str, Counter[str]] = {}
    for run in runs:
        for name, value in _facts(run.manifest).items():
            counters.setdefault(name, Counter())[value] += 1
    return [Fact(name, tuple(counter.most_common())) for name, counter in counters.items()]


def commands(runs: Sequence[Run]) -> list[tuple[str, int]]:
    """The command lines that began the runs, the most frequent first."""
    found = Counter(str(run.manifest["command"]) for run in runs if "command" in run.manifest)
    return found.most_common()


def _facts(manifest: Mapping[str, Any]) -> dict[str, str]:
    found: dict[str, str] = {}
    versions = manifest.get("versions")
    if isinstance(versions, dict):
        found |= {str(name): str(version) for name, version in versions.items()}
    if "threads" in manifest:
        found["threads"] = str(manifest["threads"])
    machine = manifest.get("machine")
    if isinstance(machine, dict):
        found |= {str(name): str(value) for name, value in machine.items()}
    return found
