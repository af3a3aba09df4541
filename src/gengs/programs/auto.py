"""What was decided for a block on its first call: by the line of code that opens it."""

__all__ = ["decide", "is_first_call"]

from typing import Any

from ..estimators import MidCDF
from .fitted_score import FittedScore
from .path_rule import PathRule
from .sample_site import place_of
from .score_rule import ScoreRule

_DECIDED: dict[tuple[str, int], Any] = {}
"""For lines with ``by="auto"``: the fitted score, or ``MidCDF`` for the path."""
_CHECKED: set[tuple[str, int]] = set()


def is_first_call(place: tuple[str, int]) -> bool:
    """Whether a block at this line is checked for the first time."""
    first = place not in _CHECKED
    _CHECKED.add(place)
    return first


def decide(place: tuple[str, int], found: Any = None) -> Any:
    """The rule of a line: known from its first call, or decided now that a check was made.

    ``None`` where nothing is known yet.
    """
    if found is None:
        return _DECIDED.get(place)
    rule = "the path" if found.agrees else "FittedScore()"
    print(f'gengs.differentiable(by="auto") at {place_of(*place)}: {rule}; {found}')
    if found.agrees:
        _DECIDED[place] = MidCDF()
        return PathRule(None, absorbing=True)
    _DECIDED[place] = FittedScore()
    return ScoreRule(_DECIDED[place])
