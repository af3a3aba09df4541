"""Where to train: one command for a laptop, a GPU, several processes, several machines.

Alone, a command uses ``devices`` processes that it starts itself. Under ``torchrun`` it uses those
that torchrun started, on as many machines.
"""

from __future__ import annotations

__all__ = ["Machine"]

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import torch

from .options import check_least

if TYPE_CHECKING:
    from lightning_fabric import Fabric


@dataclass(frozen=True)
class Machine:
    """How to run: on one kind of device, only the number of processes changes what is recorded."""

    resume: bool = False
    """Continue the run in the folder, if there is one."""
    accelerator: Literal["auto", "cpu", "cuda", "mps"] = "auto"
    """The kind of device."""
    devices: int = 1
    """The number of devices, a process each, with noise of its own; torchrun overrides it."""
    checkpoint_steps: int | None = None
    """Save each time this many steps are done."""
    checkpoint_seconds: float = 300.0
    """Save when this much time has passed; a run always saves at its end."""
    tensorboard: bool = False
    """Write scalars for TensorBoard to the folder."""
    progress: bool = True
    """Whether to show the progress."""

    def check(self) -> None:
        """Raise for a number out of range."""
        check_least(self, {"devices": 1, "checkpoint_steps": 1, "checkpoint_seconds": 0})

    def fabric(self, precision: str, some_may_rest: bool = True) -> Fabric:
        """Lightning Fabric on this machine, not yet launched.

        Args:
            precision: The arithmetic, in Fabric's words.
            some_may_rest: Whether a step may leave out some parameters.
        """
        from lightning_fabric import Fabric

        present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        if not present.get(self.accelerator, True):
            raise ValueError(
                f"expected an accelerator of this machine, but it has no {self.accelerator}; "
                "auto takes what there is."
            )
        world = int(os.environ.get("WORLD_SIZE", 1))
        local = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
        under_torchrun = "TORCHELASTIC_RUN_ID" in os.environ
        devices = local if under_torchrun else self.devices
        nodes = world // local if under_torchrun else 1
        strategy = "ddp_find_unused_parameters_true" if some_may_rest else "ddp"
        return Fabric(
            accelerator=self.accelerator,
            devices=devices,
            num_nodes=nodes,
            strategy=strategy if devices * nodes > 1 else "auto",
            precision=precision,  # type: ignore[arg-type]
        )
