"""The one training loop.

    batch → loss → gradient → clip → optimisers → schedules → record → evaluate → checkpoint

A run is a folder (:mod:`gengs.study.records`). Killed at any step and resumed in a fresh process,
it ends with the same bytes of ``records.jsonl`` and ``weights.safetensors`` as a run that was left
alone, on the same kind of CPU and with the same number of threads: batches are a function of the
step, every random generator is in the checkpoint, and records after the checkpoint are made again.
What the clock decides (how often to save, how fast it went) is kept out of both.

Records are of two kinds: ``{"kind": "train", "step", "loss", "gradient_norm", ...}`` with means
over the steps since the record before, and the schedules' values after them; and
``{"kind": "evaluation", "step", ...}`` with what the task's ``evaluate`` returns.
"""

from __future__ import annotations

__all__ = ["Interrupted", "Machine", "NonFiniteError", "Task", "Training", "train"]

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.distributed

from ..study.manifest import command
from ..study.records import RunFolder
from .diagnosis import NonFiniteError
from .interruption import Interrupted, Interruption
from .loop import Loop
from .machine import Machine
from .orphan import launch
from .progress import Progress
from .scalars import Scalars
from .task import Task, Training

if TYPE_CHECKING:
    from lightning_fabric import Fabric


def train(
    task: Task,
    folder: str | Path,
    config: Any,
    training: Training,
    machine: Machine | None = None,
    *,
    seed: int = 0,
    experiment: str | None = None,
    resume_command: str | None = None,
) -> list[dict[str, Any]]:
    """Train, record and save; the records (with several processes, in the first one alone).

    Args:
        task: What to train. Seed the generators before you build it: weights are drawn there.
        folder: The folder of the run.
        config: The experiment's frozen dataclass, kept in ``config.json``. A run is resumed only
            with the same one.
        training: For how long, with which records.
        machine: Where, and whether to resume.
        seed: The seed of all random numbers from the first step on.
        experiment: The experiment's name; by default the class of ``config``.
        resume_command: What to type to go on after an interruption; by default this process's
            command with ``--resume``.

    Raises:
        Interrupted: After Ctrl-C or SIGTERM: the run is saved, the exit code is 130.
        NonFiniteError: If a loss or gradient is NaN or infinite; the message names the step and the
            tensor, and the last checkpoint stays.
    """
    machine = machine or Machine()
    machine.check()
    with ExitStack() as stack:
        interruption = stack.enter_context(Interruption())
        fabric = machine.fabric(training.precision, task.some_may_rest)
        launch(fabric)
        run = _open(fabric, folder, config, machine.resume, experiment)
        if run is not None:
            stack.enter_context(run)
        loop = Loop(fabric, task, training, machine, seed, run)
        loop.begin()
        loop.progress = stack.enter_context(
            Progress(training.steps, loop.step, shown=machine.progress and run is not None)
        )
        if run is not None:
            loop.scalars = stack.enter_context(
                Scalars(run.path, loop.step, enabled=machine.tensorboard)
            )
            for note in run.notes:
                loop.progress.say(f"resumed with {note}: the last digits may differ")
        if not loop.go(interruption):
            if run is not None:
                again = resume_command or _resume_command()
                loop.progress.say(f"saved at step {loop.step}; to go on: {again}")
            raise Interrupted
        if fabric.world_size > 1:  # all are here: go's last act is to wait for each other
            # a process that ends with gloo's threads still running may be aborted by them
            torch.distributed.destroy_process_group()
        return run.records() if run is not None else []


def _open(
    fabric: Fabric, folder: str | Path, config: Any, resume: bool, experiment: str | None
) -> RunFolder | None:
    """The folder, in the first process; where it is refused, the others end without a word."""
    run, refusal = None, None
    if fabric.is_global_zero:
        try:
            run = RunFolder.open(folder, config, resume=resume, experiment=experiment)
        except (OSError, TypeError, ValueError) as error:
            refusal = error
    refused = fabric.broadcast(refusal is not None)
    if refusal is not None:
        raise refusal
    if refused:
        raise SystemExit(1)
    return run


def _resume_command() -> str:
    words = command()
    return words if "--resume" in words.split() else f"{words} --resume"
