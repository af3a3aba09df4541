"""One file that a run can continue from.

A checkpoint is a tree of dictionaries, lists, tuples, numbers, strings and tensors. It is written
atomically, so the previous one stays until the new one is complete, and read as data only: torch's
``weights_only=True`` refuses a pickle that would run code. What it could not read back it does not
write: an object of any other type is an error when it is saved, not when it is missed.

torch does not verify the checksums of the zip archive that it writes; :func:`load` does.
"""

from __future__ import annotations

__all__ = ["CheckpointError", "load", "save", "save_weights"]

import io
import pickle
import zipfile
from collections import OrderedDict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .atomic import write_atomically

# Exactly these: a subclass (NumPy's float64 is a float) would be pickled as an object of its own.
_NUMBERS = {bool, int, float, complex, str, bytes, type(None)}
_LEAVES = {Tensor, nn.Parameter, torch.dtype, torch.device, torch.Size, *_NUMBERS}


class CheckpointError(OSError):
    """A checkpoint that cannot be read."""


def save(path: str | Path, state: Mapping[str, Any]) -> None:
    """Write ``state`` atomically.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(f"{folder}/checkpoint.pt", {"step": 3, "weight": torch.ones(2)})
        ...     load(f"{folder}/checkpoint.pt")
        {'step': 3, 'weight': tensor([1., 1.])}

    Raises:
        TypeError: If ``state`` holds anything but plain data.
        OSError: If the disk refuses; the previous file is kept.
    """
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
    path = Path(path)
    try:
        with zipfile.ZipFile(path) as archive:
            damaged = archive.testzip()
        if damaged is not None:
            raise CheckpointError(f"the checkpoint {path} is damaged (its part {damaged!r}).")
        state = torch.load(path, map_location="cpu", weights_only=True)
    except zipfile.BadZipFile as error:
        raise CheckpointError(
            f"the checkpoint {path} is truncated or not a checkpoint: {error}"
        ) from error
    except pickle.UnpicklingError as error:
        raise CheckpointError(
            f"the checkpoint {path} holds something other than plain data and was not loaded."
        ) from error
    except (RuntimeError, EOFError, ValueError, KeyError, IndexError, NotImplementedError) as error:
        raise CheckpointError(f"the checkpoint {path} is damaged: {error}") from error
    if not isinstance(state, dict):
        raise CheckpointError(f"the checkpoint {path} holds a {type(state).__name__}, not a dict.")
    return state


def save_weights(path: str | Path, modules: Mapping[str, nn.Module]) -> None:
    """Write the modules' tensors as safetensors, atomically: ``name.parameter`` for each.

    The same weights make the same bytes, whatever the process that wrote them.
    """
    from safetensors.torch import save as to_bytes

    tensors = {
        f"{name}.{key}": value.detach().cpu().contiguous().clone()  # tied weights are written twice
        for name, module in modules.items()
        for key, value in module.state_dict().items()
        if isinstance(value, Tensor)
    }
    write_atomically(Path(path), to_bytes(tensors))


def _check_plain(value: object, where: str) -> None:
    if type(value) in (dict, OrderedDict):
        for key, item in value.items():  # type: ignore[attr-defined]
            if type(key) not in (str, int):
                raise TypeError(f"expected names as keys in {where}, but got {key!r}.")
            _check_plain(item, f"{where}[{key!r}]")
    elif type(value) in (list, tuple):
        for index, item in enumerate(value):  # type: ignore[arg-type]
            _check_plain(item, f"{where}[{index}]")
    elif type(value) not in _LEAVES:
        raise TypeError(
            f"expected tensors, numbers and strings in a checkpoint, but {where} is a "
            f"{type(value).__module__}.{type(value).__qualname__}."
        )
