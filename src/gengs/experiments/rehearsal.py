"""How long a training will take, from a few of its steps."""

from __future__ import annotations

__all__ = ["rehearse"]

import time

from torch import Tensor

from .task import Task, Training


def rehearse(task: Task, training: Training, steps: int = 4) -> float:
    """Seconds for the whole training, evaluations aside.

    The task is used up: it has taken a few steps.

    Args:
        task: What would be trained.
        training: For how long.
        steps: How many steps to time; the one before them warms up.
    """
    fastest = float("inf")
    for step in range(steps + 1):
        begin = time.perf_counter()
        outputs = task.step(task.data.batch(step, 0, 1))
        loss = outputs if isinstance(outputs, Tensor) else outputs["loss"]
        for optimizer in task.optimizers:
            optimizer.zero_grad()
        loss.backward()
        for optimizer in task.optimizers:
            optimizer.step()
        if step:
            fastest = min(fastest, time.perf_counter() - begin)
    return fastest * training.steps
