"""Commands that train a model: ``gengs vae``, and what all of them have in common.

load the data → build the model (:mod:`.vae`) → train → evaluate with exact draws
"""

from __future__ import annotations

__all__ = ["TrainCommand", "Vae"]

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from ..runs.command_options import OUT
from ..runs.machine import Machine, without_subnormals
from ..runs.sanitise import say
from .vae_settings import VaeConfig

if TYPE_CHECKING:
    from ..runs.training import Task, Training


@dataclass(frozen=True)
class TrainCommand(ABC):
    """Train; each such command has a configuration and a builder of its own.

    The configuration is a frozen dataclass with a ``seed`` that raises for a number out of range
    (``check()``), loads its data (``load(data_dir)``), and says what is wrong with the last
    evaluation (``remark(values)``).
    """

    config: Any
    out: Path
    """The folder of the run."""
    data_dir: Path | None = None
    """Where the data sets are; by default $GENGS_DATA, or the download cache."""
    machine: Machine = field(default_factory=Machine)

    @abstractmethod
    def build(self, data: Any) -> tuple[Task, Training]:
        """The model and how it is trained on the data."""

    def remark(self, values: Mapping[str, Any], data: Any) -> str:
        """What is wrong with the last evaluation, or nothing."""
        return str(self.config.remark(values))

    @without_subnormals()
    def run(self) -> list[dict[str, Any]]:
        """Train, record, and print the last evaluation."""
        self.machine.check()
        self.config.check()
        if self.machine.progress and _is_first():
            say(f"training in {self.out}")  # before what takes seconds to be imported
        from ..runs.diagnosis import NonFiniteError, diverged
        from ..runs.training import train

        data = self.config.load(self.data_dir)
        task, training = self.build(data)
        seed, rate = self.config.seed, self.config.learning_rate
        try:
            records = train(task, self.out, self.config, training, self.machine, seed=seed)
        except NonFiniteError as error:
            raise NonFiniteError(f"{error} If {diverged(rate)}") from error
        evaluations = [record for record in records if record["kind"] == "evaluation"]
        if evaluations:
            shown = {k: v for k, v in evaluations[-1].items() if k not in ("kind", "step")}
            say("  ".join(f"{name} {value:.5g}" for name, value in shown.items()))
            say(f"records: {self.out / 'records.jsonl'}")
            if remark := self.remark(shown, data):
                say(remark)
        return records


def _is_first() -> bool:
    return os.environ.get("LOCAL_RANK", "0") == "0"


@dataclass(frozen=True)
class Vae(TrainCommand):
    """Train a count-latent variational autoencoder on images, with any estimator."""

    config: VaeConfig = field(default_factory=VaeConfig)
    out: Annotated[Path, OUT] = Path("runs/vae")

    def build(self, data: Any) -> tuple[Task, Training]:
        from .vae import build

        if data.held_out and _is_first():
            say(
                f"{data.name}: {len(data.train):,} images to train on, and "
                f"{len(data.test):,} held out to test on"
            )
        return build(self.config, data)

    def remark(self, values: Mapping[str, Any], data: Any) -> str:
        from ..runs.diagnosis import diverged
        from .vae import is_worse_than_untrained

        if is_worse_than_untrained(self.config, data, values["nelbo_test"]):
            return f"worse than an untrained model; {diverged(self.config.learning_rate)}"
        return super().remark(values, data)
