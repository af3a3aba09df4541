"""The numbers of a record as TensorBoard scalars, and pictures beside them."""

from __future__ import annotations

__all__ = ["Scalars"]

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class Scalars:
    """Writes to ``folder/tensorboard``, or, switched off, nothing; a context manager.

    Args:
        folder: The folder of the run.
        start: The number of steps that are done; curves hide what was written after them before.
        enabled: The switch.
    """

    def __init__(self, folder: Path, start: int, *, enabled: bool) -> None:
        self._writer: SummaryWriter | None = None
        if enabled:
            from torch.utils.tensorboard import SummaryWriter

            self._writer = SummaryWriter(str(folder / "tensorboard"), purge_step=start + 1)

    def add(self, kind: str, step: int, values: Mapping[str, Any]) -> None:
        """Add each number as ``kind/name``; other values have no curve."""
        if self._writer is None:
            return
        for name, value in values.items():
            if getattr(value, "shape", None) == ():  # a tensor's or NumPy's number
                value = value.item()
            if isinstance(value, (int, float)) and not isinstance(value, bool):
                self._writer.add_scalar(f"{kind}/{name}", value, step)

    def add_picture(self, name: str, step: int, picture: Tensor) -> None:
        """Add a grey picture, ``uint8`` of shape ``(height, width)``."""
        if self._writer is not None:
            self._writer.add_image(name, picture, step, dataformats="HW")

    def __enter__(self) -> Scalars:
        return self

    def __exit__(self, *exception: object) -> None:
        if self._writer is not None:
            self._writer.close()
