"""What commands that train have in common: load the data, build the model, train, tell."""

from __future__ import annotations

__all__ = ["TrainCommand", "TrainConfig"]

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..runs.machine import Machine, without_subnormals
from ..runs.sanitise import say

if TYPE_CHECKING:
    from ..runs.training import Task, Training


class TrainConfig(Protocol):
    """A frozen dataclass that knows how to become a task."""

    seed: int

    def check(self) -> None:
        """Raise for a number out of range, before anything is fetched."""

    def load(self, data_dir: Path | None) -> Any:
        """The data."""

    def build(self, data: Any) -> tuple[Task, Training]:
        """What trains on them, and for how long."""


@dataclass(frozen=True)
class TrainCommand:
    """Train; each such command has a configuration of its own."""

    config: Any
    out: Path
    """The folder of the run."""
    data_dir: Path | None = None
    """Where the data sets are; by default $GENGS_DATA, or the download cache."""
    machine: Machine = field(default_factory=Machine)

    @without_subnormals()
    def run(self) -> list[dict[str, Any]]:
        """Train, record, and print the last evaluation."""
        from ..runs.training import train

        config: TrainConfig = self.config
        self.machine.check()
        config.check()
        task, training = config.build(config.load(self.data_dir))
        records = train(task, self.out, config, training, self.machine, seed=config.seed)
        evaluations = [record for record in records if record["kind"] == "evaluation"]
        if evaluations:
            shown = {k: v for k, v in evaluations[-1].items() if k not in ("kind", "step")}
            say("  ".join(f"{name} {value:.5g}" for name, value in shown.items()))
            say(f"records: {self.out / 'records.jsonl'}")
        return records
