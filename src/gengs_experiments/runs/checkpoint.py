"""One file that a run can continue from.

A checkpoint is a tree of dictionaries, lists, tuples, numbers, strings and tensors. It is written
atomically, so the previous one stays until the new one is complete, and read as data only: torch's
``weights_only=True`` refuses a pickle that would run code. What it could not read back it does not
write: an object of any other type is an error when it is saved, not when it is missed.

torch does not verify the checksums of the zip archive that it writes; :func:`load` does.

:func:`snapshot` is all that a task's future depends on. Modules, optimisers and schedules are the
same in every process; the random generators are not, so those of all processes are gathered. The
data is a function of the step and needs nothing here.
"""

from __future__ import annotations

__all__ = ["CheckpointError", "load", "restore", "save", "save_weights", "snapshot"]

import io
import math
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import save as to_safetensors
from torch import Tensor, nn

from .atomic import write_atomically
from .random_state import random_state, restore_random_state

if TYPE_CHECKING:
    from .training import Task

# Exactly these: a subclass (NumPy's float64 is a float) would be pickled as an object of its own.
_NUMBERS = {bool, int, float, complex, str, bytes, type(None)}
_LEAVES = {Tensor, nn.Parameter, torch.dtype, torch.device, torch.Size, *_NUMBERS}


class CheckpointError(OSError):
    """A checkpoint that cannot be read."""


def save(path: str | Path, state: Mapping[str, Any]) -> None:
    """Write ``state`` atomically; ``TypeError`` if it holds anything but plain data."""
    _check_plain(state, "state")
    # In memory first: torch's writer does not survive a full disk, a plain write does.
    buffer = io.BytesIO()
    torch.save(state, buffer)
    write_atomically(Path(path), buffer.getvalue())


def load(path: str | Path) -> dict[str, Any]:
    """Read what :func:`save` wrote, on the CPU, as data only.

    Raises:
        FileNotFoundError: If there is no such file.
        CheckpointError: If the file is truncated, damaged, or would run code.
    """
    file = f"the checkpoint {path}"
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise CheckpointError(f"{file} is damaged (its part {damaged!r}).")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except zipfile.BadZipFile as error:
        raise CheckpointError(f"{file} is truncated or not a checkpoint: {error}") from error
    except pickle.UnpicklingError as error:
        plain = "something other than plain data and was not loaded."
        raise CheckpointError(f"{file} holds {plain}") from error
    except (RuntimeError, EOFError, ValueError, LookupError) as error:
        raise CheckpointError(f"{file} is damaged: {error}") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"{file} holds a {type(state).__name__}, not a dict.")
    return state


def save_weights(path: str | Path, modules: Mapping[str, nn.Module]) -> None:
    """Write the modules' tensors as safetensors, atomically: ``name.parameter`` for each.

    The same weights make the same bytes, whatever the process that wrote them.
    """
    tensors = {
        f"{name}.{key}": value.detach().cpu().contiguous().clone()  # tied weights are written twice
        for name, module in modules.items()
        for key, value in module.state_dict().items()
        if isinstance(value, Tensor)
    }
    write_atomically(Path(path), to_safetensors(tensors))


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


def restore(
    task: Task, state: Mapping[str, Any], rank: int, world: int, steps: int, file: Path
) -> None:
    """Put a task back to where its checkpoint was made, at most ``steps`` steps after its start.

    ``state`` has ``step``, ``count``, ``records``, ``sums``, and the :func:`snapshot` as ``task``;
    it was read from ``file``, which an error names.

    Raises:
        CheckpointError: If it is of another task or number of processes, or cannot be at all.
    """
    try:
        for name, most in (("step", steps), ("count", state["step"]), ("records", math.inf)):
            if type(state[name]) is not int or not 0 <= state[name] <= most:
                raise ValueError(f"the {name} {state[name]!r}")
        if not all(type(total) is float for total in state["sums"].values()):
            raise ValueError("sums that are no numbers")
        then = state["task"]
        if len(then["random"]) != world:
            raise ValueError(
                f"it was made by {len(then['random'])} processes, but this run has {world}; each "
                "one's random numbers are part of it"
            )
        for kind in ("modules", "schedules"):
            now = getattr(task, kind)
            if set(now) != set(then[kind]):
                raise ValueError(f"{kind} {sorted(then[kind])} instead of {sorted(now)}")
            for name, part in now.items():
                part.load_state_dict(then[kind][name])
        for optimizer, values in zip(task.optimizers, then["optimizers"], strict=True):
            optimizer.load_state_dict(values)
        restore_random_state(then["random"][rank])
    except (ValueError, RuntimeError, TypeError, LookupError, AttributeError, OverflowError) as e:
        what = f"no {e}" if isinstance(e, KeyError) else " ".join(str(e).split())
        raise CheckpointError(f"the checkpoint {file} does not fit this task: {what}") from e


def _check_plain(value: Any, where: str) -> None:
    if type(value) in (dict, OrderedDict, list, tuple):
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            if type(key) not in (str, int):
                raise TypeError(f"expected names as keys in {where}, but got {key!r}.")
            _check_plain(item, f"{where}[{key!r}]")
    elif type(value) not in _LEAVES:
        raise TypeError(
            f"expected tensors, numbers and strings in a checkpoint, but {where} is a "
            f"{type(value).__module__}.{type(value).__qualname__}."
        )
