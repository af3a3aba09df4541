"""Which lines of the package a test runs, and how long it takes.

With it, a change of one line asks the tests that run that line, the quick ones first.
"""

from __future__ import annotations

__all__ = ["LineRecorder", "TestRun"]

import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any


@dataclass
class TestRun:
    """One test: how long it took, and the lines it ran, by file."""

    seconds: float = 0.0
    lines: dict[str, list[int]] = field(default_factory=dict)

    def runs(self, file: str, lines: range) -> bool:
        """Whether it runs one of these lines."""
        return any(line in lines for line in self.lines.get(file, ()))


class LineRecorder:
    """A context in which the lines of some folders of a package are remembered as they run.

    Args:
        package: The folder of the package.
        folders: Those of its folders that are watched.
    """

    def __init__(self, package: Path, folders: Iterable[str]) -> None:
        self.root = f"{package}/"
        self.watched = tuple(f"{self.root}{folder}/" for folder in folders)

    def __enter__(self) -> TestRun:
        self.lines: dict[str, set[int]] = defaultdict(set)
        self.test, self.start = TestRun(), time.monotonic()
        sys.settrace(self._called)
        return self.test

    def __exit__(self, *failure: object) -> None:
        sys.settrace(None)
        self.test.seconds = time.monotonic() - self.start
        for name, lines in self.lines.items():
            self.test.lines[name.removeprefix(self.root)] = sorted(lines)

    def _called(self, frame: FrameType, event: str, argument: Any) -> Any:
        name = frame.f_code.co_filename
        if not name.startswith(self.watched):
            return None
        add = self.lines[name].add

        def line_reached(frame: FrameType, event: str, argument: Any) -> Any:
            add(frame.f_lineno)
            return line_reached

        return line_reached
