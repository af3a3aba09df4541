"""What torch is asked while a block is open: draws are taken over, cut gradients are noted."""

__all__ = ["ProgramMode", "draw_geometric"]

from collections.abc import Callable
from functools import partial
from typing import Any, Self

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Binomial, Categorical, Geometric, Normal, Poisson
from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode_stack,
    _pop_mode,
    _push_mode,
)
from torch.utils.weak import WeakTensorKeyDictionary

from .block_stack import captures, current, in_user_code, quiet
from .cut_operations import ending, moving, no_derivative, tensors_in
from .cut_report import CutGradientWarning, CutReport
from .noise import SOURCES, Noise
from .sample_site import Plain, warn_at
from .score_rule import ScoreRule
from .surrogates import Surrogates

_BELOW, _ABOVE = {"lt", "le", "less", "less_equal"}, {"gt", "ge", "greater", "greater_equal"}
_JUMPS = frozenset(("compared", "rounded", "cast to integers"))
_MEANT = frozenset(("detached", "taken out of torch"))
"""After the block these are for logs and plots, not for a cost."""


class ProgramMode(TorchFunctionMode):
    """The mode of the outermost block; it stays, and only takes notes, until the loss is known."""

    def __init__(self, report: CutReport) -> None:
        super().__init__()
        self.report, self.surrogates, self.noise = report, Surrogates(), Noise()
        self._picked = WeakTensorKeyDictionary()  # indices that came beside values: max(), sort()
        self._smooth: set[str] = set()  # names of functions that were seen to end nothing
        self._open = self._lingers = True

    def __enter__(self) -> Self:
        # those whose loss was asked for in another thread
        for mode in _get_current_function_mode_stack():
            if isinstance(mode, ProgramMode) and not (mode._open or mode._lingers):
                _remove(mode)
        super().__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """The block has ended."""
        self._open = False
        if self._lingers and error[0] is None:
            _sink(self)
        else:
            self.stop()

    def stop(self) -> None:
        """Nothing more is to be noted."""
        self._lingers = False
        if not self._open:
            _remove(self)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if not self._open:
            result = func(*args, **kwargs)
            noted = self._lingers and in_user_code() and name != "__get__" and name not in _DRAWS
            return self._noted(name, args, kwargs, result, noisy=False) if noted else result
        if not captures(self):
            return func(*args, **kwargs)
        if name == "__get__":
            return self._attribute(func, args, kwargs)
        if name in _DRAWS:
            result = _DRAWS[name](partial(func, *args, **kwargs), *args, **kwargs)
            if name == "normal" and not result.requires_grad:
                self.noise.spoil(result)
            return result
        if name in SOURCES:
            result = func(*args, **kwargs)
            self.noise.made(name, args, kwargs, result)
            return result
        if name in _BELOW or name in _ABOVE:
            return self._compare(func, name, args, kwargs)
        given = (*args, *kwargs.values())
        noisy = self.noise.used(given)
        done = False
        if (one := self.surrogates.any_in(given)) is not None:
            with quiet():
                done, result = self.surrogates.apply(one, func, name, args, kwargs)
        if not done:
            taken_out = name in ("numpy", "__array__") and args[0].requires_grad
            result = func(*(args[0].detach(), *args[1:]) if taken_out else args, **kwargs)
        if noisy:
            self.noise.spoil(args[0] if name == "__setitem__" else result)
        return result if done else self._noted(name, args, kwargs, result, noisy)

    def _attribute(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """``x.data``, ``x.T``, ``x.shape``."""
        if getattr(func.__self__, "__name__", "") == "data" and args[0].requires_grad:
            self.report.cut("detached", args[0])
        result = func(*args, **kwargs)
        if isinstance(result, Tensor) and self.noise.used(args):
            self.noise.spoil(result)
        return result

    # ----------------------------------------------------------------------- gradients that end

    def _noted(self, name: str, args: Any, kwargs: dict[str, Any], result: Any, noisy: bool) -> Any:
        """What an operation returned, once its end of a gradient has been noted."""
        carries = isinstance(result, Tensor) and result.requires_grad
        known = carries and not kwargs and name in self._smooth
        if known and not (self._picked.data or self.surrogates):
            return result
        given = (*args, *kwargs.values())
        self._note_picked(given, result, noisy)
        tensors = list(moving(given))
        if tensors:
            kind = ending(name, args, kwargs, result)
            if kind is None and carries:
                self._smooth.add(name)
            elif kind is not None and (self._open or kind not in _MEANT):
                for value in tensors:
                    self.report.cut(kind, value)
                if noisy and kind in _JUMPS:
                    self.report.unrecognised()
            if no_derivative(result):  # in place of an error on the way back
                result = result.detach()
        for surrogate in self.surrogates.all_in(given) if self._open else ():
            # of a mask or an index that arithmetic did not take
            kind = ending(name, args, {}, result)
            kind = kind if kind == "compared" or kind in _MEANT else "used as an index"
            if kind != "used as an index" or isinstance(result, Tensor) or name == "__setitem__":
                self.report.cut(kind, surrogate)
        return result

    def _note_picked(self, given: Any, result: Any, noisy: bool) -> None:
        """Indices beside values, as ``max`` and ``sort`` return them, are cuts once used."""
        if self._picked.data and isinstance(result, Tensor):
            for value in tensors_in(given):
                source, random = self._picked.get(value, (None, False))
                if source is not None:
                    self.report.cut("compared", source)
                if random:
                    self.report.unrecognised()
        if isinstance(result, tuple):
            source = next(moving(given), None)
            for part in result if source is not None else ():
                if isinstance(part, Tensor) and not part.is_floating_point():
                    self._picked[part] = source, noisy

    # ------------------------------------------------------------------------ uniform < probability

    def _compare(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        left, right = (args[0], args[1]) if len(args) > 1 else (args[0], kwargs.get("other"))
        for uniform, other in ((left, right), (right, left)):
            if not isinstance(other, Tensor) or not other.requires_grad:
                continue
            uses = self.noise.compared(uniform)
            if uses == 0:
                below = (name in _BELOW) == (uniform is left)  # u < p, or p > u
                return self._bernoulli(func, args, kwargs, other, below)
            if uses is not None:
                return self._unrecognised(func, args, kwargs)
        noisy = any(self.noise.known(value) for value in (left, right))
        return self._noted(name, args, kwargs, func(*args, **kwargs), noisy)

    def _unrecognised(self, func: Any, args: Any, kwargs: Any) -> Any:
        self.report.unrecognised()
        site = current().site("torch.rand(...) < p", rule="none")
        if isinstance(current().rule, ScoreRule):
            raise ValueError(
                f"{site.place}: random numbers that are not uniform, or are used a second time, "
                "are compared with a tensor that carries a gradient: their log-probability is not "
                "known; draw by torch.bernoulli or torch.multinomial."
            )
        return func(*args, **kwargs)

    def _bernoulli(self, func: Any, args: Any, kwargs: Any, p: Tensor, below: bool) -> Any:
        program = current()
        mask: Tensor = func(*args, **kwargs)
        law = Bernoulli(p.clamp(0.0, 1.0).expand(mask.shape), validate_args=False)
        success = mask if below else ~mask
        z = program.draw(law, lambda: success.to(p.dtype), name="torch.rand(...) < p")
        if isinstance(program.rule, ScoreRule):
            return mask
        if not program.rule.exact:  # a rule with draws of its own
            mask = z.detach() > 0.5 if below else z.detach() <= 0.5
        self.surrogates.pair(mask, z if below else 1 - z)
        return mask


# ---------------------------------------------------------------- where a mode stands on the stack


def _without(mode: TorchFunctionMode) -> list[TorchFunctionMode]:
    """Empty this thread's stack; what stood there, the bottom first, without ``mode``.

    torch pops the topmost mode, whoever leaves. Blocks may end in another order than they began (in
    tasks that take turns), and a mode outlives its block: both take their own mode out, and no
    other.
    """
    popped = [_pop_mode() for _ in _get_current_function_mode_stack()]
    return [other for other in reversed(popped) if other is not mode]


def _remove(mode: TorchFunctionMode) -> None:
    """Take ``mode`` off the stack, wherever it stands, if it does."""
    for kept in _without(mode):
        _push_mode(kept)


def _sink(mode: TorchFunctionMode) -> None:
    """Put ``mode`` below all others: those that end later find themselves on top."""
    kept = _without(mode)
    default = getattr(torch, "_GLOBAL_DEVICE_CONTEXT", None)  # torch wants it at the very bottom
    bottom = int(bool(kept) and kept[0] is getattr(default, "device_context", None))
    for each in (*kept[:bottom], mode, *kept[bottom:]):
        _push_mode(each)


# ------------- torch's own draws, each with what makes it elsewhere and torch's own arguments


def _poisson(plain: Plain, input: Tensor, *_: Any, **__: Any) -> Tensor:
    return current().draw(Poisson(input, validate_args=False), plain)


def _binomial(plain: Plain, count: Tensor, prob: Tensor, *_: Any, **__: Any) -> Tensor:
    return current().draw(Binomial(count, prob, validate_args=False), plain)


def _bernoulli(plain: Plain, input: Tensor, p: Any = None, **settings: Any) -> Tensor:
    if p is not None or "out" in settings:  # a number is no parameter
        return _without_slope("Bernoulli", plain())
    return current().draw(Bernoulli(input, validate_args=False), plain)


def _bernoulli_in_place(plain: Plain, target: Tensor, p: Any = None, **_: Any) -> Tensor:
    if not isinstance(p, Tensor):
        return plain()
    return _fill(target, Bernoulli(p.expand(target.shape), validate_args=False), plain)


def draw_geometric(target: Tensor, p: Tensor, plain: Any) -> Tensor:
    """``target.geometric_(p)`` with a tensor for ``p``, which torch itself does not take."""
    law = Geometric(p.expand(target.shape), validate_args=False)
    number = float(p.detach())
    # torch counts the trials here, and the failures before a success in Geometric
    return _fill(target, law, lambda: plain(target, number) - 1, shift=1)


def _fill(target: Tensor, law: Any, plain: Plain, shift: int = 0) -> Tensor:
    drawn = current().draw(law, lambda: plain().clone())
    with quiet():
        return target.copy_(drawn + shift)


def _normal(plain: Plain, mean: Any = 0.0, std: Any = 1.0, *_: Any, **__: Any) -> Tensor:
    """``torch.normal``, whose gradient torch takes to be 0."""
    if next(moving((mean, std)), None) is None:
        return plain()
    return current().draw(Normal(mean, std, validate_args=False), plain, name="torch.normal")


def _multinomial(
    plain: Plain, input: Tensor, num_samples: int = 1, replacement: bool = False, **_: Any
) -> Tensor:
    """Indices of rows of weights: ``(*batch, num_samples)``."""
    program, weights, name = current(), input, "torch.multinomial"
    if replacement or num_samples <= 1:
        shape = (*weights.shape[:-1], num_samples, weights.shape[-1])
        law = Categorical(weights.unsqueeze(-2).expand(shape), validate_args=False)
        return program.draw(law, plain, name=name)
    if not isinstance(program.rule, ScoreRule) or not weights.requires_grad:
        index = _without_slope(name, plain())
        if weights.requires_grad:
            warn_at(
                program.sites[-1],
                "torch.multinomial without replacement has no slope, and the gradient of its "
                "weights ends here; draw it in a block inside, "
                "gengs.differentiable(by=gengs.RLOO()), which knows the score of the order.",
                CutGradientWarning,
            )
        return index
    with quiet():
        index = plain()
        taken = weights.gather(-1, index)
        left = weights.sum(-1, keepdim=True) - (taken.cumsum(-1) - taken)
        site = program.site(name, tuple(index.shape))
        program.rule.keep(site, (taken / left).log())
    return index


def _without_slope(name: str, drawn: Tensor) -> Tensor:
    """A draw that torch has made, and that carries no gradient."""
    current().site(name, tuple(drawn.shape), rule="none")
    return drawn


_DRAWS: dict[str, Callable[..., Tensor]] = {
    "poisson": _poisson,
    "binomial": _binomial,
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli_in_place,
    "multinomial": _multinomial,
    "normal": _normal,
}
