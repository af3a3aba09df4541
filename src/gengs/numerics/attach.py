"""A drawn value with a gradient: the value as it was drawn, and one way back per parameter."""

__all__ = ["Pull", "attach_gradient", "nonzero", "ratio"]

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from .autograd_function import AutogradFunction
from .tracing import inside_transform

Pull = Callable[..., Tensor]
"""From the draw's cotangent, the draw and all parameters to one parameter's cotangent."""


def attach_gradient(pulls: Sequence[Pull], z: Tensor, *parameters: Tensor) -> Tensor:
    """The draw ``z``, differentiable in its parameters by one pullback for each of them.

    A pullback sees the draw *that is returned*, so that a second derivative sees both ways in which
    a slope depends on the parameters: directly, and through the draw.
    """
    # torch inspects the signature of a function with a setup_context at each call
    function: Any = _Attach if inside_transform() else _EagerAttach
    result: Tensor = function.apply(tuple(pulls), z, *parameters)
    return result


class _Attach(AutogradFunction):
    @staticmethod
    def forward(pulls: tuple[Pull, ...], z: Tensor, *parameters: Tensor) -> Tensor:
        return z.clone()  # the caller may change it in place

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.pulls = inputs[0]
        ctx.save_for_backward(output, *inputs[2:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        z, *parameters = ctx.saved_tensors
        gradients = [
            pull(grad, z, *parameters).to(parameter.dtype).sum_to_size(parameter.shape)
            if needed
            else None
            for pull, parameter, needed in zip(
                ctx.pulls, parameters, ctx.needs_input_grad[2:], strict=True
            )
        ]
        return None, None, *gradients


class _EagerAttach(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, pulls: tuple[Pull, ...], z: Tensor, *parameters: Tensor) -> Tensor:
        output = z.clone()
        ctx.pulls = pulls
        ctx.save_for_backward(output, *parameters)
        return output

    backward = _Attach.backward


def nonzero(x: Tensor) -> Tensor:
    """``x`` with 1 in the place of 0: a divisor where the quotient is not used."""
    return x.masked_fill(x == 0, 1.0)


def ratio(a: Tensor, b: Tensor, at_zero: Tensor | float) -> Tensor:
    """``a / b``, and ``at_zero`` where ``b`` is 0."""
    zero = b == 0
    if torch.is_grad_enabled():  # what is not used would be a NaN in the derivative
        b = b.masked_fill(zero, 1.0)
    return torch.where(zero, at_zero, a / b)
