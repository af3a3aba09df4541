r"""Gumbel noise.

.. math:: g = -\log E, \qquad E = -\log(1 - u) \sim \mathrm{Exp}(1)

A rare atom wins only when its :math:`E` is tiny, so the uniform must be fine near zero. A
``float32`` uniform from ``torch.rand`` comes in steps of 6e-8, too coarse for atoms below 1e-6, and
the usual remedy (clamp at an epsilon) bars them for good. Here :math:`u` is built from 31 random
bits, exact where it is small, in steps of 5e-10, and centred in its cell: never 0, never 1. On a
CPU the bits also come faster than ``torch.rand``: one 64-bit draw makes two of them.
"""

__all__ = ["log_exponential"]

import torch
from torch import Tensor

from .tracing import inside_transform, is_traced

_BITS = 31
_TWICE_31_BITS = 0x7FFFFFFF_7FFFFFFF


def log_exponential(
    shape: torch.Size,
    dtype: torch.dtype = torch.float32,
    device: torch.device | str | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """The logarithm of standard exponential noise: standard Gumbel noise with its sign turned."""
    if dtype not in (torch.float32, torch.float64):
        raise TypeError(f"noise is drawn in float32 or float64, not in {dtype}")
    first = torch.Size([*shape[-1:], *shape[:-1]])  # in memory, as in the table it is added to
    minus_uniform = _minus_fine_uniform(first, dtype, torch.device(device or "cpu"), generator)
    return minus_uniform.log1p_().neg_().log_().movedim(0, -1)


def _minus_fine_uniform(
    shape: torch.Size, dtype: torch.dtype, device: torch.device, generator: torch.Generator | None
) -> Tensor:
    """Uniforms in the open interval (0, 1) with their sign turned, in fine steps near 0."""
    # Just under 1, so that the largest one stays below 1 after rounding.
    shrink = 1 - torch.finfo(dtype).eps / 2
    plain_cpu = device.type == "cpu" and not is_traced()
    if dtype == torch.float32 and plain_cpu and not inside_transform():
        numel = shape.numel()
        words = torch.empty((numel + 1) // 2, dtype=torch.int64, device=device)
        words.random_(-(2**63), None, generator=generator)
        words.bitwise_and_(_TWICE_31_BITS)  # no signs in either half
        bits = words.view(torch.int32)[:numel].view(shape)
        # centred in its cell: never 0, and never 1 after rounding
        return bits.to(dtype).add_(0.5).mul_(-(2.0**-_BITS) * shrink)
    options = {"dtype": dtype, "device": device, "generator": generator}
    uniform = torch.rand(shape, **options)  # type: ignore[call-overload]
    # a second draw refines the steps of the first, whatever generator the device has
    step = torch.finfo(dtype).eps / 2
    finer = torch.rand(shape, **options).mul_(step).add_(step * 2.0**-8)  # type: ignore[call-overload]
    result: Tensor = (uniform + finer) * -shrink
    return result
