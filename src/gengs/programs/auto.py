"""What was decided for a block: by the line of code that opens it, and what it draws.

A path that was found right is checked again when the block draws at other lines, and after 2, 4,
8, ... calls: parameters move while an optimiser runs. Where a check is in doubt, it is the fitted
score, which is right everywhere; that decision stays.
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


_DECIDED: dict[tuple[str, int], _Decision] = {}
"""For lines with ``by="auto"``: the fitted score, or ``MidCDF`` for the path."""
_CHECKED: set[tuple[str, int]] = set()


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
    return draws not in decision.drawn or not decision.calls & (decision.calls - 1)


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
    if first or not found.agrees:
        rule = "the path" if found.agrees else "FittedScore()"
        print(f'gengs.differentiable(by="auto") at {place_of(*place)}: {rule}; {found}')
    if found.agrees:
        return PathRule(None, absorbing=True)
    decision.rule = FittedScore()
    return ScoreRule(decision.rule)
