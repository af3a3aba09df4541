"""What was decided for a block: by the line of code that opens it, and what it draws.

The path is kept unless a check *finds* a bias; where a check cannot tell, that is printed once,
and the path stays, as the score may vary far more. Where a check finds a bias, or perhaps one, the
next call is checked, too, on other draws. If both saw it, and one of them was sure, it is the
fitted score from there on, which is right everywhere. Otherwise it was a false alarm.

A path that was found right is checked again when the block draws at other lines, and after 2, 4,
8, ... calls: parameters move while an optimiser runs. Checks add up, and one alone is wrong in one
of 1,000; two in a row, at one in 1,000 and one in 100, are wrong in one of 50,000.
"""

__all__ = ["decide", "is_due", "is_first_call"]

from dataclasses import dataclass, field
from typing import Any

from ..estimators import MidCDF
from .fitted_score import FittedScore
from .path_rule import PathRule
from .sample_site import place_of
from .score_rule import ScoreRule


@dataclass
class _Decision:
    rule: Any
    calls: int = 0
    drawn: set[Any] = field(default_factory=set)
    """The draws of the programs that were checked: line and distribution of each."""
    suspected: bool = False
    """Whether the last check found a bias, or perhaps one, that the next has to confirm."""
    found: bool = False
    """Whether the last check was sure of it."""
    said: set[Any] = field(default_factory=set)
    """The verdicts that were printed."""


_DECIDED: dict[tuple[str, int], _Decision] = {}
"""For lines with ``by="auto"``: the fitted score, or ``MidCDF`` for the path."""
_CHECKED: set[tuple[str, int]] = set()
_SAYS = {
    True: "the path",
    None: "the path, as no bias was found",
    False: "FittedScore(), until a second check at the next call",
}


def is_first_call(place: tuple[str, int]) -> bool:
    """Whether a block at this line is checked for the first time."""
    first = place not in _CHECKED
    _CHECKED.add(place)
    return first


def is_due(place: tuple[str, int], draws: object) -> bool:
    """Whether the path is to be checked at this call, of a program with these draws."""
    decision = _DECIDED.get(place)
    if decision is None:
        return True
    decision.calls += 1
    again = not decision.calls & (decision.calls - 1)
    return decision.suspected or draws not in decision.drawn or again


def decide(place: tuple[str, int], found: Any = None, draws: object = None) -> Any:
    """The rule of a line: what is known of it, or what follows from a check that was made now.

    ``None`` where nothing is known yet.
    """
    decision = _DECIDED.get(place)
    if found is None:
        return None if decision is None else decision.rule
    first = decision is None
    decision = _DECIDED.setdefault(place, _Decision(MidCDF()))
    decision.drawn.add(draws)
    biased = found.agrees is False
    confirmed = decision.suspected and found.seems_off and (biased or decision.found)
    news = found.agrees is None and None not in decision.said
    back = False in decision.said and not biased  # to the path
    if first or confirmed or news or back:
        rule = "FittedScore()" if confirmed else _SAYS[found.agrees]
        print(f'gengs.differentiable(by="auto") at {place_of(*place)}: {rule}; {found}')
        decision.said = {*decision.said, found.agrees} - ({False} if back else set())
    decision.suspected = found.seems_off and not decision.suspected
    decision.found = biased
    if confirmed:
        decision.rule = FittedScore()
        return ScoreRule(decision.rule)
    return ScoreRule(FittedScore()) if biased else PathRule(None, absorbing=True)
