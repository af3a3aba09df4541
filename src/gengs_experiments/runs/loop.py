"""One step after another, with what has to happen between them."""

from __future__ import annotations

__all__ = ["Loop"]

import gc
import io
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed
from PIL import Image
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from . import checkpoint
from .atomic import write_atomically
from .checkpoint import restore, snapshot
from .diagnosis import NonFiniteError, bad_gradient, bad_tensor
from .json_lines import dumps, loads
from .machine import Machine
from .one_step import make_step
from .progress import Progress
from .random_state import random_state, restore_random_state, seed_everything
from .records import RunFolder

if TYPE_CHECKING:
    from lightning_fabric import Fabric
    from torch.utils.tensorboard import SummaryWriter

    from .training import Task, Training


class TaskModule(nn.Module):
    """The task as one module, which DDP wraps: it must see all parameters and the whole pass."""

    def __init__(self, task: Task) -> None:
        super().__init__()
        self.parts = nn.ModuleDict(task.modules)
        self._step = task.step
        self._taken = {"kind", "step", "gradient_norm", *task.schedules}

    def forward(self, batch: Any) -> dict[str, Tensor]:
        outputs = self._step(batch)
        outputs = {"loss": outputs} if isinstance(outputs, Tensor) else dict(outputs)
        if "loss" not in outputs:
            raise ValueError(f"expected a result 'loss' of the step, but got {sorted(outputs)}.")
        for name, value in outputs.items():
            if value.numel() != 1:
                raise ValueError(
                    f"expected a scalar as the result {name!r} of the step, but got the shape "
                    f"{tuple(value.shape)}."
                )
            if name in self._taken:
                raise ValueError(f"the name {name!r} in a record is taken.")
        return {name: v if name == "loss" else v.detach() for name, v in outputs.items()}


@dataclass
class Loop:
    """A training run in progress: set up the devices, start afresh or from the checkpoint; ``go``.

    ``run`` is the folder of the run in the first process, nothing in the others.
    """

    fabric: Fabric
    task: Task
    training: Training
    machine: Machine
    seed: int
    run: RunFolder | None
    tensorboard: SummaryWriter | None = None

    def __post_init__(self) -> None:
        fabric, task, run = self.fabric, self.task, self.run
        self.rank, self.world = fabric.global_rank, fabric.world_size
        self.step = self.count = 0
        self.sums: dict[str, float] = {}  # of what a record will be the mean of
        self.saved: int | None = None
        self.clock = self.saved_at = time.monotonic()
        if any(is_lazy(p) for module in task.modules.values() for p in module.parameters()):
            # Layers that take their width from the data; several processes need it beforehand.
            seed_everything(self.seed, self.world)
            task.step(task.data.batch(0, 0, 1))
        self.module, *self.optimizers = fabric.setup(TaskModule(task), *task.optimizers)
        seed_everything(self.seed, self.rank)
        saved = None
        if run is not None and (file := run.path / "checkpoint.pt").exists():
            saved = file, checkpoint.load(file)
        saved = fabric.broadcast(saved)
        if saved is not None:
            file, state = saved
            restore(task, state, self.rank, self.world, self.training.steps, file)
            self.step, self.sums, self.count = state["step"], state["sums"], state["count"]
            self.saved = self.step
        if run is not None:
            run.records.rewind(0 if saved is None else state["records"])
        shown = self.machine.progress and run is not None
        self.progress = Progress(self.training.steps, self.step, shown=shown)

    def go(self, asked: Event) -> bool:
        """Make all steps that are left, and leave the process group; whether nobody interrupted."""
        self.module.train()
        stop = False
        while self.step < self.training.steps and not stop:
            stop, overdue = self.advance(asked)
            every = self.machine.checkpoint_steps
            if stop or overdue or (every is not None and self.step % every == 0):
                self.save()
        done = self.step == self.training.steps
        if done and self.saved != self.step:
            self.save()
        if done and self.run is not None:
            for name, content in self.task.files().items():
                write_atomically(self.run.path / name, content)
            checkpoint.save_weights(self.run.path / "weights.safetensors", self.task.modules)
        self.fabric.barrier()
        # Threads of gloo that outlive the interpreter abort it. They are joined when the last
        # reference to the group goes. If DDP had it, that would happen with the GIL held, for which
        # one of the threads may be waiting: a deadlock. So DDP goes first.
        if self.world > 1:
            del self.module
            gc.collect()  # DDP refers to itself
            torch.distributed.destroy_process_group()
        return done

    def advance(self, asked: Event) -> tuple[bool, bool]:
        """One step of the training; whether all processes agreed to stop, or to save, after it."""
        batch = self.fabric.to_device(self.task.data.batch(self.step, self.rank, self.world))
        stop = asked.is_set()
        overdue = time.monotonic() - self.saved_at >= self.machine.checkpoint_seconds
        values: dict[str, float] = {}

        def forward() -> dict[str, Tensor]:
            try:
                outputs: dict[str, Tensor] = self.module(batch)
                return outputs
            except ValueError as error:  # torch's laws refuse NaN as a parameter
                culprit = bad_tensor(self.task, batch)
                if culprit:
                    raise self.failure(culprit) from error
                raise

        def inspect(outputs: Mapping[str, Tensor]) -> None:
            nonlocal stop, overdue
            names = sorted(outputs, key=lambda name: (name != "loss", name))  # for all processes
            facts = torch.stack([outputs[name].detach().double().reshape(()) for name in names])
            if self.world > 1:
                wishes = torch.tensor([stop, overdue], dtype=facts.dtype, device=facts.device)
                facts, wishes = self.fabric.all_reduce((facts, wishes))
                stop, overdue = (bool(wish > 0) for wish in wishes)
            values.update(zip(names, facts.tolist(), strict=True))
            if not math.isfinite(values["loss"]):
                culprit = bad_tensor(self.task, batch, outputs)
                raise self.failure(culprit or "the loss of another process")
            values["gradient_norm"] = self.clip()
            if not math.isfinite(values["gradient_norm"]):
                raise self.failure(bad_gradient(self.task))

        schedules, backward = self.task.schedules.values(), self.fabric.backward
        make_step(forward, self.optimizers, schedules, backward=backward, inspect=inspect)
        self.step += 1
        self.count += 1
        for name, value in values.items():
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.progress.update(self.step, values["loss"])
        self.note()
        return stop, overdue

    def clip(self) -> float:
        """Clip each optimiser's gradient; the norm of all of them before that."""
        norms = []
        for optimizer in self.optimizers:
            weights = [p for group in optimizer.param_groups for p in group["params"]]
            grads = [p.grad for p in weights if p.grad is not None]
            norm = nn.utils.get_total_norm(grads)
            # a norm that is not finite would spoil the other gradients, too, and hide the culprit
            if self.training.clip is not None and torch.isfinite(norm):
                nn.utils.clip_grads_with_norm_(weights, self.training.clip, norm)
            norms.append(float(norm))
        return math.hypot(*norms)

    def note(self) -> None:
        """Record and evaluate, where it is time for that."""
        training, last = self.training, self.step == self.training.steps
        if last or self.step % training.record_every == 0:
            means = {name: total / self.count for name, total in self.sums.items()}
            self.sums, self.count = {}, 0
            for name, schedule in self.task.schedules.items():  # a temperature, a learning rate
                if hasattr(schedule, "value"):
                    means[name] = float(schedule.value)
                elif hasattr(schedule, "get_last_lr"):
                    means[name] = float(schedule.get_last_lr()[0])
            self.append("train", means)
        every = training.evaluate_every or training.steps
        if self.task.evaluate is not None and (last or self.step % every == 0):
            self.evaluate()

    def evaluate(self) -> None:
        """Evaluate in the first process, with random numbers that the training does not miss."""
        if self.run is not None and self.task.evaluate is not None:
            state = random_state()
            seed_everything(self.seed, self.world + self.step)
            self.module.eval()
            try:
                with torch.no_grad():
                    self.append("evaluation", dict(self.task.evaluate()))
                    for name, picture in self.task.pictures().items():
                        png = io.BytesIO()
                        Image.fromarray(picture.numpy()).save(png, "png", optimize=True)
                        write_atomically(self.run.path / f"{name}.png", png.getvalue())
                        if self.tensorboard is not None:
                            self.tensorboard.add_image(name, picture, self.step, dataformats="HW")
            except ValueError as error:  # torch's laws refuse NaN as a parameter
                culprit = bad_tensor(self.task)
                if culprit:
                    raise self.failure(culprit) from error
                raise
            self.module.train()
            restore_random_state(state)
        self.fabric.barrier()

    def append(self, kind: str, values: dict[str, Any]) -> None:
        """Add a record, its time to the timings, and its numbers to the curves."""
        if self.run is None:
            return
        self.run.records.append({"kind": kind, "step": self.step, **values})
        now = {"seconds": time.monotonic() - self.clock, "cpu_seconds": time.process_time()}
        self.run.timings.append({"kind": kind, "step": self.step, **now})
        if self.tensorboard is not None:
            for name, value in loads(dumps(values)).items():  # a tensor's number as a plain one
                if type(value) in (int, float):
                    self.tensorboard.add_scalar(f"{kind}/{name}", value, self.step)

    def save(self) -> None:
        """Write the checkpoint; the records that it counts on come first."""
        state = snapshot(self.task, self.world)
        if self.run is not None:
            self.run.records.sync()
            own = {"step": self.step, "sums": self.sums, "count": self.count}
            own["records"] = len(self.run.records)
            checkpoint.save(self.run.path / "checkpoint.pt", {**own, "task": state})
        self.saved, self.saved_at = self.step, time.monotonic()

    def failure(self, culprit: str) -> NonFiniteError:
        """The error that stops a run which met NaN or infinity."""
        kept = f"the checkpoint of step {self.saved} is kept"
        if self.saved is None:
            kept = "there is no checkpoint yet"
        return NonFiniteError(f"stopped in step {self.step + 1}: {culprit}; {kept}.")
