"""How far a study is: read from its folder alone, at any time, by anyone."""

from __future__ import annotations

__all__ = ["State", "Status", "look_at", "refuse_conflicts", "time_taken"]

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from ..experiments.registry import EXPERIMENTS
from ..runs.config import to_json
from ..runs.json_lines import loads
from ..runs.run_status import CONFLICTS, RunStatus, inspect_run
from .plan import Plan, PlannedRun

State = Literal["done", "running", "failed", "waiting"]


def look_at(folder: Path, run: PlannedRun, *, verify: bool = False) -> RunStatus:
    """What the folder of a study holds of a run."""
    kind = EXPERIMENTS[run.experiment].config_class
    path, settings = folder / "runs" / run.id, to_json(run.config)
    return inspect_run(path, run.experiment, settings, kind, verify=verify)


def time_taken(path: Path) -> float | None:
    """The seconds that the run in a folder has taken so far, if a study did it."""
    try:
        return float(loads((path / "timing.json").read_bytes())["seconds"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


class Status:
    """The ``states`` of all runs of a study by id, and the ``errors`` of those that failed.

    ``running`` has the runs in progress, with the seconds since they were started.
    """

    def __init__(
        self, plan: Plan, folder: Path, running: Mapping[str, float] | None = None
    ) -> None:
        self.plan, self.folder, self.running = plan, folder, running or {}
        self.states: dict[str, State] = {}
        self.errors: dict[str, str] = {}
        for run in plan.runs:
            found = look_at(folder, run)
            self.states[run.id] = "waiting"  # also what another command works on
            if found.state == "done":
                self.states[run.id] = "done"
            elif run.id in self.running:
                self.states[run.id] = "running"
            elif found.state == "failed":
                self.states[run.id], self.errors[run.id] = "failed", found.reason

    def runs(self, *states: State) -> list[PlannedRun]:
        """The runs in any of these states, in the order of the plan."""
        return [run for run in self.plan.runs if self.states[run.id] in states]

    def count(self, state: State) -> int:
        """How many runs are in a state."""
        return len(self.runs(state))


def refuse_conflicts(folder: Path, runs: Iterable[PlannedRun]) -> None:
    """Raise ``ValueError`` for the first run whose folder is damaged or holds another run."""
    looks = [(run, look_at(folder, run, verify=True)) for run in runs]
    found = [(run, look) for run, look in looks if look.state in CONFLICTS]
    if found:
        run, look = found[0]
        more = f" ({len(found) - 1} more runs are like it)" if len(found) > 1 else ""
        raise ValueError(
            f"the run {run.id} in {folder / 'runs' / run.id} {look.reason.rstrip('.')}{more}: "
            "delete that folder to do the run again, or choose another folder for the study."
        )
