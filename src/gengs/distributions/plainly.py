"""A quicker twin of an ``autograd.Function``, for plain backpropagation.

A function whose ``forward`` and ``setup_context`` are apart serves ``vmap`` and ``torch.func``, but
each call of it makes torch read its signature, which takes longer than a small function itself.
"""

from __future__ import annotations

__all__ = ["plainly"]

from typing import Any

import torch


def plainly(function: type[torch.autograd.Function]) -> type[torch.autograd.Function]:
    """The same function with ``forward`` and ``setup_context`` in one, for :func:`ordinary` use."""

    def forward(ctx: Any, *inputs: Any) -> Any:
        output = function.forward(*inputs)
        function.setup_context(ctx, inputs, output)
        return output

    parts = {"forward": staticmethod(forward), "backward": staticmethod(function.backward)}
    return type(function.__name__, (torch.autograd.Function,), parts)
