r"""How an estimate carries its gradient: as the derivative of a surrogate.

.. math:: \text{value} + (G - \mathrm{sg}(G)), \qquad \mathrm{sg} = \text{stop gradient}

The surrogate :math:`G` holds draws and costs fixed. So its derivative estimates a gradient, and the
derivative of that nothing: of the score function it is often exactly 0. To ask for it raises, and
so does a mixed one: the value's own gradient, a decoder's, depends on the distribution by the draw.
"""

__all__ = ["attach", "second_derivatives_of_surrogates"]

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor

from ..numerics.autograd_function import AutogradFunction
from ..numerics.once_differentiable import refuse_derivative
from ..numerics.tracing import carries_gradient, inside_nested_jvp, inspectable, is_traced

_allowed = ContextVar("_allowed", default=False)
_NOT_TWICE = (
    "the gradient of this estimator is an estimate that has no second derivative; Exact() has one, "
    "and so has GenGS() of its relaxed cost, and MidCDF() of counts and one-hot vectors."
)


def attach(
    value: Tensor, surrogate: Tensor, made_of: Tensor | None = None, not_twice: str = _NOT_TWICE
) -> Tensor:
    """``value`` with the gradient of ``surrogate`` added to its own.

    Args:
        value: The value, which may have a gradient of its own.
        surrogate: What has the gradient.
        made_of: What ``surrogate`` gets its gradient from, if that is smaller: it is kept.
        not_twice: Why there is no second derivative.
    """
    if is_traced() or _allowed.get():  # torch.compile refuses second derivatives itself
        return value + (surrogate - surrogate.detach())
    made_of = surrogate if made_of is None else made_of
    if value.dtype != surrogate.dtype or value.shape != surrogate.shape:
        wide = torch.promote_types(value.dtype, surrogate.dtype)
        value, surrogate = torch.broadcast_tensors(value.to(wide), surrogate.to(wide))
    if inside_nested_jvp() and carries_gradient(surrogate):
        raise RuntimeError(not_twice)
    attached: Tensor = _AttachSurrogate.apply(value, surrogate, made_of, not_twice)
    return attached


@contextmanager
def second_derivatives_of_surrogates() -> Iterator[None]:
    """Let estimates made here be differentiated twice, by who only tunes its variance so."""
    before = _allowed.set(True)
    try:
        yield
    finally:
        _allowed.reset(before)


class _AttachSurrogate(AutogradFunction):
    @staticmethod
    def forward(value: Tensor, surrogate: Tensor, made_of: Tensor, not_twice: str) -> Tensor:
        return value + (surrogate - surrogate)  # NaN if that is NaN or infinite

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        value, _, made_of, ctx.not_twice = inputs
        kept = made_of, value if value.requires_grad or not inspectable(value) else None
        ctx.save_for_backward(*kept)
        ctx.save_for_forward(*kept)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        made_of, value = ctx.saved_tensors
        if not torch.is_grad_enabled() or not carries_gradient(made_of):
            return grad, grad, None, None
        # each has a part in the other's derivative: by the draw, and by the cost in the surrogate
        by_draw = by_cost = None
        if ctx.needs_input_grad[0]:
            by_draw = refuse_derivative(grad, ctx.not_twice, made_of)
        if ctx.needs_input_grad[1]:
            made_of = (made_of,) if value is None else (made_of, value)
            by_cost = refuse_derivative(grad, ctx.not_twice, *made_of)
        return by_draw, by_cost, None, None

    @staticmethod
    def jvp(ctx: Any, *tangents: Tensor | None) -> Tensor:
        value, surrogate, *_ = tangents
        if surrogate is None:
            return value  # type: ignore[return-value]
        made_of = [x for x in ctx.saved_tensors if x is not None]
        once = refuse_derivative(surrogate, ctx.not_twice, *made_of)
        return once if value is None else value + once
