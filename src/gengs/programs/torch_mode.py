"""What torch is asked while a block is open: draws are taken over, cut gradients are noted."""

from __future__ import annotations

__all__ = ["ProgramMode"]

from functools import partial
from typing import Any, Self

from torch import Tensor
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack
from torch.utils.weak import WeakTensorKeyDictionary

from ..numerics.tracing import inside_transform
from .block_stack import captures, in_user_code, mine, open_programs, quiet
from .cut_operations import ending, moving, no_derivative, tensors_in
from .cut_report import CutReport
from .gradients_by_hand import ADDITIVE, DIVIDING, ByHand
from .in_place import SavedTensors, written_by
from .lost_parameters import LostParameters
from .mode_stack import remove, sink
from .noise import SOURCES, Noise
from .sample_site import asked_by_library, inside_function, place_of, where
from .surrogates import Surrogates
from .torch_draws import DRAWS
from .uniform_draws import COMPARED, looks_uniform, meet_threshold
from .unseen_draws import RANDOM, UnseenDraws

_JUMPS = frozenset(("compared", "rounded", "cast to integers"))
_MEANT = frozenset(("detached", "taken out of torch"))
"""After the block these are for logs and plots, not for a cost."""
_DECIDING = frozenset(
    ("__bool__", "item", "tolist", "numpy", "__array__", "__float__", "__int__", "__index__")
)
"""With these a program may look at its draws to decide what to do next."""
_PLAIN = frozenset(
    {
        *("add", "sub", "mul", "div", "true_divide", "neg", "exp", "log", "sqrt", "square", "pow"),
        *("__radd__", "__rsub__", "__rmul__", "__rtruediv__", "rsub", "sum", "mean", "matmul"),
        *("expand", "unsqueeze", "squeeze", "reshape", "view", "sigmoid", "tanh", "log1p", "expm1"),
        *("stack", "cat", "full", "zeros", "ones", "zeros_like", "ones_like", "full_like"),
        *("softmax", "log_softmax", "clamp", "clamp_min", "clamp_max", "size", "dim", "numel"),
        *("linear", "relu", "einsum", "roll", "cumsum", "index_select", "index_add", "expand_as"),
    }
)
"""Functions that end no gradient of floating numbers."""


_OWN_BACKWARD = (
    "was drawn inside an autograd.Function, whose own backward is taken for its gradient; the "
    "block has no part in it."
)
_FROZEN = (
    "was drawn under torch.no_grad from parameters that carry a gradient: that part of the "
    "gradient is missing; leave no_grad out, or detach the parameters if that is meant."
)


class ProgramMode(TorchFunctionMode):
    """The mode of the outermost block; it stays, and only takes notes, until the loss is known."""

    def __init__(self, report: CutReport) -> None:
        super().__init__()
        self.report, self.surrogates, self.noise = report, Surrogates(report), Noise()
        self.by_hand, self.lost, self.saved = ByHand(), LostParameters(), SavedTensors()
        self.unseen: UnseenDraws | None = None
        self.branched = False
        self.ungraded: dict[tuple[str, str], str] = {}
        """Draws without gradients: function and place, and what is to be said of it."""
        self._picked = WeakTensorKeyDictionary()  # indices that came beside values: max(), sort()
        kept = (self.noise, self.surrogates, self.by_hand, self.lost)
        self._of_interest = (self._picked.data, *(t for each in kept for t in each.tables()))
        self._smooth: set[str] = set()  # names of functions that were seen to end nothing
        self._open = self._lingers = True
        self.saves = False  # whether updates in place are looked after

    def __enter__(self) -> Self:
        # those whose loss was asked for in another thread
        for mode in _get_current_function_mode_stack():
            if isinstance(mode, ProgramMode) and not (mode._open or mode._lingers):
                remove(mode)
        super().__enter__()
        self.saves = not inside_transform()  # which have no use for hooks
        if self.saves:
            self.saved.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """The block has ended."""
        self._open = False
        if self.saves:
            self.saved.__exit__(*error)
        if self.unseen is not None:
            self.unseen.end()
        if self._lingers and error[0] is None:
            sink(self)
        else:
            self.stop()

    def stop(self) -> None:
        """Nothing more is to be noted."""
        self._lingers = False
        self.saved.forget(alone=not open_programs())
        if not self._open:
            remove(self)

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if not self._open:
            return self._afterwards(func, name, args, kwargs)
        if not captures(self):
            return self._not_captured(func, name, args, kwargs)
        if name in _PLAIN and not kwargs and not self._watches():
            return func(*args)
        if name == "__get__":
            return self._attribute(func, args, kwargs)
        if name in RANDOM and self.unseen is not None:
            self.unseen.before()
            result = self._random(func, name, args, kwargs)
            self.unseen.after()
            return result
        if name in DRAWS or name in SOURCES:
            return self._random(func, name, args, kwargs)
        if (target := written_by(name, args, kwargs)) is not None:
            self.saved.before_writing(target)
        if name in COMPARED and self.noise.any():
            found = meet_threshold(
                self.noise, self.surrogates, self.report, func, name, args, kwargs
            )
            if found is not None:
                return found
        return self._other(func, name, args, kwargs)

    def _watches(self) -> bool:
        """Whether some tensor is of interest, whatever is done with it."""
        return any(self._of_interest)

    def _afterwards(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """The block is over, and the cost is being made."""
        watched = self._lingers and in_user_code()
        if watched and (target := written_by(name, args, kwargs)) is not None:
            self.saved.before_writing(target)
        result = func(*args, **kwargs)
        if not watched or name == "__get__" or name in DRAWS:
            return result
        return self._noted(name, args, kwargs, result, noisy=False)

    def _not_captured(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        """Our own code, the user's ``no_grad``, or another task."""
        if (target := written_by(name, args, kwargs)) is not None:
            self.saved.before_writing(target)
        result = func(*args, **kwargs)
        if name in RANDOM:
            if self.unseen is not None:
                self.unseen.after()
            if not mine(self) or not in_user_code(gradients=False):
                return result
            if inside_function():
                self.without_gradient(f"torch.{name}", _OWN_BACKWARD)
            elif name in DRAWS:
                moves = next(moving((*args, *kwargs.values())), None) is not None
                self.without_gradient(f"torch.{name}", _FROZEN if moves else "")
        return result

    def without_gradient(self, name: str, why: str = _FROZEN) -> None:
        """A draw was made where the user has switched gradients off."""
        if len(self.ungraded) < 8 and not asked_by_library():
            self.ungraded.setdefault((name, place_of(*where())), why)

    def _random(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        if name in DRAWS:
            if name == "bernoulli_":
                self.saved.before_writing(args[0])
            result = DRAWS[name](partial(func, *args, **kwargs), *args, **kwargs)
            if name == "normal" and not result.requires_grad:
                self.noise.spoil(result)
            return result
        if name in SOURCES:
            if name.endswith("_"):
                self.saved.before_writing(args[0])
            result = func(*args, **kwargs)
            self.noise.made(name, args, kwargs, result)
            return result
        return self._other(func, name, args, kwargs)

    def _other(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
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
            with quiet():
                self.noise.passed_on(func, name, args, kwargs, result)
        if not self.branched and name in _DECIDING and not asked_by_library():
            self.branched = True
        if self.lost:
            self.lost.passed_on(name, given, result)
        if self.by_hand and (name in ADDITIVE or name in DIVIDING):
            self.by_hand.added(given, result, divided=name in DIVIDING)
        return result if done else self._noted(name, args, kwargs, result, noisy)

    def _attribute(self, func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
        """``x.data``, ``x.T``, ``x.shape``."""
        name = getattr(func.__self__, "__name__", "")
        result = func(*args, **kwargs)
        if name == "data" and args[0].requires_grad:
            self.report.cut("detached", args[0])
            self._taken(name, args[0], result)
        if isinstance(result, Tensor):
            if self.noise.used(args):
                rearranged = partial(func.__call__)
                self.noise.passed_on(rearranged, name, args, kwargs, result)
            if self.lost:
                self.lost.passed_on(name, args, result)
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
                    if kind in _MEANT or kind.startswith("put through"):
                        self._taken(name, value, result)
                foreign = name in COMPARED and looks_uniform(given)
                if (noisy or foreign) and kind in _JUMPS:
                    self.report.unrecognised()
            if no_derivative(result):  # in place of an error on the way back
                result = result.detach()
        for surrogate in self.surrogates.all_in(given) if self._open else ():
            # of a mask or an index that arithmetic did not take
            sorts = isinstance(result, tuple)  # or takes the largest
            kind = "compared" if sorts else ending(name, args, {}, result)
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

    def _taken(self, name: str, tensor: Tensor, result: Any) -> None:
        """A tensor was detached, or became a number."""
        if asked_by_library():
            return
        if not self.report.comes_from_a_draw(tensor):
            self.lost.taken(name, result)
        if isinstance(result, Tensor):
            self.by_hand.detached(tensor, result)
