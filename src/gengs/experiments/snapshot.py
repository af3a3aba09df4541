"""All that a task's future depends on, as plain data, and back.

Modules, optimisers and schedules are the same in every process; the random generators are not, so
those of all processes are gathered. The data is a function of the step and needs nothing here.
"""

from __future__ import annotations

__all__ = ["restore", "snapshot"]

from collections.abc import Mapping
from typing import Any

import torch

from ..study.checkpoint import CheckpointError
from ..study.random_state import random_state, restore_random_state
from .task import Task


def snapshot(task: Task, world: int) -> dict[str, Any]:
    """The state of a task; every process must call this, and the first one save it."""
    random: list[Any] = [random_state()]
    if world > 1:
        random = [None] * world
        torch.distributed.all_gather_object(random, random_state())
    return {
        "modules": {name: module.state_dict() for name, module in task.modules.items()},
        "optimizers": [optimizer.state_dict() for optimizer in task.optimizers],
        "schedules": {name: schedule.state_dict() for name, schedule in task.schedules.items()},
        "random": random,
    }


def restore(task: Task, state: Mapping[str, Any], rank: int, world: int) -> None:
    """Put a task back to where its snapshot was taken.

    Raises:
        CheckpointError: If the snapshot is of another task, or of another number of processes.
    """
    if len(state["random"]) != world:
        raise CheckpointError(
            f"the checkpoint was made by {len(state['random'])} processes, but this run has "
            f"{world}; each one's random numbers are part of it."
        )
    try:
        for kind in ("modules", "schedules"):
            now = getattr(task, kind)
            if set(now) != set(state[kind]):
                raise ValueError(f"{kind} {sorted(state[kind])} instead of {sorted(now)}")
            for name, part in now.items():
                part.load_state_dict(state[kind][name])
        for optimizer, values in zip(task.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(values)
    except (ValueError, RuntimeError) as error:
        raise CheckpointError(f"the checkpoint does not fit this task: {error}") from error
    restore_random_state(state["random"][rank])
