"""What commands that train have in common: load the data, build the model, train, tell."""

from __future__ import annotations

__all__ = ["TrainCommand"]

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..runs.machine import Machine, without_subnormals
from ..runs.sanitise import say


@dataclass(frozen=True)
class TrainCommand:
    """Train; each such command has a configuration of its own.

    It is a frozen dataclass with a ``seed`` that raises for a number out of range (``check()``),
    loads its data (``load(data_dir)``) and becomes a task on them (``build(data)``).
    """

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

        self.machine.check()
        self.config.check()
        task, training = self.config.build(self.config.load(self.data_dir))
        seed = self.config.seed
        records = train(task, self.out, self.config, training, self.machine, seed=seed)
        evaluations = [record for record in records if record["kind"] == "evaluation"]
        if evaluations:
            shown = {k: v for k, v in evaluations[-1].items() if k not in ("kind", "step")}
            say("  ".join(f"{name} {value:.5g}" for name, value in shown.items()))
            say(f"records: {self.out / 'records.jsonl'}")
        return records
