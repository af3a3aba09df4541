"""Distributions and estimators by name, as people type them: ``poisson(3)``, ``GenGS(hard=True)``.

Arguments are literals (numbers, strings, true/false); nothing is ever evaluated.
"""

__all__ = ["parse_call", "parse_estimator", "parse_law"]

import ast
import difflib
from collections.abc import Collection
from typing import Any

import torch
from torch import Tensor
from torch.distributions import Distribution

from ..distributions import Spec  # whose module registers every record
from ..laws.law import law_of, records
from .base import Estimator
from .catalogue import ALL


def parse_call(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """``name(1, key=2)`` as its name, arguments and keyword arguments."""
    try:
        call = ast.parse(text.strip(), mode="eval").body
        if isinstance(call, ast.Name):
            return call.id, [], {}
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            arguments = [ast.literal_eval(argument) for argument in call.args]
            named = {str(k.arg): ast.literal_eval(k.value) for k in call.keywords}
            # a **mapping has no name
            if "None" not in named and len(named) == len(call.keywords):
                return call.func.id, arguments, named
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        pass
    raise ValueError(
        "expected a name with literal arguments, each once, such as RLOO(4) or poisson(2), but got "
        f"{_shown(text)}."
    )


def parse_estimator(text: str) -> Estimator:
    """An estimator from its name (in any case) and settings.

    Example:
        >>> parse_estimator("rloo(4)")
        RLOO(samples=4)
    """
    name, arguments, named = parse_call(text)
    kinds = {kind.__name__: kind for kind in ALL}
    kind = kinds[_known(name, kinds, "estimator")]
    try:
        return kind(*arguments, **named)
    except (TypeError, ValueError, OverflowError) as error:
        reason = str(error).rstrip(".")
        raise ValueError(
            f"{kind.__name__} does not take these settings: {_shown(text)} ({reason})."
        ) from None


def parse_law(text: str) -> tuple[Distribution, dict[str, Tensor]]:
    """A torch distribution from its name and numbers, and its parameters, which require a gradient.

    Example:
        >>> law, parameters = parse_law("negative-binomial(3, 0.5)")
        >>> law.mean.item(), list(parameters)
        (3.0, ['probs'])
    """
    head, bracket, tail = text.partition("(")
    name, arguments, named = parse_call(head.replace("-", "").replace("_", "") + bracket + tail)
    specs: dict[str, Spec] = {
        record.spec.name: record.spec for record in records() if record.spec is not None
    }
    spec = specs[_known(name, specs, "distribution")]
    fields = spec.fields
    if len(arguments) + len(named) != len(fields) or set(named) - set(fields[len(arguments) :]):
        raise ValueError(f"expected {head.lower()}({', '.join(fields)}), but got {_shown(text)}.")
    numbers = dict(zip(fields, arguments, strict=False)) | named
    try:
        tensors = {key: torch.tensor(x, dtype=torch.float32) for key, x in numbers.items()}
    except (TypeError, ValueError, OverflowError):
        tensors = {}
    if not tensors or any(x.dim() != (key in spec.vectors) for key, x in tensors.items()):
        shape = "a list of numbers" if spec.vectors else "numbers"
        raise ValueError(f"expected {shape} as the parameters of {_shown(text)}.")
    parameters = {k: x.requires_grad_() for k, x in tensors.items() if k not in spec.constant}
    try:
        law = spec.make(**tensors, validate_args=True)
    except ValueError:
        raise ValueError(
            f"expected {head.lower()} with {spec.expects}, but got {_shown(text)}."
        ) from None
    if not parameters:  # made of its numbers: scores for so many elements
        parameters = {"logits": law.logits}  # type: ignore[attr-defined]
    finite = all(bool(value.isfinite().all()) for value in tensors.values())  # 1e308 in 32 bits
    if not law.event_shape and not (finite and _largest(law) < _LARGEST):
        raise ValueError(
            f"the values of {_shown(text)} go beyond {_LARGEST:,}: above it, 32-bit numbers no "
            "longer tell one count from the next."
        )
    return law, parameters


_LARGEST = 2**24


def _largest(law: Distribution) -> float:
    """About the largest value that will be drawn."""
    centre, spread = law_of(law).centre_and_spread()
    return float((centre + 10 * spread).max())


def _shown(text: str) -> str:
    """In quotes; of a long text, its beginning."""
    return repr(text if len(text) <= 80 else f"{text[:80]}…")


def _known(name: str, known: Collection[str], what: str) -> str:
    """The one of the ``known`` names that was typed, in any case and with or without hyphens."""
    options = {option.lower().replace("-", ""): option for option in known}
    if name.lower() in options:
        return options[name.lower()]
    near = difflib.get_close_matches(name.lower(), options, n=1)
    end = f"; did you mean {options[near[0]]}?" if near else "."
    raise ValueError(f"there is no {what} {name!r}{end} The {what}s are: {', '.join(known)}.")
