"""The one training loop.

    batch → loss → gradient → clip → optimisers → schedules → record → evaluate → checkpoint

A run is a folder (:mod:`gengs_experiments.runs.records`). Killed at any step and resumed in a fresh
process, it ends with the same bytes of ``records.jsonl`` and ``weights.safetensors`` as a run that
was left alone, on the same kind of CPU and with the same number of threads: batches are a function
of the step, every random generator is in the checkpoint, and records after the checkpoint are made
again. What the clock decides (how often to save, how fast it went) is kept out of both.

Records are of two kinds: ``{"kind": "train", "step", "loss", "gradient_norm", ...}`` with means
over the steps since the record before, and the schedules' values after them; and
``{"kind": "evaluation", "step", ...}`` with what the task's ``evaluate`` returns.
"""

__all__ = ["Machine", "NonFiniteError", "Stateful", "Task", "Training", "estimate_runtime", "train"]

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from threading import Event
from typing import Any, Protocol

from torch import Tensor, nn
from torch.optim import Optimizer

from .diagnosis import NonFiniteError
from .interruption import Interrupted, interruption
from .loop import Loop
from .machine import Machine, launch
from .manifest import resume_command
from .records import RunFolder


class Data(Protocol):
    """Batches as a function of the step: a run that resumes asks for the ones it still needs."""

    def batch(self, step: int, rank: int, world: int) -> Any:
        """The share of process ``rank`` of ``world`` in the batch of a step; steps begin at 0."""


class Stateful(Protocol):
    """What moves on by one with each step: a temperature or a learning-rate schedule."""

    def step(self) -> Any: ...

    def state_dict(self) -> dict[str, Any]: ...

    def load_state_dict(self, state_dict: dict[str, Any], /) -> Any: ...


@dataclass(frozen=True)
class Task:
    """A loss to be minimised, with everything that changes while it is."""

    modules: Mapping[str, nn.Module]
    """What is trained and saved, by name: the model, and the estimator with its own parameters."""
    step: Callable[[Any], Tensor | Mapping[str, Tensor]]
    """From a batch to the loss, a scalar; or to several scalars, one of them named ``loss``."""
    data: Data
    """The batches."""
    optimizers: Sequence[Optimizer]
    """They all make one step after each loss."""
    schedules: Mapping[str, Stateful] = field(default_factory=dict)
    """They all make one step after the optimisers; their values are recorded under these names."""
    evaluate: Callable[[], Mapping[str, Any]] | None = None
    """Called without gradients, in evaluation mode, with random numbers of its own: how often it
    is called does not change the training."""
    pictures: Callable[[], Mapping[str, Tensor]] = dict
    """Called with each evaluation, in the same way: grey pictures, ``uint8 (height, width)``, by
    name. The folder of the run keeps the last ones as PNG files, TensorBoard all."""
    files: Callable[[], Mapping[str, bytes]] = dict
    """Called at the end: files for the folder of the run, by name."""
    find_unused_parameters: bool = True
    """DDP's: whether a loss may leave out some parameters, as an estimator's own."""


@dataclass(frozen=True)
class Training:
    """For how long to train, and what to note on the way."""

    steps: int = 1000
    """The number of optimisation steps."""
    clip: float | None = None
    """Scale each optimiser's gradient down to at most this norm."""
    record_every: int = 100
    """Record the mean loss of this many steps."""
    evaluate_every: int | None = None
    """Evaluate each time this many steps are done; by default at the end alone."""

    def __post_init__(self) -> None:
        for name in ("steps", "record_every", "evaluate_every"):
            number = getattr(self, name)
            if number is not None and number < 1:
                raise ValueError(f"expected at least 1 for `{name}`, but got {number}.")
        if self.clip is not None and not self.clip > 0:
            raise ValueError(f"expected a positive `clip`, but got {self.clip}.")


def train(
    task: Task,
    folder: str | Path,
    config: Any,
    training: Training,
    machine: Machine | None = None,
    *,
    seed: int = 0,
    experiment: str | None = None,
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

    Raises:
        Interrupted: After Ctrl-C or SIGTERM: the run is saved, the exit code is 130.
        NonFiniteError: If a loss or gradient is NaN or infinite; the message names the step and the
            tensor, and the last checkpoint stays.
    """
    machine = machine or Machine()
    machine.check()
    with ExitStack() as stack:
        asked = stack.enter_context(interruption())
        fabric = machine.fabric(task.find_unused_parameters)
        launch(fabric)
        opened = RunFolder.open(folder, config, resume=machine.resume, experiment=experiment)
        run, refusal = None, None
        if fabric.is_global_zero:
            try:
                run = stack.enter_context(opened)
            except (OSError, TypeError, ValueError) as error:
                refusal = error
        if fabric.broadcast(refusal is not None):  # then the other processes end without a word
            raise refusal or SystemExit(1)
        loop = Loop(fabric, task, training, machine, seed, run)
        stack.enter_context(loop.progress)
        if run is not None and machine.tensorboard:
            from torch.utils.tensorboard import SummaryWriter

            # hide what was written before, after the checkpoint
            curves = SummaryWriter(str(run.path / "tensorboard"), purge_step=loop.step + 1)
            loop.tensorboard = stack.enter_context(closing(curves))
        if not loop.go(asked):
            if run is not None:
                loop.progress.say(f"saved at step {loop.step}; to go on: {resume_command()}")
            raise Interrupted
        if run is None:
            return []
        run.finish()
        return list(run.records)


def estimate_runtime(task: Task, training: Training, steps: int = 4) -> float:
    """Seconds that the whole training would take, evaluations aside, from a few of its steps.

    The task is used up: it has taken them. The step before those that are timed warms up.
    """
    machine = Machine(accelerator="cpu", progress=False)
    few = replace(training, steps=steps + 2, record_every=steps + 2)  # the last one would record
    loop = Loop(machine.fabric(), replace(task, evaluate=None), few, machine, 0, None)
    clock = []
    for _ in range(steps + 1):
        loop.advance(Event())
        clock.append(time.perf_counter())
    return min(after - before for before, after in pairwise(clock)) * training.steps
