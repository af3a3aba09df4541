"""Checks of tensor values, grouped into one host synchronisation, and when values can be read.

On a GPU, reading data waits for all work before it (a host sync); under ``torch.compile``,
``vmap`` and on the ``meta`` device there are no numbers to read. So nothing on the way from
parameters to gradient is data-dependent: checks are grouped into one host sync (:func:`any_of`),
made only where validation is on and the values can be read.

This is the one file that uses torch's private C++ names.
"""

__all__ = [
    "any_of",
    "carries_gradient",
    "inside_nested_jvp",
    "inside_transform",
    "inside_vmap",
    "inspectable",
    "is_eager",
    "is_traced",
    "not_finite",
    "parameters_of",
    "product",
    "require_finite",
    "require_memory",
    "set_shapes",
    "tensors_of",
    "validates",
]

import math
import sys
from collections.abc import Iterator
from pathlib import Path

import torch
from torch import Tensor
from torch._functorch.pyfunctorch import temporarily_pop_interpreter_stack
from torch.autograd import forward_ad
from torch.distributions import Distribution, Transform
from torch.types import _size

_is_wrapped = torch._C._functorch.is_functorch_wrapped_tensor


def is_traced() -> bool:
    """Whether ``torch.compile`` or ``torch.jit.trace`` is reading this code."""
    return torch.compiler.is_compiling() or bool(torch.jit.is_tracing())  # type: ignore[attr-defined]


def validates(validate_args: bool | None) -> bool:
    """Whether to check arguments: what the caller says, else torch's default.

    The first ``torch.compile`` of a process sets that default to False for everybody, which is no
    word of the user's: from then on only ``validate_args=False`` switches checks off.
    """
    if is_traced():  # there are no values to look at
        return False
    if validate_args is not None:
        return validate_args
    return __debug__ and (bool(Distribution._validate_args) or _dynamo_has_patched())


def set_shapes(law: Distribution, batch: _size, event: _size, validate: bool) -> None:
    """Torch's ``__init__`` without its checks: ours allow -inf logits, and are grouped."""
    Distribution.__init__(law, torch.Size(batch), torch.Size(event), validate_args=False)
    law._validate_args = validate


def _dynamo_has_patched() -> bool:
    patcher = getattr(sys.modules.get("torch._dynamo.eval_frame"), "TorchPatcher", None)
    return patcher is not None and patcher.patch.cache_info().currsize > 0


def tensors_of(law: Distribution) -> Iterator[tuple[Distribution, str, Tensor]]:
    """The tensors a distribution holds, with owner and name; also those of its components."""
    for name, value in vars(law).items():
        if isinstance(value, Tensor):
            yield law, name, value
        elif isinstance(value, Distribution):
            yield from tensors_of(value)


def parameters_of(law: object) -> Iterator[Tensor]:
    """The tensors that a distribution or a transform is made of, whatever holds them."""
    seen, todo = set(), [law]
    while todo:
        part = todo.pop()
        if isinstance(part, Tensor):
            yield part
        elif isinstance(part, list):  # of transforms
            todo += part
        elif isinstance(part, Distribution | Transform) and id(part) not in seen:
            seen.add(id(part))  # a transform and its inverse have each other
            todo += vars(part).values()
            if isinstance(part, torch.nn.Module):  # a flow
                yield from part.parameters()


def inspectable(*tensors: Tensor) -> bool:
    """Whether the values of all ``tensors`` can be read by Python right now."""
    if is_traced():
        return False
    return not any(tensor.is_meta or _is_wrapped(tensor) for tensor in tensors)


def carries_gradient(tensor: Tensor) -> bool:
    """Whether a derivative in ``tensor`` is asked for, by any transform that is running.

    Inside of a ``vmap``, or of a ``grad`` in another variable, ``requires_grad`` does not tell.
    """
    if is_traced():
        return tensor.requires_grad
    running = torch._C._functorch.peek_interpreter_stack()
    innermost = 0 if running is None else running.level()
    while not tensor.requires_grad and torch._C._functorch.maybe_get_level(tensor) > innermost:
        tensor = torch._C._functorch.get_unwrapped(tensor)
    in_forward_mode = forward_ad._current_level >= 0
    if tensor.requires_grad or (
        in_forward_mode and forward_ad.unpack_dual(tensor).tangent is not None
    ):
        return True
    if running is None:
        return False
    if torch._C._functorch.maybe_get_level(tensor) == innermost:
        tensor = torch._C._functorch.get_unwrapped(tensor)
    with temporarily_pop_interpreter_stack():  # to ask as the transform around this one would
        return carries_gradient(tensor)


def inside_vmap() -> bool:
    """Whether the innermost ``torch.func`` transform that is running is a ``vmap``."""
    running = torch._C._functorch.peek_interpreter_stack()
    return running is not None and running.key() == torch._C._functorch.TransformType.Vmap


def inside_transform() -> bool:
    """Whether a ``torch.func`` transform (vmap, grad) is running: its random ops are its own."""
    return torch._C._functorch.peek_interpreter_stack() is not None


def inside_nested_jvp() -> bool:
    """Whether forward mode runs inside forward mode."""
    running = torch._C._functorch.get_interpreter_stack() or []
    return sum(level.key() == torch._C._functorch.TransformType.Jvp for level in running) > 1


def is_eager(*tensors: Tensor) -> bool:
    """Eager reverse mode: no compile, functorch, forward AD or inference tensors.

    Only then may an autograd function without rules for those take the place of torch's operations.
    """
    if not inspectable(*tensors) or inside_transform() or forward_ad._current_level >= 0:
        return False
    return not (torch.is_grad_enabled() and any(tensor.is_inference() for tensor in tensors))


def product(a: Tensor, b: Tensor) -> Tensor:
    """``a @ b`` in their own precision: autocast would take it to bfloat16, which has no 257."""
    if a.is_meta:  # which has no autocast
        return a @ b
    with torch.autocast(a.device.type, enabled=False):
        return a @ b


def any_of(*flags: Tensor) -> bool:
    """Whether any entry of any flag is true: one host sync; False where none can be read."""
    if not inspectable(*flags):
        return False
    each = [flag.any() if flag.dim() else flag for flag in flags]
    return bool(torch.stack(each).any() if len(each) > 1 else each[0])


def not_finite(tensor: Tensor) -> Tensor:
    """Whether some entry is NaN or infinite, as a tensor."""
    # 0 · inf is NaN, and one NaN spoils the sum: a tenth of the cost of isfinite(...).all()
    return (tensor.detach() * 0.0).sum().isnan()


def require_finite(name: str, tensor: Tensor, owner: str) -> None:
    """Raise a ``ValueError`` that names the argument and its first NaN or infinite value."""
    if not any_of(not_finite(tensor)):
        return
    bad = ~torch.isfinite(tensor)
    first = tensor[bad].flatten()[0].item()
    raise ValueError(
        f"{owner} expects finite values in `{name}` (shape {tuple(tensor.shape)}), "
        f"but {int(bad.sum())} of them are not; the first is {first}."
    )


# ------------------------------------------------------------------------------------------ memory

_MEMINFO = Path("/proc/meminfo")
_COPIES = 4  # the table, the noise, the weights and a gradient live at the same time


def require_memory(batch: torch.Size, n: int, dtype: torch.dtype, device: torch.device) -> None:
    """Raise a ``ValueError`` where a table of ``batch`` elements with ``n`` atoms cannot fit."""
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
