"""``gengs nvpdef``: train a topic model on a published corpus.

load the corpus → build the model (:mod:`.nvpdef_experiment`) → train → evaluate with exact draws
"""

from __future__ import annotations

__all__ = ["Nvpdef"]

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from gengs_experiments.experiments.train_command import TrainCommand
from gengs_experiments.runs.command_options import OUT

from .nvpdef_settings import NvpdefConfig

if TYPE_CHECKING:
    from gengs_experiments.runs.training import Task, Training


@dataclass(frozen=True)
class Nvpdef(TrainCommand):
    """Train a Poisson topic model on a corpus, with any estimator."""

    config: NvpdefConfig = field(default_factory=NvpdefConfig)
    out: Annotated[Path, OUT] = Path("runs/nvpdef")

    def build(self, data: Any) -> tuple[Task, Training]:
        from .nvpdef_experiment import build_nvpdef

        return build_nvpdef(self.config, *data)
