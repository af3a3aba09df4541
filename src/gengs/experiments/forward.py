"""A task as one module."""

from __future__ import annotations

__all__ = ["Forward"]

from typing import Any

from torch import Tensor, nn

from .task import Task


class Forward(nn.Module):
    """The task as one module, so that Fabric sees every parameter and the whole forward pass."""

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
