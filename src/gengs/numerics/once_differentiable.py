"""Gradients that must not be differentiated again, with the reason in the error.

torch's own decorator ``once_differentiable`` cannot say why, and does not go with vmap.
"""

__all__ = ["OnceDifferentiable"]

from typing import Any

from torch import Tensor

from .autograd_function import AutogradFunction


class OnceDifferentiable(AutogradFunction):
    """A gradient as it is; differentiating it in what it was ``made_of`` raises with ``why``."""

    @staticmethod
    def forward(gradient: Tensor, why: str, *made_of: Tensor) -> Tensor:
        return gradient.clone()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        ctx.why = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        raise RuntimeError(ctx.why)

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        raise RuntimeError(ctx.why)
