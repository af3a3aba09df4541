"""While a block is open, ``sample`` of every law asks the program first.

The methods are wrapped when the first block of the process opens and put back when the last one
closes. A wrapper does nothing in a thread without a block, under the user's ``no_grad``, or inside
the library's own code; what a law does under its own ``no_grad`` never shows.
"""

__all__ = ["patch_laws", "restore_laws"]

import copy
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.utils.checkpoint import CheckpointFunction

from .block_stack import BLOCKS, captures, current
from .torch_mode import draw_geometric

_lock = threading.Lock()
_open = 0  # blocks, in all threads
_replaced: list[tuple[type, str, Any]] = []
"""Class, name, and what the class itself had under it: ``None`` if it inherits the method."""
_geometric: Any = Tensor.geometric_
_checkpoint: Any = CheckpointFunction.forward


def patch_laws() -> None:
    """One more block is open."""
    global _open
    with _lock:
        _open += 1
        if _open == 1:
            for kind in set(_laws(Distribution)):
                if "sample" in vars(kind):
                    _replace(kind, "sample", _asking(kind, vars(kind)["sample"]))
            _replace(Tensor, "geometric_", _differentiable_geometric)
            _replace(CheckpointFunction, "forward", staticmethod(_refused_checkpoint))


def restore_laws() -> None:
    """One block less is open."""
    global _open
    with _lock:
        _open -= 1
        while _replaced and not _open:
            kind, name, original = _replaced.pop()
            delattr(kind, name) if original is None else setattr(kind, name, original)


def _replace(kind: type, name: str, method: Any) -> None:
    _replaced.append((kind, name, vars(kind).get(name)))
    setattr(kind, name, method)


def _laws(kind: type[Distribution]) -> Iterator[type[Distribution]]:
    yield kind
    for sub in kind.__subclasses__():
        yield from _laws(sub)


def _asking(kind: type[Distribution], original: Callable[..., Tensor]) -> Callable[..., Tensor]:
    @functools.wraps(original)
    def sample(self: Distribution, *args: Any, **kwargs: Any) -> Tensor:
        if not captures():
            return original(self, *args, **kwargs)
        shape = args[0] if args else kwargs.get("sample_shape", ())
        plain = functools.partial(original, self, *args, **kwargs)
        return current().draw(_as_drawn(self, kind), plain, torch.Size(shape))

    return sample


def _as_drawn(law: Distribution, kind: type[Distribution]) -> Distribution:
    """The law whose ``sample`` is running: that of ``super().sample()`` is the parent's."""
    newest = next(cls for cls in type(law).__mro__ if "sample" in vars(cls))
    if newest is kind:
        return law
    parent = copy.copy(law)
    parent.__class__ = kind
    return parent


def _differentiable_geometric(self: Tensor, p: Any, **kwargs: Any) -> Tensor:
    """``Tensor.geometric_``, which by itself takes no tensor that requires a gradient."""
    plain = functools.partial(_geometric, **kwargs)
    if isinstance(p, Tensor) and p.requires_grad and captures():
        return draw_geometric(self, p, plain)
    return plain(self, p)


def _refused_checkpoint(*args: Any) -> Any:
    """The reentrant checkpoint runs a step under ``no_grad``, and later again outside the block."""
    if not BLOCKS.get():
        return _checkpoint(*args)
    raise RuntimeError(
        "torch.utils.checkpoint in a gengs.differentiable() block would run its step again "
        "outside of the block, where draws carry no gradient; leave it out, or put it around "
        "steps that draw by gengs.rsample, without a block."
    )
