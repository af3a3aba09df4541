"""When may Python look at the numbers inside a tensor, and the sentences it says about bad ones.

``torch.compile``, ``vmap`` and the ``meta`` device hand us tensors without readable values: a check
that branches on them would break the trace. So every check first asks :func:`inspectable`.

The flag that switches checks on is ours: creating a ``torch.compile`` wrapper sets
``Distribution._validate_args = False`` for the whole process, and a NaN must not pass silently
because somebody else compiled a function.
"""

from __future__ import annotations

__all__ = [
    "all_finite",
    "ends_of",
    "inside_transform",
    "inspectable",
    "ordinary",
    "require_finite",
    "validates",
]

import math

import torch
from torch import Tensor
from torch.autograd import forward_ad

_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor


def validates(validate_args: bool | None) -> bool:
    """The law's own switch: on unless the caller says otherwise (or runs ``python -O``)."""
    return __debug__ if validate_args is None else validate_args


def inspectable(*tensors: Tensor) -> bool:
    """Whether the values of all ``tensors`` can be read by Python right now."""
    if torch.compiler.is_compiling():
        return False
    return not any(tensor.is_meta or _is_wrapped(tensor) for tensor in tensors)


def inside_transform() -> bool:
    """Whether a ``torch.func`` transform (vmap, grad) is running: its random ops are its own."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def ordinary(*tensors: Tensor) -> bool:
    """Whether nothing but backpropagation through plain tensors is going on.

    Then a function with a gradient of its own may take the place of torch's operations. It may not
    while a transform runs, also around tensors that are not transformed themselves, nor in forward
    mode, nor with tensors that were made in inference mode, which cannot be kept for the way back.
    """
    if not inspectable(*tensors) or inside_transform() or forward_ad._current_level >= 0:
        return False
    return not (torch.is_grad_enabled() and any(tensor.is_inference() for tensor in tensors))


def ends_of(tensor: Tensor) -> tuple[float, float]:
    """The smallest and the largest entry."""
    low, high = tensor.detach().aminmax()
    return float(low), float(high)


def all_finite(tensor: Tensor) -> bool:
    """Whether no entry is NaN or infinite."""
    # One NaN or infinity spoils the sum, and a sum costs a tenth of a look at every entry; finite
    # entries whose sum overflows are looked at one by one.
    return math.isfinite(tensor.detach().sum()) or bool(torch.isfinite(tensor).all())


def require_finite(name: str, tensor: Tensor, owner: str) -> None:
    """Raise a ``ValueError`` that names the argument and its first NaN or infinite value."""
    if not inspectable(tensor) or all_finite(tensor):
        return
    bad = ~torch.isfinite(tensor)
    first = tensor[bad].flatten()[0].item()
    raise ValueError(
        f"{owner} expects finite values in `{name}` (shape {tuple(tensor.shape)}), "
        f"but {int(bad.sum())} of them are not; the first is {first}."
    )
