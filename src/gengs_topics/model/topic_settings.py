"""The settings of a topic model: their checks by scikit-learn, and how long to train."""

__all__ = ["CONSTRAINTS", "NETWORK", "default_passes", "default_topics", "settings_of"]

from numbers import Integral, Real
from types import SimpleNamespace
from typing import Any, get_args

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions, validate_parameter_constraints

from .document_weights import TopicWeights
from .layers import PosteriorFamily
from .nvpdef import Stack
from .word_decoder import WordLaw

_STEPS, _LEAST_STEPS = 500, 200


def default_passes(batches: int) -> int:
    """How often to go through documents that make so many batches.

    For about 500 steps, but 4 times at least and 10 times at most: more passes over few documents
    make the encoder know them by heart. Very few documents are gone through more often, for 200
    steps, at most 50 times.
    """
    usual = max(4, min(10, round(_STEPS / max(batches, 1))))
    return max(usual, min(50, round(_LEAST_STEPS / max(batches, 1))))


def default_topics(documents: int) -> int:
    """How many topics so many documents have where nobody says: as many as one can read.

    Three quarters of the root of their number, at least 2 and at most 50: 8 for a hundred texts, 13
    for 300.
    """
    return max(2, min(50, round(0.75 * documents**0.5)))


NETWORK = (
    *("n_components", "super_topics", "rates", "level", "posterior", "stack", "words"),
    *("gradient", "hidden", "dropout", "thinning"),
)
"""The settings that the network is made with; of a fitted model, changing them changes nothing."""


_COUNT = [Interval(Integral, 1, None, closed="left")]
_SHARE = [Interval(Real, 0, 1, closed="left")]
_WEIGHT = [Interval(Real, 0, None, closed="left")]
_POSITIVE = [Interval(Real, 0, None, closed="neither")]

CONSTRAINTS: dict[str, list[Any]] = {
    "n_components": [*_COUNT, None],
    "super_topics": ["array-like"],
    "rates": [*_POSITIVE, "array-like"],
    "level": [Interval(Integral, 2, None, closed="left")],
    "posterior": [StrOptions(set(get_args(PosteriorFamily)))],
    "stack": [StrOptions(set(get_args(Stack)))],
    "words": [StrOptions(set(get_args(WordLaw)))],
    "gradient": [str],
    "hidden": ["array-like"],
    "dropout": _SHARE,
    "thinning": _SHARE,
    "weight_decay": [*_WEIGHT, None],
    "topic_penalty": _WEIGHT,
    "weigh": [StrOptions(set(get_args(TopicWeights)))],
    "turn": ["boolean"],
    "max_iter": [*_COUNT, None],
    "batch_size": _COUNT,
    "learning_rate": _POSITIVE,
    "early_stopping": ["boolean"],
    "validation_fraction": [Interval(Real, 0, 1, closed="both")],
    "patience": _COUNT,
    "n_draws": _COUNT,
    "n_refine": [Interval(Integral, 0, None, closed="left")],
    "random_state": ["random_state"],
    "verbose": ["verbose"],
    "on_epoch": [callable, None],
}
"""What each setting may be, in scikit-learn's terms."""


def settings_of(model: Any, **instead: Any) -> SimpleNamespace:
    """The settings of a ``TopicModel``, checked, as plain Python values, some replaced."""
    given = {**model.get_params(deep=False), **instead}
    validate_parameter_constraints(CONSTRAINTS, given, type(model).__name__)
    for name, rule in (("super_topics", _COUNT), ("hidden", _COUNT), ("rates", _POSITIVE)):
        for number in np.atleast_1d(given[name]).tolist():
            entry = f"entries of {name}"
            validate_parameter_constraints({entry: rule}, {entry: number}, "TopicModel")
    return SimpleNamespace(**{name: _plain(value) for name, value in given.items()})


def _plain(value: Any) -> Any:
    """Without numpy's types; several numbers are a tuple."""
    value = value.tolist() if type(value).__module__ == "numpy" else value
    return tuple(map(_plain, value)) if isinstance(value, (list, tuple)) else value
