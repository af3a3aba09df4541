"""Where to train: one command for a laptop, a GPU, several processes, several machines.

Alone, a command uses ``devices`` processes that it starts itself. Under ``torchrun`` it uses those
that torchrun started, on as many machines.
"""

from __future__ import annotations

__all__ = ["Machine", "launch", "limited_threads", "require_semaphores", "without_subnormals"]

import multiprocessing
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from .config import check_least
from .interruption import end_with_parent

if TYPE_CHECKING:
    from lightning_fabric import Fabric

_PARENT = "GENGS_PARENT"


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
    """Show the progress; --no-progress shows none."""

    def check(self) -> None:
        """Raise for a number out of range."""
        check_least(self, {"devices": 1, "checkpoint_steps": 1, "checkpoint_seconds": 0})

    def fabric(self, find_unused_parameters: bool = True) -> Fabric:
        """Lightning Fabric on this machine, not yet launched; the argument is DDP's."""
        import torch
        from lightning_fabric import Fabric

        present = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
        if not present.get(self.accelerator, True):
            raise ValueError(
                f"expected an accelerator of this machine, but it has no {self.accelerator}; "
                "auto takes what there is."
            )
        devices, nodes = self.devices, 1
        if _under_torchrun():
            devices = int(os.environ["LOCAL_WORLD_SIZE"])
            nodes = int(os.environ["WORLD_SIZE"]) // devices
        strategy = "ddp_find_unused_parameters_true" if find_unused_parameters else "ddp"
        return Fabric(
            accelerator=self.accelerator,
            devices=devices,
            num_nodes=nodes,
            strategy=strategy if devices * nodes > 1 else "auto",
        )


def launch(fabric: Fabric) -> None:
    """Start the other processes; in one of these, end with the one that started it.

    Killed outright, the first process cannot end the others, which would wait for it in a
    collective operation, for half an hour and deaf to SIGTERM. Checkpoints are the first process's:
    nothing is lost with them.
    """
    parent = os.environ.pop(_PARENT, None)
    if parent is None and _under_torchrun():
        parent = str(os.getppid())  # which leaves no number: a parent that is dead now stays unseen
    if parent is not None:
        end_with_parent(int(parent))
    os.environ[_PARENT] = str(os.getpid())
    try:
        fabric.launch()
    finally:
        del os.environ[_PARENT]  # for the processes of this run alone


def require_semaphores(workers: int = 2) -> None:
    """Raise ``OSError`` where several processes cannot be started: joblib would take threads."""
    try:
        if workers != 1:
            multiprocessing.get_context("spawn").Semaphore()
    except OSError as error:
        raise OSError(
            error.errno,
            "cannot start processes: there is no room for a semaphore in /dev/shm "
            f"({error.strerror}); make some, or take --workers 1.",
        ) from error


def _under_torchrun() -> bool:
    return "TORCHELASTIC_RUN_ID" in os.environ


@contextmanager
def limited_threads(number: int) -> Iterator[None]:
    """So many threads of torch inside."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def without_subnormals() -> Iterator[None]:
    """Take numbers below 1e-38 as zero inside; also a decorator.

    Adam's memory of a weight whose gradients have ended fades by a tenth at every step, and after
    some 700 steps is a *subnormal* number, for which a processor takes a hundred times as long.

    It holds for this thread and those that are started inside. torch starts its own at the first
    large operation, and they stay as they were started: be early, and in a process that trains.
    Where a processor cannot do it, nothing happens.
    """
    import torch

    # torch can be told, but not asked
    before = not (torch.tensor(1e-30, dtype=torch.float32, device="cpu") * 1e-12).item()
    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(before)
