"""The base class of functions with a gradient of their own.

At each call torch asks Python for the signature of ``forward``, which takes longer than a small
operation: 20 µs of the 250 that a draw of ten ranks takes with its gradient. Here it is found once.
"""

__all__ = ["AutogradFunction"]

import inspect
from typing import Any

import torch


class AutogradFunction(torch.autograd.Function):
    """An autograd function that follows ``vmap`` by itself, and knows its signature."""

    generate_vmap_rule = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.forward.__signature__ = inspect.signature(cls.forward)  # type: ignore[attr-defined]
