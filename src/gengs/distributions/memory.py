"""How much memory a table of atoms will need, asked before it is allocated."""

from __future__ import annotations

__all__ = ["require_memory"]

import math
from pathlib import Path

import torch

_MEMINFO = Path("/proc/meminfo")
_COPIES = 4
"""The table, the noise, the weights and a gradient live at the same time."""


def require_memory(batch: torch.Size, n: int, dtype: torch.dtype, device: torch.device) -> None:
    """Raise a ``ValueError`` where ``batch`` elements with ``n`` atoms each cannot fit."""
    needed = batch.numel() * n * dtype.itemsize * _COPIES
    if needed < 1 << 28:  # a quarter GiB: not worth a question to the system
        return
    free = _free_bytes(device)
    if needed > free:
        raise ValueError(
            f"a table of {n} atoms for each of {batch.numel()} elements (batch shape "
            f"{tuple(batch)}) needs about {needed / 2**30:.1f} GiB to relax, but "
            f"{free / 2**30:.1f} GiB are free; use tolerance= (a narrow window around the mean), a "
            "smaller level or batch, or an estimator that needs no table."
        )


def _free_bytes(device: torch.device) -> float:
    if device.type == "cuda":
        return float(torch.cuda.mem_get_info(device)[0])
    if device.type == "cpu" and _MEMINFO.exists():
        # what the kernel can free counts too: "free" alone is small wherever files are cached
        fields = dict(line.split(":") for line in _MEMINFO.read_text().splitlines())
        return float(fields["MemAvailable"].split()[0]) * 1024
    return math.inf  # nobody to ask: the allocator will tell
