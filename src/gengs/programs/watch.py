"""What torch is asked while a block is open: draws are taken over, cut gradients are noted."""

from __future__ import annotations

__all__ = ["Watch", "draw_geometric"]

import warnings
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Bernoulli, Binomial, Categorical, Geometric, Poisson
from torch.overrides import TorchFunctionMode
from torch.utils.weak import WeakTensorKeyDictionary

from .active import current, quiet, watching
from .cut_report import CutGradientWarning, CutReport
from .twins import Twins

_BELOW, _ABOVE = frozenset(("lt", "le", "less", "less_equal")), frozenset(("gt", "ge", "greater"))
_CUTS = {
    **dict.fromkeys(("eq", "ne", "isclose", "greater_equal", *_BELOW, *_ABOVE), "compared"),
    **dict.fromkeys(("argmax", "argmin", "argsort", "searchsorted", "bucketize"), "compared"),
    **dict.fromkeys(("any", "all", "nonzero", "count_nonzero"), "compared"),
    **dict.fromkeys(("long", "int", "short", "char", "byte", "bool"), "cast to integers"),
    **dict.fromkeys(("round", "floor", "ceil", "trunc", "sign", "heaviside"), "rounded"),
    **dict.fromkeys(("__floordiv__", "floor_divide"), "rounded"),
    **dict.fromkeys(("detach", "detach_"), "detached"),
    **dict.fromkeys(("item", "tolist", "numpy", "__array__"), "taken out of torch"),
    **dict.fromkeys(("__float__", "__int__", "__index__", "__bool__"), "taken out of torch"),
}


class Watch(TorchFunctionMode):
    """The mode of the outermost block of a thread."""

    def __init__(self, report: CutReport) -> None:
        super().__init__()
        self.report, self.twins = report, Twins()
        self._uniforms = (
            WeakTensorKeyDictionary()
        )  # how often each was compared; -1: used otherwise
        self._any_uniforms = False  # the length of a weak dictionary takes longer

    def __torch_function__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if not watching():
            return func(*args, **kwargs)
        if name == "__get__":
            if getattr(func.__self__, "__name__", "") == "data" and args[0].requires_grad:
                self.report.cut("detached", args[0])
            return func(*args, **kwargs)
        draw = _DRAWS.get(name)
        if draw is not None:
            return draw(func, args, kwargs)
        if name in ("rand", "rand_like", "uniform_"):
            return self._uniform(func, name, args, kwargs)
        if name in _BELOW or name in _ABOVE or name == "greater_equal":
            return self._compare(func, name, args, kwargs)
        spoilt = self._any_uniforms and self._spoil(args)
        if self.twins.any_in(args) is not None:
            with quiet():
                done, result = self.twins.apply(func, name, args, kwargs)
            if done:
                return result
        self._note(name, args, kwargs)
        if name in ("numpy", "__array__") and args[0].requires_grad:
            return func(args[0].detach(), *args[1:], **kwargs)
        result = func(*args, **kwargs)
        self._note_twin(name, args, result)
        if spoilt and isinstance(result, Tensor):
            self._uniforms[result] = -1
        return result

    # ----------------------------------------------------------------------- gradients that end

    def _note(self, name: str, args: Any, kwargs: dict[str, Any]) -> None:
        kind = _CUTS.get(name)
        if kind is None and name in ("to", "type"):
            targets = [*args[1:], *kwargs.values()]
            if any(isinstance(t, torch.dtype) and not t.is_floating_point for t in targets):
                kind = "cast to integers"
        if kind is not None:
            for value in args[:2]:
                if isinstance(value, Tensor) and value.requires_grad:
                    self.report.cut(kind, value)

    def _note_twin(self, name: str, args: Any, result: Any) -> None:
        """A mask or an index that arithmetic did not take, unless it was asked for its shape."""
        found = self.twins.any_in(args)
        if found is not None and (isinstance(result, Tensor) or name in (*_CUTS, "__setitem__")):
            self.report.cut(_CUTS.get(name, "used as an index"), found)

    # ------------------------------------------------------------------------ uniform < probability

    def _uniform(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        result = func(*args, **kwargs)
        if name != "uniform_" or (len(args) == 1 and not {"from", "to"} & set(kwargs)):
            self._uniforms[result] = 0
            self._any_uniforms = True
        return result

    def _spoil(self, args: Any) -> bool:
        """Uniform numbers that are used in other ways are no Bernoulli draw when compared."""
        found = [value for value in args if isinstance(value, Tensor) and value in self._uniforms]
        for value in found:
            self._uniforms[value] = -1
        return bool(found)

    def _compare(self, func: Any, name: str, args: Any, kwargs: dict[str, Any]) -> Any:
        left, right = (args[0], args[1]) if len(args) > 1 else (args[0], kwargs.get("other"))
        for uniform, other in ((left, right), (right, left)):
            known = isinstance(uniform, Tensor) and uniform in self._uniforms
            if not known or not isinstance(other, Tensor) or not other.requires_grad:
                continue
            uses = self._uniforms[uniform]
            self._uniforms[uniform] = -1 if uses else 1
            if uses:
                break
            below = (name in _BELOW) == (uniform is left)  # u < p, or p > u
            return self._bernoulli(func, args, kwargs, other, below)
        else:
            self._note(name, args, kwargs)
            result = func(*args, **kwargs)
            self._note_twin(name, args, result)
            return result
        self.report.unrecognised()
        site = current().site("torch.rand(...) < p")
        site.rule = "none"
        if current().scored:
            raise ValueError(
                f"{site.place}: uniform numbers are compared that are used a second time: their "
                "log-probability is not known; draw by torch.bernoulli or torch.multinomial."
            )
        return func(*args, **kwargs)

    def _bernoulli(self, func: Any, args: Any, kwargs: Any, p: Tensor, below: bool) -> Any:
        program = current()
        mask: Tensor = func(*args, **kwargs)
        law = Bernoulli(p.clamp(0.0, 1.0).expand(mask.shape), validate_args=False)
        success = mask if below else ~mask
        z = program.draw(law, lambda: success.to(p.dtype), name="torch.rand(...) < p")
        if program.scored:
            return mask
        if not program.exact:  # a rule with draws of its own
            mask = z.detach() > 0.5 if below else z.detach() <= 0.5
        self.twins.pair(mask, z if below else 1 - z)
        return mask


# ------------------------------------------------------------------------ torch's own draws


def _poisson(func: Any, args: Any, kwargs: Any) -> Tensor:
    return current().draw(Poisson(args[0], validate_args=False), partial(func, *args, **kwargs))


def _binomial(func: Any, args: Any, kwargs: Any) -> Tensor:
    count, p = args[0], args[1] if len(args) > 1 else kwargs["prob"]
    return current().draw(Binomial(count, p, validate_args=False), partial(func, *args, **kwargs))


def _bernoulli(func: Any, args: Any, kwargs: Any) -> Tensor:
    if len(args) > 1 or "p" in kwargs or "out" in kwargs:  # a number is no parameter
        result: Tensor = func(*args, **kwargs)
        return result
    return current().draw(Bernoulli(args[0], validate_args=False), partial(func, *args, **kwargs))


def _bernoulli_in_place(func: Any, args: Any, kwargs: Any) -> Tensor:
    p = args[1] if len(args) > 1 else kwargs.get("p")
    if not isinstance(p, Tensor):
        result: Tensor = func(*args, **kwargs)
        return result
    law = Bernoulli(p.expand(args[0].shape), validate_args=False)
    return _fill(args[0], law, partial(func, *args, **kwargs))


def draw_geometric(target: Tensor, p: Tensor, plain: Any) -> Tensor:
    """``target.geometric_(p)`` with a tensor for ``p``, which torch itself does not take."""
    law = Geometric(p.expand(target.shape), validate_args=False)
    number = float(p.detach())
    # torch counts the trials here, and the failures before a success in Geometric
    return _fill(target, law, lambda: plain(target, number) - 1, shift=1)


def _fill(target: Tensor, law: Any, plain: Any, shift: int = 0) -> Tensor:
    drawn = current().draw(law, lambda: plain().clone())
    with quiet():
        return target.copy_(drawn + shift)


def _multinomial(func: Any, args: Any, kwargs: Any) -> Tensor:
    """Indices of rows of weights: ``(*batch, num_samples)``."""
    program, weights = current(), args[0]
    settings = dict(zip(("num_samples", "replacement"), args[1:], strict=False)) | kwargs
    several = settings.get("num_samples", 1) > 1
    plain = partial(func, *args, **kwargs)
    shape = (*weights.shape[:-1], settings.get("num_samples", 1), weights.shape[-1])
    law = Categorical(weights.unsqueeze(-2).expand(shape), validate_args=False)
    if settings.get("replacement", False) or not several:
        return program.draw(law, plain, name="torch.multinomial")
    if not program.scored or not weights.requires_grad:  # without replacement there is no slope
        index = plain()
        site = program.site("torch.multinomial")
        site.shape, site.rule = tuple(index.shape), "none"
        if weights.requires_grad:
            warnings.warn_explicit(
                f"{site.place}: torch.multinomial without replacement has no slope, and the "
                "gradient of its weights ends here; draw it in a block inside, "
                "gengs.differentiable(by=gengs.RLOO()), which knows the score of the order.",
                CutGradientWarning,
                site.file,
                site.line,
            )
        return index
    site = program.site("torch.multinomial")
    with quiet():
        index = plain()
        site.shape = tuple(index.shape)
        taken = weights.gather(-1, index)
        left = weights.sum(-1, keepdim=True) - (taken.cumsum(-1) - taken)
        program.keep_score(site, (taken / left).log())
    return index


_DRAWS = {
    "poisson": _poisson,
    "binomial": _binomial,
    "bernoulli": _bernoulli,
    "bernoulli_": _bernoulli_in_place,
    "multinomial": _multinomial,
}
