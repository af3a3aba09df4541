"""Gradients that must not be differentiated again, with the reason in the error.

torch's own decorator ``once_differentiable`` cannot say why, and does not go with vmap.
"""

__all__ = ["OnceDifferentiable", "refuse_derivative"]

from typing import Any

from torch import Tensor

from .autograd_function import AutogradFunction


def refuse_derivative(gradient: Tensor, why: str, *made_of: Tensor) -> Tensor:
    """``gradient``, which raises with ``why`` where it is differentiated in one of ``made_of``.

    Only there: it is linear in what comes back to it, such as a weight of the loss.
    """
    zero: Tensor = OnceDifferentiable.apply(gradient.new_zeros(()), why, *made_of)
    return gradient + zero


class OnceDifferentiable(AutogradFunction):
    """A gradient as it is; differentiating it in anything raises with ``why``."""

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
