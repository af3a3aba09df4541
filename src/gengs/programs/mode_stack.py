"""Where a mode stands on torch's stack of modes.

torch pops the topmost mode, whoever leaves. Blocks may end in another order than they began (in
tasks that take turns), and a mode outlives its block: both take their own mode out, and no other.
"""

__all__ = ["remove", "sink"]

import torch
from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)


def _without(mode: TorchFunctionMode) -> list[TorchFunctionMode]:
    """Empty this thread's stack; what stood there, the bottom first, without ``mode``."""
    popped = [_pop_mode() for _ in _get_current_function_mode_stack()]
    return [other for other in reversed(popped) if other is not mode]


def remove(mode: TorchFunctionMode) -> None:
    """Take ``mode`` off the stack, wherever it stands, if it does."""
    for kept in _without(mode):
        _push_mode(kept)


def sink(mode: TorchFunctionMode) -> None:
    """Put ``mode`` below all others: those that end later find themselves on top."""
    kept = _without(mode)
    default = getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None)  # torch wants it at the very bottom
    bottom = int(bool(kept) and kept[0] is getattr(default, "device_context", None))
    for each in (*kept[:bottom], mode, *kept[bottom:]):
        _push_mode(each)
