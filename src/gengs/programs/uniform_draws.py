"""Comparisons of uniform numbers with thresholds, which are draws of 0 or 1."""

from __future__ import annotations

__all__ = ["COMPARED", "looks_uniform", "meet_threshold"]

from typing import Any

from torch import Tensor
from torch.distributions import Bernoulli

from .block_stack import current, quiet
from .cut_operations import tensors_in
from .cut_report import CutReport
from .noise import Noise
from .path_rule import PathRule
from .sample_site import asked_by_library
from .surrogates import Surrogates
from .thresholds import compare

_BELOW, _ABOVE = {"lt", "le", "less", "less_equal"}, {"gt", "ge", "greater", "greater_equal"}
COMPARED = {name + end for name in _BELOW | _ABOVE for end in ("", "_")}
"""Functions of torch's that compare, in place or not."""
_MANY = 8
"""Of fewer numbers it cannot be told whether they are random."""
_NAME = "torch.rand(...) < p"


def meet_threshold(
    noise: Noise,
    surrogates: Surrogates,
    report: CutReport,
    func: Any,
    name: str,
    args: Any,
    kwargs: dict[str, Any],
) -> Any | None:
    """What a comparison returns if it is a draw; ``None`` if it is not, and was not made."""
    left: Any = args[0]
    right: Any = args[1] if len(args) > 1 else kwargs.get("other")
    for numbers, p in ((left, right), (right, left)):
        seen = noise.uniform(numbers)
        moves = isinstance(p, Tensor) and p.requires_grad
        if seen is None:
            continue
        if seen.uniform is None or noise.known(p):
            if moves:
                return _unrecognised(report, func, args, kwargs)
            continue
        below = (name.rstrip("_") in _BELOW) == (numbers is left)  # u < p, or p > u
        rule = current().rule_for(Bernoulli)
        if moves and not rule.exact:
            new = not seen.uniform.comparisons and seen.index is None and not name.endswith("_")
            if not new:  # its numbers are not those of the program
                return _unrecognised(report, func, args, kwargs)
            seen.uniform.comparisons.append((p, p, None))
            return _relaxed(surrogates, func(*args, **kwargs), p, below)
        return _drawn(surrogates, func(*args, **kwargs), args[0], seen, p, below, rule)
    return None


def looks_uniform(values: Any) -> bool:
    """Whether numbers without a gradient may be uniform ones, made outside of the block."""
    with quiet():
        for value in tensors_in(values):
            if value.requires_grad or not value.is_floating_point() or value.numel() < _MANY:
                continue
            some = value.detach().flatten()[:1000]
            steps = some.diff()
            if bool((some >= 0).all() & (some <= 1).all() & (steps > 0).any() & (steps < 0).any()):
                return some.unique().numel() > len(some) // 2
    return False


def _unrecognised(report: CutReport, func: Any, args: Any, kwargs: Any) -> Any:
    if asked_by_library():
        return func(*args, **kwargs)
    report.unrecognised()
    program = current()
    site = program.site(_NAME)
    if program.rule_for(Bernoulli).scored:
        raise ValueError(
            f"{site.place}: random numbers that are not uniform, or no longer, are compared with a "
            "tensor that carries a gradient: their log-probability is not known; draw by "
            "torch.bernoulli or torch.multinomial."
        )
    return func(*args, **kwargs)


def _relaxed(surrogates: Surrogates, mask: Tensor, p: Tensor, below: bool) -> Tensor:
    """A draw by a rule with numbers of its own."""
    law = Bernoulli(p.clamp(0.0, 1.0).expand(mask.shape), validate_args=False)
    z = current().draw(law, lambda: mask.to(p.dtype), name=_NAME)
    mask = z.detach() > 0.5 if below else z.detach() <= 0.5
    surrogates.pair(mask, z if below else 1 - z)
    return mask


def _drawn(
    surrogates: Surrogates, outcome: Tensor, left: Any, seen: Any, p: Any, below: bool, rule: Any
) -> Tensor:
    """A draw, if the threshold moves or one before it did."""
    program, in_place = current(), outcome is left
    moves = isinstance(p, Tensor) and p.requires_grad
    earlier = any(q.requires_grad for q, _, _ in seen.uniform.comparisons)
    with quiet():
        success = outcome.bool() if below else ~outcome.bool()
        z, interval = compare(seen.uniform, seen.index, p, success)
        if not moves and not earlier:
            return outcome
        p = seen.uniform.comparisons[-1][0]
        law = Bernoulli(p, validate_args=False) if interval is None else interval
        site = program.threshold(rule, law, p, success)
        if not isinstance(rule, PathRule) or not moves:
            return outcome
        moving = rule.let_through(site, z)
        moving = moving if below else 1 - moving
        if in_place:
            return outcome.copy_(moving)
        surrogates.pair(outcome, moving)
        return outcome
