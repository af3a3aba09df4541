"""While a block is open, ``sample`` of every law asks the program first.

The methods are wrapped when the first block of the process opens and put back when the last one
closes. A wrapper does nothing in a thread without a block, under the user's ``no_grad``, or inside
the library's own code; what a law does under its own ``no_grad`` never shows.
"""

from __future__ import annotations

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

from .block_stack import blocks, current, watching
from .torch_mode import draw_geometric

_lock = threading.Lock()
_open = 0
_originals: dict[type, Callable[..., Tensor]] = {}


def patch_laws() -> None:
    """One more block is open."""
    global _open
    with _lock:
        _open += 1
        if _open == 1:
            for kind in set(_laws(Distribution)):
                if "sample" in vars(kind):
                    _originals[kind] = vars(kind)["sample"]
                    kind.sample = _asking(kind)  # type: ignore[method-assign]
            Tensor.geometric_ = _geometric  # type: ignore[method-assign,assignment]
            CheckpointFunction.forward = staticmethod(_checkpoint)  # type: ignore[method-assign]


def restore_laws() -> None:
    """One block less is open."""
    global _open
    with _lock:
        _open -= 1
        if _open == 0:
            for kind, original in _originals.items():
                kind.sample = original  # type: ignore[attr-defined]
            _originals.clear()
            del Tensor.geometric_
            CheckpointFunction.forward = staticmethod(_plain_checkpoint)  # type: ignore[method-assign]


_plain_geometric: Any = Tensor.geometric_
_plain_checkpoint: Any = CheckpointFunction.forward


def _checkpoint(*args: Any) -> Any:
    """The reentrant checkpoint runs a step under ``no_grad``, and later again outside the block."""
    if blocks():
        raise RuntimeError(
            "torch.utils.checkpoint in a gengs.differentiable() block would run its step again "
            "outside of the block, where draws carry no gradient; leave it out, or put it around "
            "steps that draw by gengs.rsample, without a block."
        )
    return _plain_checkpoint(*args)


def _geometric(self: Tensor, p: Any, **kwargs: Any) -> Tensor:
    """``Tensor.geometric_``, which by itself takes no tensor that requires a gradient."""
    plain = functools.partial(_plain_geometric, **kwargs)
    if isinstance(p, Tensor) and p.requires_grad and watching():
        return draw_geometric(self, p, plain)
    return plain(self, p)


def _laws(kind: type[Distribution]) -> Iterator[type[Distribution]]:
    yield kind
    for sub in kind.__subclasses__():
        yield from _laws(sub)


def _asking(kind: type[Distribution]) -> Callable[..., Tensor]:
    original = _originals[kind]

    @functools.wraps(original)
    def sample(self: Distribution, *args: Any, **kwargs: Any) -> Tensor:
        if not watching():
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
