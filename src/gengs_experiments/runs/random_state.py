"""Every global random generator of a process, as plain data.

torch on the CPU and on each GPU, NumPy's legacy generator and Python's own. A
``torch.Generator`` that some object owns is that object's to save.
"""

__all__ = ["random_state", "restore_random_state", "seed_everything"]

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
    """The state of all generators, for a checkpoint."""
    _, keys, position, has_gauss, cached = np.random.get_state()  # noqa: NPY002
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all(),
        "python": random.getstate(),
        "numpy": (np.asarray(keys).tolist(), int(position), int(has_gauss), float(cached)),
    }


def restore_random_state(state: Mapping[str, Any]) -> None:
    """Continue where ``state`` was taken."""
    torch.set_rng_state(state["torch"])
    if len(state["cuda"]) != torch.cuda.device_count():
        raise ValueError(
            f"expected the {len(state['cuda'])} GPUs whose random states were saved, but this "
            f"machine has {torch.cuda.device_count()}."
        )
    torch.cuda.set_rng_state_all(state["cuda"])
    random.setstate(state["python"])
    keys, *rest = state["numpy"]
    np.random.set_state(("MT19937", np.array(keys, dtype=np.uint32), *rest))  # noqa: NPY002
