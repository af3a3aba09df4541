"""Dispatch modes that watch torch at work: how large tensors get, how often Python waits for them.

A *host synchronisation* is an operation whose result Python, or the shape of the next tensor,
depends on: reading a number (``item``, ``bool(tensor)``, ``float(tensor)``), comparing two tensors
(``equal``), or selecting by a mask (``nonzero``, ``x[mask]``, ``unique``). On a GPU each one stalls
the queue, and none can be captured in a graph. What is counted here on a CPU happens there too.
"""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

aten = torch.ops.aten

SYNCHRONISING = {
    "_local_scalar_dense",
    "_unique",
    "_unique2",
    "bincount",
    "equal",
    "is_nonzero",
    "item",
    "masked_select",
    "nonzero",
    "unique_consecutive",
    "unique_dim",
}
MASKABLE = {"index", "index_put", "index_put_", "_index_put_impl_", "_unsafe_index"}


def _name(function):
    return function.overloadpacket.__name__


def _by_mask(arguments):
    """Whether one of the indices of ``x[...]`` is a mask, which hides a ``nonzero``."""
    indices = arguments[1] if len(arguments) > 1 else ()
    return any(
        isinstance(index, torch.Tensor) and index.dtype in (torch.bool, torch.uint8)
        for index in indices
    )


class Synchronisations(TorchDispatchMode):
    """Counts host synchronisations; ``seen`` lists them by name."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs, name = kwargs or {}, _name(function)
        repeats = name == "repeat_interleave" and kwargs.get("output_size") is None
        masked = name in MASKABLE and _by_mask(args)
        if name in SYNCHRONISING or masked or (repeats and len(args) < 4):
            self.seen.append(f"{name} by mask" if masked else name)
        return function(*args, **kwargs)


class Largest(TorchDispatchMode):
    """Remembers the number of elements of the largest tensor that was made."""

    def __init__(self):
        super().__init__()
        self.elements = 0
        self.shape = None

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        made = function(*args, **(kwargs or {}))
        for tensor in torch.utils._pytree.tree_leaves(made):
            # a view of something small (``expand``) takes no memory
            if isinstance(tensor, torch.Tensor):
                elements = tensor.untyped_storage().nbytes() // max(tensor.element_size(), 1)
                if elements > self.elements:
                    self.elements, self.shape = elements, tuple(tensor.shape)
        return made
