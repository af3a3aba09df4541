"""The settings of ``TopicModel``, all checked in one place, as plain Python values.

scikit-learn's estimators take whatever they are given and look at it when they are used: arrays
where a tuple is meant, numbers of numpy, a string from a grid search. Each setting here has one
rule, which returns its plain value (a whole number as ``int``, several as a tuple) or says in one
sentence what was expected. Nothing is rounded, cut off or read as true.
"""

from __future__ import annotations

__all__ = ["NETWORK", "settings_of"]

import math
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
from sklearn.utils import check_random_state

from .nvpdef import Stack
from .poisson_layer import PosteriorFamily
from .topic_recipe import TopicWeights

Rule = Callable[[Any], Any]
"""From a value to its plain form; a ``TypeError`` or ``ValueError`` where it has none."""


NETWORK = (
    "n_components",
    "super_topics",
    "rates",
    "level",
    "posterior",
    "stack",
    "gradient",
    "hidden",
    "dropout",
    "thinning",
)
"""The settings that the network is made with; of a fitted model, changing them changes nothing."""


def settings_of(model: Any, *names: str, **instead: Any) -> SimpleNamespace:
    """The settings of a model, checked and plain.

    Args:
        model: The ``TopicModel``.
        names: Those asked for; all by default.
        instead: Values in place of the model's own, unless they are ``None``.

    Raises:
        ValueError: For the first one that is not as expected.
    """
    given = model.get_params(deep=False)
    given |= {name: value for name, value in instead.items() if value is not None}
    found = {}
    for name in names or given:
        words, rule = _RULES[name]
        try:
            found[name] = rule(given[name])
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"expected {words} `{name}`, but got {given[name]!r}.") from None
    return SimpleNamespace(**found)


def _whole(least: int) -> Rule:
    def rule(value: Any) -> int:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or value < least:
            raise ValueError
        return int(value)

    return rule


def _number(least: float, beyond: bool = False, below: float = math.inf) -> Rule:
    """Numbers from ``least`` on (``beyond``: without it), below ``below``."""

    def rule(value: Any) -> float:
        if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
            raise TypeError
        number = float(value)
        if not least <= number < below or (beyond and number == least):
            raise ValueError
        return number

    return rule


def _each(rule: Rule, some: bool = False) -> Rule:
    """A sequence of values with this rule; at least one with ``some``."""

    def several(value: Any) -> tuple[Any, ...]:
        if isinstance(value, (str, bytes, dict, set)) or not isinstance(value, Iterable):
            raise TypeError
        found = tuple(rule(one) for one in value)
        if some and not found:
            raise ValueError
        return found

    return several


def _one_or_each(rule: Rule) -> Rule:
    return lambda value: (
        _each(rule, some=True)(value) if isinstance(value, Iterable) else rule(value)
    )


def _one_of(*options: str) -> Rule:
    def rule(value: Any) -> str:
        if not isinstance(value, str) or value not in options:
            raise ValueError
        return str(value)

    return rule


def _switch(value: Any) -> bool:
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError
    return bool(value)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError
    return str(value)


def _verbosity(value: Any) -> bool:
    return _whole(0)(value) > 0 if not isinstance(value, (bool, np.bool_)) else bool(value)


def _seed(value: Any) -> Any:
    check_random_state(value)
    return value


def _function(value: Any) -> Any:
    if value is not None and not callable(value):
        raise TypeError
    return value


def _choice(options: Any) -> tuple[str, Rule]:
    return f"one of {', '.join(get_args(options))} as", _one_of(*get_args(options))


_COUNT = ("a positive integer", _whole(1))
_SHARE = ("a share in [0, 1) as", _number(0.0, below=1.0))
_WEIGHT = ("a finite number of at least 0 as", _number(0.0))
_SWITCH = ("True or False as", _switch)

_RULES: dict[str, tuple[str, Rule]] = {
    "n_components": _COUNT,
    "super_topics": ("a sequence of positive integers as", _each(_whole(1))),
    "rates": (
        "a positive, finite number, or one for each layer, as",
        _one_or_each(_number(0.0, beyond=True)),
    ),
    "level": ("an integer of at least 2 as", _whole(2)),
    "posterior": _choice(PosteriorFamily),
    "stack": _choice(Stack),
    "gradient": ("the name of an estimator, such as 'MidCDF(2)', as", _text),
    "hidden": ("a sequence of one or more positive integers as", _each(_whole(1), some=True)),
    "dropout": _SHARE,
    "thinning": _SHARE,
    "weight_decay": _WEIGHT,
    "topic_penalty": _WEIGHT,
    "weigh": _choice(TopicWeights),
    "turn": _SWITCH,
    "max_iter": _COUNT,
    "batch_size": _COUNT,
    "learning_rate": ("a positive, finite number as", _number(0.0, beyond=True)),
    "early_stopping": _SWITCH,
    "validation_fraction": ("a number from 0 to 1 as", _number(0.0, below=math.nextafter(1, 2))),
    "patience": _COUNT,
    "n_draws": _COUNT,
    "n_refine": ("a non-negative integer", _whole(0)),
    "random_state": ("a seed from 0 to 2**32 - 1, a RandomState or None as", _seed),
    "verbose": ("True or False as", _verbosity),
    "on_epoch": ("a function, or None, as", _function),
}
