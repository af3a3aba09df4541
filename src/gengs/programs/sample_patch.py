"""While a block is open, ``sample``, ``rsample`` and ``log_prob`` of distributions are patched.

The methods are wrapped when the first block of the process opens and put back when the last one
closes; classes that are made in between are wrapped, too. A wrapper does nothing in a thread
without a block, under the user's ``no_grad``, or inside the library's own code; what a distribution
does under its own ``no_grad`` never shows. A distribution's own ``rsample`` is left alone: its
gradient is its own.
"""

__all__ = ["blocks_open", "patch_laws", "restore_laws"]

import copy
import functools
import threading
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution
from torch.utils.checkpoint import CheckpointFunction

from .block_stack import BLOCKS, captures, current, in_user_code, outermost, quiet
from .drawn_log_prob import log_prob_of_drawn
from .law_checks import depends_on_parameters, is_continuous
from .torch_draws import draw_geometric

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
                _patch(kind)
            _replace(Distribution, "__init_subclass__", classmethod(_patch_subclass))
            _replace(Tensor, "geometric_", _differentiable_geometric)
            _replace(CheckpointFunction, "forward", staticmethod(_refused_checkpoint))


def blocks_open() -> int:
    """How many blocks are open, in all threads."""
    return _open


def _patch(kind: type[Distribution]) -> None:
    for name, wrapper in _WRAPPERS.items():
        if name in vars(kind):
            _replace(kind, name, wrapper(kind, vars(kind)[name]))


def _patch_subclass(kind: Any, /, **kwargs: Any) -> None:
    """A class is made while a block is open."""
    with _lock:
        if _open:
            _patch(kind)


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
            if BLOCKS.get() and in_user_code(gradients=False) and depends_on_parameters(self):
                outermost().mode.without_gradient(kind.__name__)
            return original(self, *args, **kwargs)
        if (unseen := outermost().mode.unseen) is not None:
            unseen.before()
        shape = args[0] if args else kwargs.get("sample_shape", ())
        plain = functools.partial(original, self, *args, **kwargs)
        return current().draw(_as_drawn(self, kind), plain, torch.Size(shape))

    return sample


def _own_gradient(kind: type[Distribution], original: Callable[..., Tensor]) -> Any:
    @functools.wraps(original)
    def rsample(self: Distribution, *args: Any, **kwargs: Any) -> Tensor:
        if not captures():
            return original(self, *args, **kwargs)
        program = outermost()
        if program.mode.unseen is not None:
            program.mode.unseen.before()
        with quiet():
            drawn = original(self, *args, **kwargs)
        if is_continuous(self):
            program.mode.noise.spoil(drawn)
        else:
            current().site(type(self).__name__, tuple(drawn.shape), rule="rsample")
        return drawn

    return rsample


def _weighing(kind: type[Distribution], original: Callable[..., Tensor]) -> Any:
    @functools.wraps(original)
    def log_prob(self: Distribution, value: Any, *args: Any, **kwargs: Any) -> Tensor:
        if not captures() or not isinstance(value, Tensor):
            return original(self, value, *args, **kwargs)
        return log_prob_of_drawn(self, kind, value, functools.partial(original, self))

    return log_prob


_WRAPPERS: dict[str, Any] = {
    "sample": _asking,
    "rsample": _own_gradient,
    "log_prob": _weighing,
}


def _as_drawn(law: Distribution, kind: type[Distribution]) -> Distribution:
    """The law whose ``sample`` is running: that of ``super().sample()`` is the parent's."""
    newest = next(cls for cls in type(law).__mro__ if "sample" in vars(cls))
    if newest is kind:
        return law
    parent = copy.copy(law)
    parent.__class__ = kind
    return parent


@functools.wraps(_geometric)  # a torch function mode looks the method up, and asks for its name
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
