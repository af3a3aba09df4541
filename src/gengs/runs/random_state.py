"""Every global random generator of a process, as plain data.

torch on the CPU and on each GPU, NumPy's legacy generator and Python's own. A
``torch.Generator`` that some object owns is that object's to save.
"""

from __future__ import annotations

__all__ = [
    "random_state",
    "restore_random_state",
    "rewind_step",
    "seed_everything",
    "step_state",
]

import random
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch


def seed_everything(seed: int, stream: int = 0) -> None:
    """Seed all of them; different ``stream`` numbers (processes, say) give independent draws."""
    words = np.random.SeedSequence([seed, stream]).generate_state(2, np.uint32)
    torch.manual_seed((int(words[0]) << 32 | int(words[1])) & (2**63 - 1))  # GPUs included
    random.seed(int(words[0]))
    np.random.seed(int(words[1]))  # noqa: NPY002 (the global one is what others draw from)


def random_state() -> dict[str, Any]:
    """The state of all generators, for a checkpoint.

    Example:
        >>> state = random_state()
        >>> first = torch.rand(3)
        >>> restore_random_state(state)
        >>> bool((first == torch.rand(3)).all())
        True
    """
    version, internal, gauss = random.getstate()
    _, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
        "python": (version, tuple(internal), gauss),
        "numpy": ([int(key) for key in keys], int(position), int(has_gauss), float(cached)),
    }


def restore_random_state(state: Mapping[str, Any]) -> None:
    """Continue where ``state`` was taken."""
    torch.set_rng_state(state["torch"])
    if len(state["cuda"]) != (torch.cuda.device_count() if torch.cuda.is_available() else 0):
        raise ValueError(
            f"expected the {len(state['cuda'])} GPUs whose random states were saved, but this "
            f"machine has {torch.cuda.device_count()}."
        )
    if state["cuda"]:
        torch.cuda.set_rng_state_all(state["cuda"])
    version, internal, gauss = state["python"]
    random.setstate((version, tuple(internal), gauss))
    keys, position, has_gauss, cached = state["numpy"]
    np.random.set_state(  # noqa: NPY002
        ("MT19937", np.array(keys, dtype=np.uint32), position, has_gauss, cached)
    )


def step_state(device: torch.device) -> list[torch.Tensor]:
    """The states of those that a training step draws from: cheap enough for every step."""
    on_gpu = [torch.cuda.get_rng_state(device)] if device.type == "cuda" else []
    return [torch.get_rng_state(), *on_gpu]


def rewind_step(states: list[torch.Tensor]) -> None:
    """Go back to before the step."""
    torch.set_rng_state(states[0])
    for state in states[1:]:
        torch.cuda.set_rng_state(state)
