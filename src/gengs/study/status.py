"""How far a study is: read from its folder alone, at any time, by anyone."""

from __future__ import annotations

__all__ = ["State", "Status", "error_line", "state_of"]

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from .finished import is_done
from .plan import Plan, Run

State = Literal["done", "running", "failed", "waiting"]


def state_of(folder: Path, run: Run) -> State:
    """Whether a run is done, has failed, or is still to be done."""
    path = folder / "runs" / run.id
    if is_done(path, run):
        return "done"
    return "failed" if (path / "error.txt").exists() else "waiting"


@dataclass(frozen=True)
class Status:
    """The states of all runs of a study.

    Args:
        plan: The study.
        folder: Its folder.
        running: The runs in progress, with the seconds since they were started.
    """

    plan: Plan
    folder: Path
    running: Mapping[str, float] = field(default_factory=dict)
    states: Mapping[str, State] = field(init=False)

    def __post_init__(self) -> None:
        states: dict[str, State] = {}
        for run in self.plan.runs:
            state = state_of(self.folder, run)
            states[run.id] = "running" if run.id in self.running and state != "done" else state
        object.__setattr__(self, "states", states)

    def count(self, state: State) -> int:
        """How many runs are in a state."""
        return Counter(self.states.values())[state]

    def runs(self, *states: State) -> list[Run]:
        """The runs in any of these states, in the order of the plan."""
        return [run for run in self.plan.runs if self.states[run.id] in states]


def error_line(folder: Path, run: Run) -> str:
    """The sentence that says why a run failed."""
    try:
        text = (folder / "runs" / run.id / "error.txt").read_text(encoding="utf-8")
    except OSError:
        return ""
    error = text.partition("\nIts last output:\n")[0].strip()
    return error.splitlines()[-1] if error else ""
